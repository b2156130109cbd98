// Package pg starts a real PostgreSQL and a real PgBouncer for tests and for the
// smoke command: on free ports, in a folder of their own, and ended with the
// process that started them.
package pg

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds how long a server may take until it answers.
const startTimeout = 60 * time.Second

// Config says how a PostgreSQL is started.
type Config struct {
	// Settings are added to postgresql.conf, "name = value" each.
	Settings []string
}

// Server is a running PostgreSQL. Its methods may be called from several
// goroutines, Kill, Restart and Stop from one at a time.
type Server struct {
	bin, dir string
	account  *syscall.Credential
	port     int
	process  *process
}

// Start makes a cluster in a temporary folder and starts it. fsync is off: the
// tests kill processes, not machines.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := tempDir("penstock-pg-", account)
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, account: account}
	if err := s.create(ctx, cfg); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Restart(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// create runs initdb and writes the settings.
func (s *Server) create(ctx context.Context, cfg Config) error {
	if err := s.run(ctx, "initdb", "--pgdata", s.data(), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"); err != nil {
		return err
	}
	var err error
	if s.port, err = FreePort(); err != nil {
		return err
	}
	settings := append([]string{
		"listen_addresses = '127.0.0.1'", fmt.Sprintf("port = %d", s.port), "unix_socket_directories = ''",
		"fsync = off", "max_connections = 100", "shared_buffers = '64MB'", "timezone = 'Asia/Tokyo'", // not UTC: nobody may rely on it
		"log_min_messages = warning",
	}, cfg.Settings...)
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot write settings: %w", err)
	}
	_, err = f.WriteString(strings.Join(settings, "\n") + "\n")
	return errors.Join(err, f.Close())
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL is the direct address of a database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// PID is the server's main process that runs now, or ran last.
func (s *Server) PID() int { return s.process.cmd.Process.Pid }

// CreateDatabase makes an empty database and returns its direct address.
func (s *Server) CreateDatabase(ctx context.Context, name string) (string, error) {
	err := s.run(ctx, "createdb", "--host", "127.0.0.1", "--port", strconv.Itoa(s.port), "--username", "postgres", "--template", "template0", name)
	return s.URL(name), err
}

// Database makes an empty database for one test and returns its name.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	random := make([]byte, 6)
	_, _ = crand.Read(random) // never fails
	name := "t" + hex.EncodeToString(random)
	if _, err := s.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return name
}

// Query runs SQL in a database with psql and returns its output, unaligned and
// without headers. For what a test wants to see or to do behind a store's back.
func (s *Server) Query(ctx context.Context, database, sql string) (string, error) {
	out, err := s.command(ctx, "psql", "--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set", "ON_ERROR_STOP=1",
		"--command", sql, s.URL(database)).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot run %q: %w: %s", sql, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Kill ends the server at once, as a crash would: all its processes die.
func (s *Server) Kill() error { return s.process.end(syscall.SIGQUIT) }

// Restart starts the server again after Kill or Stop, on the same port and data.
func (s *Server) Restart(ctx context.Context) error {
	p, err := spawn(s.command(context.WithoutCancel(ctx), "postgres", "-D", s.data()), s.dir, "postgres", syscall.SIGQUIT)
	if err != nil {
		return err
	}
	s.process = p
	return p.ready(ctx, func() error {
		return s.run(ctx, "pg_isready", "--quiet", "--host", "127.0.0.1", "--port", strconv.Itoa(s.port))
	})
}

// Stop ends the server and deletes its data.
func (s *Server) Stop() error {
	return errors.Join(s.process.end(syscall.SIGQUIT), os.RemoveAll(s.dir))
}

// run runs one of PostgreSQL's programs to its end.
func (s *Server) run(ctx context.Context, program string, args ...string) error {
	out, err := s.command(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot run %s: %w: %s", program, err, out)
	}
	return nil
}

func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	return cmd
}

// binaries finds the newest installed PostgreSQL of a Debian system.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("cannot find PostgreSQL: install the Debian package postgresql (looked for /usr/lib/postgresql/*/bin/initdb)")
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // a folder that is no number sorts first
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// Ports that the kernel gives to no outgoing connection on any usual Linux. One that it
// does give could be taken by some client while a server that was killed starts again.
const (
	firstPort = 12_000
	lastPort  = 32_000
)

// FreePort is one that nobody listens on, and that stays free while its server restarts.
func FreePort() (int, error) {
	var failed error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return port, l.Close()
		}
		failed = err
	}
	return 0, fmt.Errorf("cannot find a free port: %w", failed)
}
