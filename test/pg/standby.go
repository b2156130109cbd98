package pg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// StartStandby makes a copy of a running server that follows it until Promote. The
// primary waits with each commit until the standby has it, so that a failover loses none.
func StartStandby(ctx context.Context, primary *Server) (*Server, error) {
	dir, err := tempDir("penstock-standby-", primary.account)
	if err != nil {
		return nil, err
	}
	s := &Server{bin: primary.bin, dir: dir, account: primary.account}
	if err := s.follow(ctx, primary); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Restart(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	_, err = primary.Query(ctx, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'")
	if err == nil {
		_, err = primary.Query(ctx, "postgres", "SELECT pg_reload_conf()")
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// follow copies the primary's data and gives the copy an address of its own.
func (s *Server) follow(ctx context.Context, primary *Server) error {
	if err := s.run(ctx, "pg_basebackup", "--host", "127.0.0.1", "--port", strconv.Itoa(primary.port), "--username", "postgres",
		"--pgdata", s.data(), "--write-recovery-conf", "--checkpoint", "fast", "--wal-method", "stream", "--no-sync"); err != nil {
		return err
	}
	var err error
	if s.port, err = FreePort(); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot write settings: %w", err)
	}
	_, err = fmt.Fprintf(f, "port = %d\n", s.port) // the last one counts
	return errors.Join(err, f.Close())
}

// Promote makes a standby a primary.
func (s *Server) Promote(ctx context.Context) error {
	_, err := s.Query(ctx, "postgres", "SELECT pg_promote()")
	return err
}

// Address is where the server listens, as host:port.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }
