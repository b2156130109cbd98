package pgbouncer_test

import (
	"os"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/deploy/pgbouncer"
)

// The shipped file is what the table makes.
func TestTheShippedFileIsCurrent(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("pgbouncer.ini")
	if err != nil {
		t.Fatal(err)
	}
	if string(file) != pgbouncer.INI() {
		t.Error("pgbouncer.ini is not what the table makes: go run ./deploy/pgbouncer/configure --example --dir deploy/pgbouncer")
	}
}

func TestEverySettingHasAReason(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range pgbouncer.Settings() {
		if seen[s.Name] || len(s.Why) < 10 {
			t.Errorf("%s stands twice or has no reason", s.Name)
		}
		seen[s.Name] = true
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	const url = "postgres://app:p%20w%22d@db.example:5433/penstock"
	for _, c := range []struct {
		why, url string
		settings map[string]string
		want     []string // lines of pgbouncer.ini
		err      string   // part of it
	}{
		{"TLS where the server has it, as libpq does", url, nil, []string{"server_tls_sslmode = prefer", "* = host=db.example port=5433", "stats_users = app"}, ""},
		{"TLS as the URL asks", url + "?sslmode=verify-full&sslrootcert=/ca.pem", nil, []string{"server_tls_sslmode = verify-full", "server_tls_ca_file = /ca.pem"}, ""},
		{"a root certificate makes require check it, as in libpq", url + "?sslmode=require&sslrootcert=/ca.pem", nil, []string{"server_tls_sslmode = verify-ca"}, ""},
		{"a client certificate", url + "?sslmode=require&sslcert=/c.pem&sslkey=/k.pem", nil, []string{"server_tls_cert_file = /c.pem", "server_tls_key_file = /k.pem"}, ""},
		{"no port", "postgresql://a:b@h/d", nil, []string{"* = host=h port=5432"}, ""},
		{"an IPv6 address", "postgres://a:b@[2001:db8::1]:5432/d", nil, []string{"* = host=2001:db8::1 port=5432"}, ""},
		{"Prisma's parameters", url + "?connection_limit=5&pool_timeout=3&pgbouncer=true&schema=public", nil, nil, ""},
		{"a default is replaced", url, map[string]string{"server_lifetime": "60"}, []string{"server_lifetime = 60"}, ""},
		{"a setting is added", url, map[string]string{"so_reuseport": "0"}, []string{"so_reuseport = 0"}, ""},
		{"a forced setting may be said as it is", url, map[string]string{"pool_mode": "transaction"}, nil, ""},

		{"a forced setting", url, map[string]string{"pool_mode": "session"}, nil, "pool_mode"},
		{"the URL against a setting", url + "?sslmode=require", map[string]string{"server_tls_sslmode": "disable"}, nil, "server_tls_sslmode"},
		{"a line break would be another setting", url, map[string]string{"server_lifetime": "1\nadmin_users = eve"}, nil, "line break"},
		{"verification without a certificate to verify by", url + "?sslmode=verify-full", nil, nil, "sslrootcert"},
		{"the system's certificates, which PgBouncer has no word for", url + "?sslmode=verify-full&sslrootcert=system", nil, nil, "sslrootcert=system"},
		{"an unknown mode", url + "?sslmode=yes", nil, nil, "sslmode=yes"},
		{"a parameter that would be lost", url + "?target_session_attrs=read-write", nil, nil, "target_session_attrs"},
		{"a schema that PgBouncer would not set", url + "?schema=other", nil, nil, "schema"},
		{"several hosts", "postgres://a:b@h1:5432,h2:5432/d", nil, nil, "several hosts"},
		{"no user", "postgres://h/d", nil, nil, "user and the password"},
		{"no password", "postgres://a@h/d", nil, nil, "user and the password"},
		{"nothing", "", nil, nil, "DATABASE_URL"},
		{"not a database", "mysql://a:secret@h/d", nil, nil, "DATABASE_URL"},
		{"a port that is none", "postgres://a:secret@h:port/d", nil, nil, "DATABASE_URL"},
		{"a password with a line break", "postgres://a:sec%0Aret@h/d", nil, nil, "line break"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			files, err := pgbouncer.Render(pgbouncer.Config{ServerURL: c.url, Settings: c.settings})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "p w") {
					t.Errorf("got %v, want an error that names %s and no secret", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range c.want {
				if !strings.Contains(files.INI, "\n"+line+"\n") {
					t.Errorf("no line %q in\n%s", line, files.INI)
				}
			}
			if strings.Contains(files.INI, `p w"d`) {
				t.Error("the password is not in userlist.txt alone")
			}
		})
	}
	files, err := pgbouncer.Render(pgbouncer.Config{ServerURL: url})
	if want := "\"app\" \"p w\"\"d\"\n"; err != nil || files.UserList != want {
		t.Errorf("userlist.txt is %q (%v), want %q", files.UserList, err, want)
	}
}

// Whatever the URL, no line of the file comes from it by accident.
func FuzzRender(f *testing.F) {
	f.Add("postgres://app:pw@h:5432/d?sslmode=require")
	f.Add("postgres://a%0Ab:c@h/d")
	f.Add("postgres://a:b@h%20user=x/d?sslrootcert=%0Aadmin_users=eve")
	names := map[string]bool{"*": true, "server_tls_sslmode": true, "server_tls_ca_file": true, "server_tls_cert_file": true, "server_tls_key_file": true}
	for _, s := range pgbouncer.Settings() {
		names[s.Name] = true
	}
	f.Fuzz(func(t *testing.T, url string) {
		files, err := pgbouncer.Render(pgbouncer.Config{ServerURL: url})
		if err != nil {
			return
		}
		if strings.Count(files.UserList, "\n") != 1 {
			t.Errorf("userlist.txt has more than one user: %q", files.UserList)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(files.INI) {
			name, _, is := strings.Cut(line, " =")
			if is && !strings.HasPrefix(line, ";") && (!names[name] || seen[name]) {
				t.Errorf("a line that is not of the table: %q", line)
			}
			seen[name] = is
		}
	})
}
