package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-gateway/penstock/internal/telemetry"
)

func withBody(p *Proxy, size int) *request {
	buf := make([]byte, size)
	r := &request{p: p, body: body{buf: &buf}}
	r.cancelled, r.cancel = context.WithCancel(context.Background())
	return r
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Proxy{cfg: Config{Metrics: telemetry.New(telemetry.Config{})}, places: newPlaces()}
		huge := withBody(p, int(p.places.most)+1)
		if huge.takePlace() != nil {
			t.Fatal("a body larger than all places was refused")
		}

		if withBody(p, smallBody).takePlace() != nil {
			t.Error("a small body had to wait")
		}
		if ordinary := withBody(p, placesPerCore); ordinary.takePlace() != nil {
			t.Error("a prompt of ordinary size waited for huge ones")
		} else {
			ordinary.leavePlace()
		}

		begin := time.Now()
		if late := withBody(p, int(p.places.most)+1); late.takePlace() != errNoPlace || time.Since(begin) != placeWait {
			t.Errorf("a body that found no place waited %v, want %v and then a refusal", time.Since(begin), placeWait)
		}

		gone := withBody(p, int(p.places.most)+1)
		time.AfterFunc(time.Second, gone.cancel)
		begin = time.Now()
		if gone.takePlace() != errLeft || time.Since(begin) != time.Second {
			t.Errorf("a client that left was waited for: %v", time.Since(begin))
		}
		if got := p.cfg.Metrics.ClientGone.Value(); got != 1 {
			t.Errorf("%d clients left by the counter, want 1", got)
		}

		next := withBody(p, int(p.places.most)+1)
		time.AfterFunc(time.Second, huge.leavePlace)
		if next.takePlace() != nil {
			t.Error("a place that was given back was not taken")
		}
		next.leavePlace()
		next.leavePlace() // as count and end both do
		if !p.places.huge.TryAcquire(p.places.most) {
			t.Error("places were lost")
		}
		if got := p.cfg.Metrics.CountWaits.Value(); got != 3 {
			t.Errorf("%d waits were counted, want 3", got)
		}
	})
}
