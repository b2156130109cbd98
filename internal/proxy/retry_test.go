package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/config"
)

func TestPauseFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why      string
		attempts int
		after    string
		low, top time.Duration
		ok       bool
	}{
		{"the first pause is short", 1, "", 50 * time.Millisecond, 100 * time.Millisecond, true},
		{"each further one is twice as long", 3, "", 200 * time.Millisecond, 400 * time.Millisecond, true},
		{"but bounded", 60, "", longestPause / 2, longestPause, true},
		{"the provider's own wish is obeyed", 1, "2", 2 * time.Second, 2 * time.Second, true},
		{"up to a point", 1, "6", 6 * time.Second, 6 * time.Second, false},
		{"an absurd wish does not overflow", 1, "9223372036854775807", time.Hour, time.Hour, false},
		{"a wish that is no number is none", 1, "Wed, 21 Oct 2026 07:28:00 GMT", 50 * time.Millisecond, 100 * time.Millisecond, true},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			r := &request{attempts: c.attempts}
			if d, ok := r.pauseFor([]byte(c.after)); d < c.low || d > c.top || ok != c.ok {
				t.Errorf("got %s %v, want %s to %s %v", d, ok, c.low, c.top, c.ok)
			}
		})
	}
}

// TestGoneClientIsNotWaitedFor: a pause ends when the client has gone.
func TestGoneClientIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	r := &request{cancelled: ctx, deployment: &config.Deployment{NumRetries: 3}}
	cancel()
	if r.pause(time.Hour) || r.mayRepeat() {
		t.Error("a request whose client has gone is repeated")
	}
}
