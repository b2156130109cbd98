package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/penstock-gateway/penstock/deploy/pgbouncer"
)

const bouncerPath = "/usr/sbin/pgbouncer"

// BouncerConfig says how a PgBouncer is started.
type BouncerConfig struct {
	Server *Server
	// Settings replace or add to those of deploy/pgbouncer/pgbouncer.ini.
	Settings map[string]string
}

// Bouncer is a running PgBouncer in transaction mode. Kill, Restart and Stop may
// be called from one goroutine at a time.
type Bouncer struct {
	dir     string
	account *syscall.Credential
	port    int
	process *process
}

// StartBouncer starts a PgBouncer before a server, with the settings that are
// shipped: only addresses, authentication and the log differ.
func StartBouncer(ctx context.Context, cfg BouncerConfig) (*Bouncer, error) {
	if _, err := os.Stat(bouncerPath); err != nil {
		return nil, fmt.Errorf("cannot find PgBouncer: install the Debian package pgbouncer: %w", err)
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := tempDir("penstock-pgbouncer-", account)
	if err != nil {
		return nil, err
	}
	b := &Bouncer{dir: dir, account: account}
	if err := b.configure(cfg); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := b.Restart(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

// configure writes the shipped file with the test's addresses.
func (b *Bouncer) configure(cfg BouncerConfig) error {
	var err error
	if b.port, err = freePort(); err != nil {
		return err
	}
	settings := map[string]string{
		"*":           fmt.Sprintf("host=127.0.0.1 port=%d", cfg.Server.port),
		"listen_port": fmt.Sprint(b.port),
		"auth_type":   "any", // the server trusts this machine
		"auth_file":   "",
	}
	for k, v := range cfg.Settings {
		settings[k] = v
	}
	// With auth_type any PgBouncer logs in as the user of the database line.
	settings["*"] += " user=postgres"
	return os.WriteFile(b.file(), []byte(override(pgbouncer.INI(), settings)), 0o644)
}

func (b *Bouncer) file() string { return filepath.Join(b.dir, "pgbouncer.ini") }

// override replaces the values of settings and adds those that are not there.
func override(ini string, settings map[string]string) string {
	var out []string
	seen := make(map[string]bool)
	for line := range strings.Lines(ini) {
		name, _, is := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		value, replaced := settings[name]
		if is && replaced && !strings.HasPrefix(name, ";") {
			line = name + " = " + value + "\n"
			seen[name] = true
		}
		out = append(out, line)
	}
	for name, value := range settings {
		if !seen[name] {
			out = append(out, name+" = "+value+"\n")
		}
	}
	return strings.Join(out, "")
}

// URL is the pooled address of a database.
func (b *Bouncer) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", b.port, database)
}

// PID is the process that runs now, or ran last.
func (b *Bouncer) PID() int { return b.process.cmd.Process.Pid }

// Kill ends PgBouncer with kill -9.
func (b *Bouncer) Kill() error { return b.process.end(syscall.SIGKILL) }

// Restart starts PgBouncer again after Kill, on the same port.
func (b *Bouncer) Restart(ctx context.Context) error {
	cmd := exec.Command(bouncerPath, b.file())
	cmd.Dir = b.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: b.account}
	p, err := spawn(cmd, b.dir, "pgbouncer", syscall.SIGKILL)
	if err != nil {
		return err
	}
	b.process = p
	return p.ready(ctx, func() error {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.port))
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// Stop ends PgBouncer and deletes its folder.
func (b *Bouncer) Stop() error { return errors.Join(b.Kill(), os.RemoveAll(b.dir)) }
