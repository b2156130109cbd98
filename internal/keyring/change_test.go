package keyring

import (
	"testing"

	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

// Who keeps money of a key hears of its changes: a limit may have been lowered.
func TestChangesArePassedOn(t *testing.T) {
	changed := make(chan [32]byte, 10)
	set := func(c *Config) { c.OnChange = func(hash [32]byte) { changed <- hash } }
	withRing(t, set, func(t *testing.T, l *ledgertest.Ledger, _ *Keyring) {
		put(l, row("sk-a"))
		select {
		case got := <-changed:
			if got != hashOf("sk-a") {
				t.Errorf("heard of %x", got)
			}
		default:
			t.Error("heard of nothing")
		}
	})
}
