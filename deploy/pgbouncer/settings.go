// Package pgbouncer makes the configuration that a pod's PgBouncer runs with: one table
// of settings, each with its reason, from which the shipped pgbouncer.ini, the one of a
// pod and that of the tests are written.
package pgbouncer

// Setting is one line of the [pgbouncer] section.
type Setting struct {
	Name, Value string
	Why         string // what would go wrong without it
	// Forced settings are what the collector, its connection arithmetic or the pod's
	// safety relies on. All others are defaults that Config.Settings may replace.
	Forced bool
}

// Settings is the whole table, in the order of the file. All names exist in PgBouncer
// 1.18 and in every later version, with the same meaning; README.md tells what differs.
func Settings() []Setting {
	var all []Setting
	for _, part := range [][]Setting{listening(), pooling(), failing(), timing(), access(), logging()} {
		all = append(all, part...)
	}
	return all
}

func listening() []Setting {
	return []Setting{
		{Name: "listen_addr", Value: "127.0.0.1", Forced: true,
			Why: "The collector is in the same pod; nothing else may reach the pool."},
		{Name: "listen_port", Value: "6432",
			Why: "The port in the collector's DATABASE_URL."},
		{Name: "unix_socket_dir", Value: "", Forced: true,
			Why: "No unix socket: the collector uses TCP, and the root file system is read-only."},
		{Name: "client_tls_sslmode", Value: "disable", Forced: true,
			Why: "What never leaves the pod is not encrypted."},
		{Name: "max_client_conn", Value: "100",
			Why: "The collector has three clients and one for SHOW POOLS; the bound keeps a leak from taking all sockets."},
		{Name: "tcp_keepalive", Value: "1",
			Why: "Find dead peers in half a minute instead of two hours."},
		{Name: "tcp_keepidle", Value: "15", Why: "See tcp_keepalive."},
		{Name: "tcp_keepintvl", Value: "5", Why: "See tcp_keepalive."},
		{Name: "tcp_keepcnt", Value: "3", Why: "See tcp_keepalive."},
		{Name: "tcp_user_timeout", Value: "15000",
			Why: "A server whose machine is gone while a transaction is on the way to it is given up after this, in milliseconds; keep-alives look at quiet connections only."},
	}
}

func pooling() []Setting {
	return []Setting{
		{Name: "pool_mode", Value: "transaction", Forced: true,
			Why: "A server connection belongs to a client for one transaction only. The collector is written for it: no named prepared statement, no session state, no session lock."},
		{Name: "default_pool_size", Value: "3", Forced: true,
			Why: "A flush, what requests wait for, and an administrator's query. The collector has no more clients than these; the server connections of all pods add up, and are checked against max_connections by this number."},
		{Name: "max_db_connections", Value: "3", Forced: true,
			Why: "The same bound should somebody log in as another user: a pool is per user and database."},
		{Name: "min_pool_size", Value: "0", Forced: true,
			Why: "Connections are opened when they are asked for: without administrators a pod has two."},
		{Name: "reserve_pool_size", Value: "0", Forced: true,
			Why: "No extra connections in a rush: the sum is what was checked."},
		{Name: "server_round_robin", Value: "0", Forced: true,
			Why: "The connection that was used last is used next, so that one that is not needed goes idle and is closed."},
		{Name: "server_reset_query_always", Value: "0", Forced: true,
			Why: "There is nothing to reset in a transaction pool, and each reset is a round trip."},
		{Name: "ignore_startup_parameters", Value: "extra_float_digits,options,statement_timeout,lock_timeout,idle_in_transaction_session_timeout,search_path", Forced: true,
			Why: "Drivers send these at start-up and PgBouncer would refuse the connection. Nothing relies on them: time limits are set in each transaction."},
	}
}

func failing() []Setting {
	return []Setting{
		{Name: "server_login_retry", Value: "1", Forced: true,
			Why: "After a failed connect PgBouncer waits this long (15 s if left alone): with 1 s a restart of the server is over as soon as the server is back."},
		{Name: "server_connect_timeout", Value: "3",
			Why: "A server that does not answer a connect is tried anew after this, not after 15 s."},
		{Name: "server_check_delay", Value: "10",
			Why: "A connection that was idle for longer is checked before use, so that a failed-over server is noticed before a transaction is sent to it."},
		{Name: "server_check_query", Value: "select 1",
			Why: "The shortest statement that shows that a server is alive."},
		{Name: "dns_max_ttl", Value: "2",
			Why: "A failover moves the server's name to another address. PgBouncer ignores the name's own TTL, and remembers it for 15 s if left alone."},
		{Name: "dns_nxdomain_ttl", Value: "1",
			Why: "A name that is missing for a moment is asked for again soon."},
	}
}

func timing() []Setting {
	return []Setting{
		{Name: "query_wait_timeout", Value: "4", Forced: true,
			Why: "A client that has waited this long for a server connection is told so: the collector keeps its batch and comes again. It must be less than the 5 s after which the collector leaves by itself, because PgBouncer does not notice that a waiting client has gone, and would give it the first connection to a server that is back."},
		{Name: "query_timeout", Value: "60",
			Why: "Frees a connection whose server hangs. Far above the collector's own limit of 10 s for each statement, which is what ends a slow one."},
		{Name: "idle_transaction_timeout", Value: "30",
			Why: "A transaction that is left open holds locks on budgets: end it. The collector's own limit is 10 s."},
		{Name: "client_idle_timeout", Value: "0",
			Why: "Clients are few and long-lived; the collector closes what it does not use."},
		{Name: "client_login_timeout", Value: "10",
			Why: "A login waits for the first server connection after a start; the collector gives up after 5 s."},
		{Name: "server_lifetime", Value: "600",
			Why: "Connections are renewed now and then, so that load moves to a new server."},
		{Name: "server_idle_timeout", Value: "60",
			Why: "A quiet pod, and one whose administrator has gone, gives connections back."},
	}
}

func access() []Setting {
	return []Setting{
		{Name: "auth_type", Value: "scram-sha-256", Forced: true,
			Why: "No password crosses a socket, and none is asked of the database by a query."},
		{Name: "auth_file", Value: "/etc/pgbouncer/userlist.txt",
			Why: "\"user\" \"password\", mode 0600, in a file of its own: this one has no secret."},
		{Name: "admin_users", Value: "", Forced: true,
			Why: "Nobody may PAUSE, RELOAD or SHUTDOWN over the network; a signal does."},
		{Name: "stats_users", Value: "penstock",
			Why: "Who may ask for SHOW POOLS: the collector's user."},
	}
}

func logging() []Setting {
	return []Setting{
		{Name: "log_connections", Value: "0", Why: "A line for each connect is noise."},
		{Name: "log_disconnections", Value: "1",
			Why: "The one place where PgBouncer says why it cannot reach the server. Clients are few and stay."},
		{Name: "log_pooler_errors", Value: "1", Why: "What clients are told is kept."},
		{Name: "log_stats", Value: "0",
			Why: "The same figures are metrics: see SHOW POOLS in README.md."},
		{Name: "verbose", Value: "0", Forced: true,
			Why: "Higher levels write packets to the log, logins among them."},
	}
}
