package keyring

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

// A duration in the log is for people: a bare number of nanoseconds is not.
func TestTheLogSaysHowLongKeysAreServed(t *testing.T) {
	var out bytes.Buffer
	withRing(t, func(c *Config) {
		c.StaleFor, c.Logger = 90*time.Second, slog.New(slog.NewJSONHandler(&out, nil))
	}, func(t *testing.T, l *ledgertest.Ledger, _ *Keyring) {
		l.GoAway()
		synctest.Wait()
		if text := out.String(); strings.Count(text, `"at_most":"1m30s"`) != 1 {
			t.Errorf("got %s", text)
		}
	})
}
