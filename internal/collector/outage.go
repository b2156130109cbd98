package collector

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/penstock-gateway/penstock/internal/store"
)

// outage tells the log about a database that cannot be used: each cause once until it
// can be used again, however many loops and calls run into it.
type outage struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]bool
	last string
}

// maxCauses bounds what is remembered of one outage.
const maxCauses = 20

func newOutage(log *slog.Logger) *outage { return &outage{log: log, said: map[string]bool{}} }

// failed notes a failure that is about the database and not about a request.
func (o *outage) failed(err error) {
	cause := causeOf(err)
	o.mu.Lock()
	known := o.said[cause] || len(o.said) >= maxCauses
	o.said[cause], o.last = true, cause
	o.mu.Unlock()
	if !known {
		o.log.Warn("the database cannot be used, records and requests wait for it", "cause", cause)
	}
}

// over notes that the database works.
func (o *outage) over() {
	o.mu.Lock()
	was := len(o.said) > 0
	if was {
		o.said, o.last = map[string]bool{}, ""
	}
	o.mu.Unlock()
	if was {
		o.log.Info("the database can be used again")
	}
}

// cause is the latest one; empty while the database works.
func (o *outage) cause() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// causeOf is why the database cannot be used, without what was to be done with it.
func causeOf(err error) string {
	var u *store.Unavailable
	switch {
	case errors.As(err, &u):
		return u.Cause
	case errors.Is(err, context.DeadlineExceeded):
		return "the database did not answer in time"
	}
	return err.Error()
}
