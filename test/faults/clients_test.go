package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/test/load"
)

// clients are what answers were seen, over all connections.
type clients struct {
	input, output int64 // prices of what they ask for

	mu    sync.Mutex
	whole map[string]bool
	twice []string
	kinds map[string]int
	ended int
	last  int // of them, the last one that was whole
}

func newClients(input, output int64) *clients {
	return &clients{input: input, output: output, whole: map[string]bool{}, kinds: map[string]int{}}
}

func centsClients() *clients { return newClients(centsPrice, centsPrice) }

// note sorts an answer and tells what it was: "whole", "gone" when the connection broke,
// or a status with a code.
func (c *clients) note(a *load.Answer, err error) (kind string) {
	switch {
	case err != nil:
		kind = "gone"
	case a.Fault() == "":
		kind = "whole"
	default:
		kind = fmt.Sprint(a.Status, " ", errorCode(a.Body))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
	c.kinds[kind]++
	if kind == "whole" {
		if c.whole[a.RequestID] {
			c.twice = append(c.twice, a.RequestID)
		}
		c.whole[a.RequestID] = true
		c.last = c.ended
	}
	return kind
}

// patience is how long a client pauses after a failure, as real ones do.
const patience = 10 * time.Millisecond

// noted is note for load.Config, with a pause.
func (c *clients) noted(_ int64, a *load.Answer, err error) {
	if c.note(a, err) != "whole" {
		time.Sleep(patience)
	}
}

func (c *clients) seen(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[kind]
}

// all is how many requests have ended, in whichever way.
func (c *clients) all() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// refused says whether none of the last n was served.
func (c *clients) refused(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended-c.last >= n
}

func (c *clients) answers() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.whole)
}

// only fails the test when clients saw something else than these kinds.
func (c *clients) only(t *testing.T, kinds ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind, n := range c.kinds {
		if !slices.Contains(kinds, kind) {
			t.Errorf("%d clients got %q", n, kind)
		}
	}
	if len(c.twice) > 0 {
		t.Errorf("answers with the same id: %v", c.twice)
	}
}

// errorCode is the code of an error's envelope.
func errorCode(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}
