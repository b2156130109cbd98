// Package lifecycle runs the parts of a process: it starts them in order,
// stops them in reverse within a deadline, and lets the first error win.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Part is one thing that starts and stops. Every function may be nil.
type Part struct {
	Name string
	// Start returns when the part is ready for those that start after it. Its
	// context ends when the start-up is given up, not when Start returns.
	Start func(context.Context) error
	// Run blocks while the part works, on a goroutine of its own. A return
	// before Stop was called stops the group, also without an error.
	Run func() error
	// Stop makes Run return. It is called once if Start succeeded; its context
	// ends at the group's stop deadline.
	Stop func(context.Context) error
}

// Config of a Group.
type Config struct {
	// StopTimeout bounds all stops together. Zero means 30 s.
	StopTimeout time.Duration
	// Logger is told of each step. Nil means slog.Default.
	Logger *slog.Logger
}

// Group is an ordered list of parts. It is not safe for use from several
// goroutines.
type Group struct {
	cfg   Config
	parts []Part
}

// New makes an empty group.
func New(cfg Config) *Group {
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Group{cfg: cfg}
}

// Add puts a part behind those that it needs.
func (g *Group) Add(p Part) { g.parts = append(g.parts, p) }

// started is a part that runs.
type started struct {
	Part
	ended chan error // gets Run's result; nil for a part without Run
}

// Run starts the parts in order, waits until ctx is done or a part ends by
// itself, and stops those that were started in reverse. It returns the first
// error there was: nil when ctx ended it and every stop went well.
func (g *Group) Run(ctx context.Context) error {
	running, failed, err := g.start(ctx)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	// The caller's context is over; the stop has its own.
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.StopTimeout)
	defer cancel()
	for i := len(running) - 1; i >= 0; i-- {
		if stopErr := g.stop(stopCtx, running[i]); err == nil {
			err = stopErr
		}
	}
	return err
}

// start gives the parts that run, also when one of them could not start.
func (g *Group) start(ctx context.Context) ([]started, <-chan error, error) {
	failed := make(chan error, len(g.parts))
	var running []started
	for _, p := range g.parts {
		if ctx.Err() != nil {
			return running, failed, nil
		}
		if p.Start != nil {
			if err := p.Start(ctx); err != nil {
				return running, failed, fmt.Errorf("cannot start %s: %w", p.Name, err)
			}
		}
		s := started{Part: p}
		if p.Run != nil {
			s.ended = make(chan error, 1)
			go func() {
				err := p.Run()
				s.ended <- err
				failed <- endError(p.Name, err)
			}()
		}
		running = append(running, s)
		g.cfg.Logger.Debug("started", "part", p.Name)
	}
	return running, failed, nil
}

func endError(name string, err error) error {
	if err == nil {
		err = errors.New("it returned before it was stopped")
	}
	return fmt.Errorf("cannot go on without %s: %w", name, err)
}

// stop stops one part and waits for its Run, up to the deadline.
func (g *Group) stop(ctx context.Context, s started) error {
	var err error
	if s.Stop != nil {
		if stopErr := s.Stop(ctx); stopErr != nil {
			err = fmt.Errorf("cannot stop %s: %w", s.Name, stopErr)
		}
	}
	if s.ended != nil {
		select {
		case runErr := <-s.ended:
			if runErr != nil && err == nil {
				err = fmt.Errorf("cannot stop %s cleanly: %w", s.Name, runErr)
			}
		case <-ctx.Done():
			err = errors.Join(err, fmt.Errorf("cannot stop %s within StopTimeout %s", s.Name, g.cfg.StopTimeout))
		}
	}
	g.cfg.Logger.Debug("stopped", "part", s.Name)
	return err
}
