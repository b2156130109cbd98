// Command configure writes pgbouncer.ini and userlist.txt of a pod into a folder, from
// DATABASE_URL, the address of PostgreSQL itself.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock-gateway/penstock/deploy/pgbouncer"
)

func main() {
	o := options{settings: given{}}
	flag.StringVar(&o.dir, "dir", "/etc/pgbouncer", "folder for pgbouncer.ini and userlist.txt")
	flag.BoolVar(&o.example, "example", false, "write the pgbouncer.ini that is shipped, for a server on this machine, without users")
	flag.Var(o.settings, "set", "NAME=VALUE of a setting that is not forced; may be repeated")
	flag.Parse()
	if err := o.write(os.Getenv("DATABASE_URL")); err != nil {
		fmt.Fprintln(os.Stderr, "configure:", err)
		os.Exit(1)
	}
}

type options struct {
	dir      string
	example  bool
	settings given
}

func (o options) write(url string) error {
	ini := filepath.Join(o.dir, "pgbouncer.ini")
	if o.example {
		return replace(ini, pgbouncer.INI(), 0o644)
	}
	users := filepath.Join(o.dir, "userlist.txt")
	o.settings["auth_file"] = users
	files, err := pgbouncer.Render(pgbouncer.Config{ServerURL: url, Settings: o.settings})
	if err != nil {
		return err
	}
	if err := replace(users, files.UserList, 0o600); err != nil {
		return err
	}
	return replace(ini, files.INI, 0o644)
}

// replace writes a file in one step, so that a PgBouncer that reloads never reads half.
func replace(path, text string, mode os.FileMode) error {
	next := path + ".next"
	if err := os.Remove(next); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("cannot write %s (--dir): %w", path, err)
	}
	if err := os.WriteFile(next, []byte(text), mode); err != nil {
		return fmt.Errorf("cannot write %s (--dir): %w", path, err)
	}
	return os.Rename(next, path)
}

// given collects --set.
type given map[string]string

func (g given) String() string { return "" }

func (g given) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return errors.New("want NAME=VALUE")
	}
	g[strings.TrimSpace(name)] = strings.TrimSpace(value)
	return nil
}
