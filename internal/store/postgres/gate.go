package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// gate keeps attempts to connect apart while they fail, over all lanes: a database that
// comes back meets one attempt per collector and second, and not one per waiting call.
// A call that finds it shut fails at once, with what the last attempt met.
type gate struct {
	mu    sync.Mutex
	why   error // of the last attempt; nil: it went well
	pause time.Duration
	until time.Time
}

const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// shut is the error of a call that found the gate shut.
type shut struct{ why error }

func (s shut) Error() string { return s.why.Error() }
func (s shut) Unwrap() error { return s.why }

// enter is asked before each attempt.
func (g *gate) enter(context.Context, *pgx.ConnConfig) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why != nil && time.Now().Before(g.until) {
		return shut{why: g.why}
	}
	return nil
}

// tried is told how a first word to the database went, err nil: well. PgBouncer lets
// clients in also when it has no server, so a connection alone means nothing. Nothing is
// learned from a call that found the gate shut, nor from one whose time ended.
func (g *gate) tried(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.As(err, new(shut)) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.why = err
	if err == nil {
		g.pause = 0
		return
	}
	g.pause = min(max(2*g.pause, firstPause), lastPause)
	// Collectors of many pods lost the database at the same moment: they must not come
	// back at the same moment as well.
	g.until = time.Now().Add(time.Duration(float64(g.pause) * (0.5 + rand.Float64()/2)))
}
