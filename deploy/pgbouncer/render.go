package pgbouncer

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Config is what differs between clusters.
type Config struct {
	// ServerURL is the address of PostgreSQL itself:
	// postgres://user:password@host:5432/database?sslmode=verify-full&sslrootcert=/path
	ServerURL string
	// Settings replace defaults of the table, or add settings that it does not have.
	Settings map[string]string
}

// Files are what a PgBouncer reads. Only UserList is secret.
type Files struct {
	INI      string // pgbouncer.ini
	UserList string // userlist.txt: keep it at mode 0600
}

// Render makes both files. It fails for a URL that PgBouncer could not follow to the
// letter and for a setting that is forced; its errors have no secret in them.
func Render(cfg Config) (Files, error) {
	s, err := parseServer(cfg.ServerURL)
	if err != nil {
		return Files{}, err
	}
	values, err := s.merged(cfg.Settings)
	if err != nil {
		return Files{}, err
	}
	for name, value := range values {
		if strings.ContainsAny(name+value, "\r\n") {
			return Files{}, fmt.Errorf("cannot use the PgBouncer setting %q: it has a line break", name)
		}
	}
	return Files{INI: s.ini(values), UserList: s.userList()}, nil
}

// merged are the values of all settings: the table's, then the URL's, then the given ones.
func (s server) merged(given map[string]string) (map[string]string, error) {
	values := make(map[string]string)
	forced := make(map[string]bool)
	for _, t := range Settings() {
		values[t.Name], forced[t.Name] = t.Value, t.Forced
	}
	for name, value := range s.settings {
		values[name] = value
	}
	for name, value := range given {
		switch {
		case forced[name] && value != values[name]:
			return nil, fmt.Errorf("cannot change the PgBouncer setting %s: it must stay %q, see deploy/pgbouncer", name, values[name])
		case s.settings[name] != "" && value != s.settings[name]:
			return nil, fmt.Errorf("cannot change the PgBouncer setting %s: the database URL says it", name)
		}
		values[name] = value
	}
	return values, nil
}

// INI is the pgbouncer.ini that is shipped: for a server on this machine, and users of
// whoever includes it.
func INI() string {
	s := server{host: "127.0.0.1", port: "5432", settings: map[string]string{"server_tls_sslmode": "prefer"}}
	values, _ := s.merged(nil) // nothing is given that could be refused
	return s.ini(values)
}

const head = `; PgBouncer of a Penstock pod: between the spend-collector and PostgreSQL.
; Works with PgBouncer 1.18 and newer. Written by deploy/pgbouncer from its table of
; settings, with the reason of each: change those, not this file. A setting marked
; (forced) stays as it is in every cluster.
`

func (s server) ini(values map[string]string) string {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("\n[databases]\n; Every database name goes to the one server, with the user and the password of the client.\n")
	fmt.Fprintf(&b, "* = %s\n\n[pgbouncer]\n", s.connection())
	done := make(map[string]bool)
	for _, t := range Settings() {
		why := t.Why
		if t.Forced {
			why += " (forced)"
		}
		writeSetting(&b, why, t.Name, values[t.Name])
		done[t.Name] = true
	}
	var added []string
	for name := range values {
		if !done[name] {
			added = append(added, name)
		}
	}
	slices.Sort(added)
	for _, name := range added {
		why := "Added for this cluster."
		if _, is := s.settings[name]; is {
			why = "From the database URL."
		}
		writeSetting(&b, why, name, values[name])
	}
	return b.String()
}

// lineWidth is where reasons are broken.
const lineWidth = 100

func writeSetting(b *strings.Builder, why, name, value string) {
	line := ";"
	for word := range strings.FieldsSeq(why) {
		if len(line)+1+len(word) > lineWidth {
			b.WriteString(line + "\n")
			line = ";"
		}
		line += " " + word
	}
	b.WriteString(line + "\n" + strings.TrimRight(name+" = "+value, " ") + "\n")
}

// server is what a URL says.
type server struct {
	host, port     string
	user, password string
	settings       map[string]string
}

// connection is the server's part of a [databases] line.
func (s server) connection() string {
	return fmt.Sprintf("host=%s port=%s", quoteValue(s.host), s.port)
}

