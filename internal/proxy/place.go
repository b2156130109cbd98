package proxy

import (
	"context"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"
)

// Reading and counting a prompt is work of the CPU: two milliseconds for 450 KB,
// twenty for a million tokens. So that a flood of large prompts leaves room for
// health checks and small requests, large bodies take places by their size, and
// there are as many as the processor's cores can work on at once.
const (
	// smallBody never waits: it is read and counted in a fraction of a millisecond.
	smallBody = 64 << 10
	// placesPerCore is how many bytes a core works on at once. A larger body takes all
	// places.
	placesPerCore = 1 << 20
	// placeWait is how long a request waits for a place before it gets 503.
	placeWait = 10 * time.Second
)

// places bounds the bytes that are being scanned and counted. Bodies above
// placesPerCore have a line of their own, so that no flood of them makes an ordinary
// prompt wait.
type places struct {
	ordinary, huge *semaphore.Weighted
	most           int64
}

func newPlaces() places {
	most := int64(placesPerCore) * int64(runtime.GOMAXPROCS(0))
	return places{ordinary: semaphore.NewWeighted(most), huge: semaphore.NewWeighted(most), most: most}
}

func (p *places) line(size int64) *semaphore.Weighted {
	if size > placesPerCore {
		return p.huge
	}
	return p.ordinary
}

// takePlace waits until there is room to work on the body. A client that leaves
// meanwhile is not waited for.
func (r *request) takePlace() *Refusal {
	size := int64(len(r.body.bytes()))
	if size <= smallBody {
		return nil
	}
	line := r.p.places.line(size)
	size = min(size, r.p.places.most)
	if !line.TryAcquire(size) {
		r.p.cfg.Metrics.CountWaits.Inc()
		ctx, cancel := context.WithTimeout(r.cancelled, placeWait)
		defer cancel()
		if line.Acquire(ctx, size) != nil {
			return r.refusePlace()
		}
	}
	r.line, r.place = line, size
	return nil
}

// errNoPlace keeps the connection: the body has been read already.
var errNoPlace = &Refusal{
	Status: fasthttp.StatusServiceUnavailable, Type: typeServer, Code: "overloaded",
	Message: "too many large prompts wait to be counted; retry shortly", RetryAfter: time.Second,
}

// errLeft is answered to nobody; counters must not take a client's own time limit for
// the gateway's.
var errLeft = &Refusal{Status: statusClientClosed, Type: typeInvalidRequest, Code: "client_closed",
	Message: "the client left before its prompt was counted", Close: true}

// refusePlace says whose patience ended, the gateway's or the client's.
func (r *request) refusePlace() *Refusal {
	if !r.clientGone() {
		return errNoPlace
	}
	r.p.cfg.Metrics.ClientGone.Inc()
	return errLeft
}

// leavePlace gives the place back, once.
func (r *request) leavePlace() {
	if r.place > 0 {
		r.line.Release(r.place)
		r.place = 0
	}
}
