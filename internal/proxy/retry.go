package proxy

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// firstPause comes before the second attempt; each further one is twice as long.
	firstPause = 100 * time.Millisecond
	// longestPause is what a request waits at most before an attempt, also where the
	// upstream asks for it by Retry-After. Where it asks for more, its answer is passed
	// on, and the client decides.
	longestPause = 5 * time.Second
)

// mayRepeat says whether a further attempt is allowed at all.
func (r *request) mayRepeat() bool {
	return r.attempts <= r.deployment.NumRetries && !r.clientGone()
}

// retryableStatus is what may pass by itself: the upstream did not do the work
// and, by the providers' terms, does not bill it.
func retryableStatus(status int) bool {
	switch status {
	case fasthttp.StatusRequestTimeout, fasthttp.StatusConflict, fasthttp.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// pauseFor is how long to wait before the next attempt: what the upstream asks for, or
// a growing time of which a random half is left out, so that requests that failed
// together do not come back together. It is false where the wait would be too long.
func (r *request) pauseFor(retryAfter []byte) (time.Duration, bool) {
	if seconds, err := strconv.Atoi(string(retryAfter)); err == nil && seconds >= 0 {
		pause := time.Duration(min(seconds, 3600)) * time.Second
		return pause, pause <= longestPause
	}
	pause := min(firstPause<<min(r.attempts-1, 10), longestPause)
	return pause/2 + rand.N(pause/2+1), true
}

// pause waits before the next attempt; false: the client has gone meanwhile. The time
// is the upstream's, not our overhead.
func (r *request) pause(d time.Duration) bool {
	began := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	defer func() { r.upstream += time.Since(began) }()
	select {
	case <-timer.C:
		return true
	case <-r.cancelled.Done():
		return false
	}
}
