package stack

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
)

// shared is what all pods have in common.
type shared struct {
	fakeURL string
	relay   *Relay // nil: none

	mu      sync.Mutex
	servers []*pg.Server // the last one serves
	stores  []*postgres.Store
}

// use makes a server the one that is looked into.
func (s *shared) use(ctx context.Context, server *pg.Server) error {
	st, err := postgres.Open(ctx, postgres.Config{URL: server.URL(database), Timeout: startTimeout})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.servers) == 0 || s.servers[len(s.servers)-1] != server {
		s.servers = append(s.servers, server)
	}
	s.stores = append(s.stores, st)
	return nil
}

func (s *shared) stop() error {
	var errs []error
	for _, st := range s.stores {
		st.Close()
	}
	if s.relay != nil {
		s.relay.close()
	}
	for _, server := range s.servers {
		errs = append(errs, server.Stop())
	}
	return errors.Join(errs...)
}

// postgres is the server that the pods use now.
func (s *Stack) postgres() *pg.Server {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return s.shared.servers[len(s.shared.servers)-1]
}

// ledger is the database as the collectors see it, past PgBouncer.
func (s *Stack) ledger() *postgres.Store {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return s.shared.stores[len(s.shared.stores)-1]
}

// Standby starts a copy of the database that has every commit before it is answered.
func (s *Stack) Standby(ctx context.Context) (*pg.Server, error) {
	return pg.StartStandby(ctx, s.postgres())
}

// Failover leads the pods of a Relayed stack to the standby, which becomes the primary,
// and ends the old one. The connections are cut before the standby takes writes.
func (s *Stack) Failover(ctx context.Context, standby *pg.Server) error {
	old := s.postgres()
	if s.shared.relay == nil {
		return errors.New("cannot fail over without Config.Relayed")
	}
	s.shared.relay.move(standby.Address())
	if err := standby.Promote(ctx); err != nil {
		return fmt.Errorf("cannot fail over: %w", err)
	}
	return errors.Join(s.shared.use(ctx, standby), old.Kill())
}

// Resize restarts the gateway with another number of workers, by kill -9 of all of it.
func (s *Stack) Resize(ctx context.Context, workers int) error {
	if s.cfg.Workers < 2 || workers < 2 {
		return fmt.Errorf("cannot resize from %d to %d workers: want at least two, so that they have a supervisor", s.cfg.Workers, workers)
	}
	s.process(Gateway).replaceArg("--workers", fmt.Sprint(workers))
	return s.Kill9(ctx, Gateway)
}

// DatabaseURL is the database itself, past PgBouncer.
func (s *Stack) DatabaseURL() string { return s.postgres().URL(database) }
