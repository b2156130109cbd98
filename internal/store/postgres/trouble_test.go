package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
)

// site is a server with a PgBouncer of its own in front, both for one test.
type site struct {
	t       *testing.T
	server  *pg.Server
	bouncer *pg.Bouncer
	db      string

	pooled, direct *client
}

// newSite starts both. The server asks app, who is no superuser, for a password.
func newSite(t *testing.T, settings ...string) *site {
	t.Helper()
	s := &site{t: t, server: strict(t, settings...)}
	s.db = s.server.Database(t)
	_, err := postgres.Migrate(t.Context(), s.server.URL(s.db), postgres.Options{})
	check(t, err)
	s.sql("CREATE ROLE app LOGIN PASSWORD 'right'; GRANT ALL ON ALL TABLES IN SCHEMA public TO app; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app")
	s.bouncer, err = pg.StartBouncer(t.Context(), pg.BouncerConfig{ServerURL: s.as("app:right")})
	check(t, err)
	t.Cleanup(func() { _ = s.bouncer.Stop() })
	return s
}

// as is the direct address for a user.
func (s *site) as(user string) string {
	return strings.Replace(s.server.URL(s.db), "postgres@", user+"@", 1)
}

func (s *site) sql(text string) {
	s.t.Helper()
	_, err := s.server.Query(s.t.Context(), s.db, text)
	check(s.t, err)
}

// client commits records of one holder.
type client struct {
	t      *testing.T
	store  *postgres.Store
	holder store.HolderID
	seq    uint64 // last record that is in
}

func newClient(t *testing.T, holder store.HolderID, url string) *client {
	t.Helper()
	st, err := postgres.Open(t.Context(), postgres.Config{URL: url, Timeout: 5 * time.Second})
	check(t, err)
	t.Cleanup(st.Close)
	return &client{t: t, store: st, holder: holder}
}

// commit writes one record. An error that blames the request fails the test.
func (c *client) commit() error {
	c.t.Helper()
	r := store.Record{Seq: c.seq + 1, RequestID: "r", Start: day, End: day, Cost: 1}
	_, err := c.store.Commit(c.t.Context(), c.holder, []store.Record{r})
	switch {
	case err == nil:
		c.seq++
	case !errors.Is(err, store.ErrUnavailable):
		c.t.Fatalf("a record must wait for a database that is in trouble, not be refused: %v", err)
	}
	return err
}

const (
	// pace is what a collector waits at least before it tries again.
	pace = 20 * time.Millisecond
	// patience is how long a test waits for what must come.
	patience = 30 * time.Second
)

// awaitCause commits until it fails for the reason.
func (c *client) awaitCause(want string) {
	c.t.Helper()
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pace) {
		if err := c.commit(); err != nil {
			if last = err; strings.Contains(err.Error(), want) {
				return
			}
		}
	}
	c.t.Fatalf("the cause for %s is never %q, at last %v", c.holder, want, last)
}

// awaitGood commits until it works again and returns how long that took.
func (c *client) awaitGood() time.Duration {
	c.t.Helper()
	start := time.Now()
	for {
		err := c.commit()
		if err == nil {
			return time.Since(start)
		}
		if time.Since(start) > patience {
			c.t.Fatalf("%s still fails: %v", c.holder, err)
		}
		time.Sleep(pace)
	}
}

// awaitLog waits until PgBouncer's log has a text.
func (s *site) awaitLog(want string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pace) {
		log, err := s.bouncer.Log()
		switch {
		case err != nil || strings.Contains(log, "right"):
			s.t.Fatalf("PgBouncer's log has the password, or cannot be read: %v", err)
		case strings.Contains(log, want):
			return
		case time.Now().After(deadline):
			s.t.Fatalf("PgBouncer's log never says %q:\n%s", want, log)
		}
	}
}

const (
	fromPgBouncer = "PgBouncer has no connection to the database, its log says why"
	refused       = "the login is refused"
	tooLate       = "the database did not answer in time"
	unreachable   = "the database cannot be reached: "
	replica       = "the database is read-only"
)

// trouble is one way in which a database cannot be used.
type trouble struct {
	why string
	// Causes without and with PgBouncer, and what its log has then; empty: not looked at.
	direct, pooled, log string
	begin               func(t *testing.T, s *site) (end func())
}

// Each trouble of the database is named in plain words, blames no request, and is over
// a moment after its cause is: PgBouncer tries a server once per second.
func TestTrouble(t *testing.T) {
	t.Parallel()
	var sites sync.WaitGroup
	defer sites.Wait()
	// A site for each row, all at once whatever -parallel says: they mostly wait.
	for name, all := range map[string][]trouble{
		"server": {
			{"it crashes", unreachable, fromPgBouncer, "connect failed", func(t *testing.T, s *site) func() {
				check(t, s.server.Kill())
				return func() { check(t, s.server.Restart(t.Context())) }
			}},
			{"it is about to stop", "the database is starting or stopping", fromPgBouncer, "shutting down", shuttingDown},
		},
		"login": {
			{"others have all connections", "the database has no connection left", fromPgBouncer, "remaining connection slots", tooMany},
			{"the password was changed", refused, fromPgBouncer, "password authentication failed", func(_ *testing.T, s *site) func() {
				s.sql("ALTER ROLE app PASSWORD 'other'; " + cutAll)
				return func() { s.sql("ALTER ROLE app PASSWORD 'right'") }
			}},
		},
		"pool": {
			{"PgBouncer is killed", "", unreachable, "", func(t *testing.T, s *site) func() {
				check(t, s.bouncer.Kill())
				return func() { check(t, s.bouncer.Restart(t.Context())) }
			}},
			{"PgBouncer hangs", "", tooLate, "", func(t *testing.T, s *site) func() {
				check(t, syscall.Kill(s.bouncer.PID(), syscall.SIGSTOP))
				return func() { check(t, syscall.Kill(s.bouncer.PID(), syscall.SIGCONT)) }
			}},
			{"the server is a replica now", replica, replica, "", func(_ *testing.T, s *site) func() {
				s.sql("ALTER SYSTEM SET default_transaction_read_only = on")
				s.sql("SELECT pg_reload_conf()")
				return func() {
					s.sql("ALTER SYSTEM RESET default_transaction_read_only")
					s.sql("SELECT pg_reload_conf()")
				}
			}},
		},
	} {
		sites.Go(func() {
			t.Run(name, func(t *testing.T) {
				s := newSite(t, "max_connections = 12", "superuser_reserved_connections = 3")
				s.pooled, s.direct = newClient(t, "pooled", s.bouncer.URL(s.db)), newClient(t, "direct", s.as("app:right"))
				for _, c := range all {
					t.Run(c.why, func(t *testing.T) { s.suffer(t, c) })
				}
			})
		})
	}
}

// suffer goes through one trouble and counts the records at its end.
func (s *site) suffer(t *testing.T, c trouble) {
	s.pooled.awaitGood()
	s.direct.awaitGood()
	end := c.begin(t, s)
	s.pooled.awaitCause(c.pooled)
	if c.direct != "" {
		s.direct.awaitCause(c.direct)
	}
	s.awaitLog(c.log)
	end()
	for _, client := range []*client{s.pooled, s.direct} {
		took := client.awaitGood()
		t.Logf("%s works again after %v", client.holder, took)
		if took > 5*time.Second {
			t.Errorf("%s works again only after %v", client.holder, took)
		}
	}
	got, err := s.server.Query(t.Context(), s.db, "SELECT count(*), count(DISTINCT (holder, seq)) FROM spend_records")
	if sent := s.pooled.seq + s.direct.seq; err != nil || got != fmt.Sprintf("%d|%d", sent, sent) {
		t.Errorf("records|different: got %s (%v), want %d of both", got, err, sent)
	}
}

// cutAll ends every connection of app.
const cutAll = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'"

// shuttingDown begins a stop that waits for a client that stays.
func shuttingDown(t *testing.T, s *site) func() {
	last, err := pgx.Connect(t.Context(), s.server.URL(s.db))
	check(t, err)
	check(t, syscall.Kill(s.server.PID(), syscall.SIGTERM))
	_, err = last.Exec(t.Context(), cutAll)
	check(t, err)
	return func() {
		_ = last.Close(context.Background())
		check(t, s.server.Kill())
		check(t, s.server.Restart(t.Context()))
	}
}

// tooMany takes all connections that an ordinary user can have.
func tooMany(t *testing.T, s *site) func() {
	s.sql("CREATE ROLE greedy LOGIN PASSWORD 'x'; " + cutAll)
	var all []*pgx.Conn
	for {
		c, err := pgx.Connect(t.Context(), s.as("greedy:x"))
		if err != nil && len(all) >= 9 {
			break
		}
		check(t, err)
		all = append(all, c)
	}
	return func() {
		for _, c := range all {
			_ = c.Close(context.Background())
		}
	}
}
