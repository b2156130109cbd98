package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/penstock-gateway/penstock/deploy/pgbouncer"
)

const bouncerPath = "/usr/sbin/pgbouncer"

// BouncerConfig says how a PgBouncer is started.
type BouncerConfig struct {
	Server *Server
	// ServerURL is what PgBouncer is configured from; empty: the server's, with the user
	// postgres. Whatever its password, a Server trusts this machine.
	ServerURL string
	// Settings replace or add to those of deploy/pgbouncer, as far as it lets them.
	Settings map[string]string
}

// Bouncer is a running PgBouncer in transaction mode. Kill, Restart, Configure and Stop
// may be called from one goroutine at a time.
type Bouncer struct {
	dir     string
	account *syscall.Credential
	port    int
	user    *url.Userinfo
	process *process
}

// StartBouncer starts a PgBouncer before a server, configured as that of a pod: only its
// port and the folder of its files differ.
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
	if b.port, err = FreePort(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := b.write(cfg); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := b.Restart(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

// Configure gives a running PgBouncer another configuration, which it takes up as it
// does in a pod: on SIGHUP.
func (b *Bouncer) Configure(cfg BouncerConfig) error {
	if err := b.write(cfg); err != nil {
		return err
	}
	return b.process.cmd.Process.Signal(syscall.SIGHUP)
}

// write writes the files as deploy/pgbouncer makes them.
func (b *Bouncer) write(cfg BouncerConfig) error {
	address := cfg.ServerURL
	if address == "" {
		address = fmt.Sprintf("postgres://postgres:postgres@127.0.0.1:%d/postgres?sslmode=disable", cfg.Server.port)
	}
	settings := map[string]string{"listen_port": fmt.Sprint(b.port), "auth_file": filepath.Join(b.dir, "userlist.txt")}
	maps.Copy(settings, cfg.Settings)
	files, err := pgbouncer.Render(pgbouncer.Config{ServerURL: address, Settings: settings})
	if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("cannot read ServerURL") // without the password in it
	}
	b.user = u.User
	users := filepath.Join(b.dir, "userlist.txt")
	if err := os.WriteFile(users, []byte(files.UserList), 0o600); err != nil {
		return err
	}
	if b.account != nil {
		if err := os.Chown(users, int(b.account.Uid), int(b.account.Gid)); err != nil {
			return err
		}
	}
	return os.WriteFile(b.file(), []byte(files.INI), 0o644)
}

func (b *Bouncer) file() string { return filepath.Join(b.dir, "pgbouncer.ini") }

// Log is all that PgBouncer has said.
func (b *Bouncer) Log() (string, error) {
	text, err := os.ReadFile(b.process.log)
	return string(text), err
}

// URL is the pooled address of a database; "pgbouncer" is the console.
func (b *Bouncer) URL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", b.user, b.port, database)
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