// quoteValue is a value of a [databases] line.
func quoteValue(v string) string {
	if v != "" && !strings.ContainsAny(v, " '=\t\\") {
		return v
	}
	return "'" + strings.ReplaceAll(v, "'", "''") + "'"
}

func (s server) userList() string {
	if s.user == "" {
		return ""
	}
	quote := func(v string) string { return `"` + strings.ReplaceAll(v, `"`, `""`) + `"` }
	return quote(s.user) + " " + quote(s.password) + "\n"
}

// tlsParameters are a URL's parameters that PgBouncer has a setting for.
func tlsParameters() map[string]string {
	return map[string]string{
		"sslmode": "server_tls_sslmode", "sslrootcert": "server_tls_ca_file",
		"sslcert": "server_tls_cert_file", "sslkey": "server_tls_key_file",
	}
}

// prismaParameters size a client's own pool: in a URL that was LiteLLM's they are no use
// here and no harm.
func prismaParameters() []string {
	return []string{"connection_limit", "pool_timeout", "pgbouncer", "socket_timeout", "statement_cache_size"}
}

// parseServer reads a URL. What it says and PgBouncer cannot do is an error, because a
// URL that asks for a checked certificate must never end in an unchecked one.
func parseServer(raw string) (server, error) {
	u, err := url.Parse(raw)
	if strings.Contains(raw, ",") && err != nil || err == nil && strings.Contains(u.Host, ",") {
		return server{}, errors.New("cannot use a database URL (DATABASE_URL) with several hosts: PgBouncer would send transactions to all of them in turn; give it the name that follows the primary")
	}
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") || u.Hostname() == "" {
		return server{}, errors.New("cannot read the database URL (DATABASE_URL): want postgres://user:password@host:port/database")
	}
	s := server{
		host: u.Hostname(), port: cmp.Or(u.Port(), "5432"), user: u.User.Username(),
		settings: map[string]string{"server_tls_sslmode": "prefer", "stats_users": u.User.Username()},
	}
	s.password, _ = u.User.Password()
	switch {
	case s.user == "" || s.password == "":
		return server{}, errors.New("cannot use the database URL (DATABASE_URL): PgBouncer needs the user and the password in it")
	case strings.ContainsAny(s.user+s.password, "\r\n\x00"):
		return server{}, errors.New("cannot use the database URL (DATABASE_URL): user or password has a line break")
	case strings.ContainsAny(s.user, ", "):
		return server{}, errors.New("cannot use the database URL (DATABASE_URL): PgBouncer takes no comma or space in a user of its console")
	}
	return s, s.parameters(u.Query())
}

func (s server) parameters(q url.Values) error {
	for name, values := range q {
		value := values[len(values)-1]
		setting, known := tlsParameters()[name]
		switch {
		case known:
			s.settings[setting] = value
		case name == "connect_timeout":
			s.settings["server_connect_timeout"] = value
		case slices.Contains(prismaParameters(), name), name == "application_name", name == "schema" && value == "public":
		default:
			return fmt.Errorf("cannot use the parameter %s of the database URL (DATABASE_URL) with PgBouncer", name)
		}
	}
	return s.checkTLS()
}

func (s server) checkTLS() error {
	mode, ca := s.settings["server_tls_sslmode"], s.settings["server_tls_ca_file"]
	switch mode {
	case "disable", "allow", "prefer", "require":
	case "verify-ca", "verify-full":
		if ca == "" {
			return fmt.Errorf("cannot check the server's certificate (sslmode=%s): the database URL needs sslrootcert", mode)
		}
	default:
		return fmt.Errorf("cannot use sslmode=%s of the database URL: want disable, allow, prefer, require, verify-ca or verify-full", mode)
	}
	if ca == "system" {
		return errors.New("cannot use sslrootcert=system with PgBouncer: name the file, e.g. /etc/ssl/certs/ca-certificates.crt")
	}
	// libpq's rule: a root certificate turns require into verify-ca.
	if mode == "require" && ca != "" {
		s.settings["server_tls_sslmode"] = "verify-ca"
	}
	return nil
}
