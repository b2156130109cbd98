package model

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// TestWalks lets random walks of the rules as they stand look for a law that breaks.
// MODEL_WALKS says how many, MODEL_SEED the first one's seed, MODEL_STEPS how long
// they are. A walk of an even seed does one thing at a time, so that the seed
// reproduces it; one of an odd seed also has pairs of calls race in the database.
func TestWalks(t *testing.T) {
	first, walks, steps := setting(t, "MODEL_SEED", 1), setting(t, "MODEL_WALKS", 6), int(setting(t, "MODEL_STEPS", 250))
	for seed := first; seed < first+walks; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			if w := walked(t, seed, func(w *world) error { return w.walk(steps, nil) }, nil); w.err != nil {
				t.Errorf("%v\nreproduce with MODEL_SEED=%d MODEL_WALKS=1 MODEL_STEPS=%d\n%s", w.err, seed, steps, w.story())
			}
		})
	}
}

// TestEachRuleIsNeeded switches one rule off at a time: a law must break, in a walk
// that breaks none with the rule on. MODEL_TRIES says how many walks look for it.
func TestEachRuleIsNeeded(t *testing.T) {
	tries, steps := setting(t, "MODEL_TRIES", 40), int(setting(t, "MODEL_STEPS", 250))
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			walk := func(w *world) error { return w.walk(steps, m.profile) }
			for seed := m.seed; seed < m.seed+2*tries; seed += 2 { // even: one thing at a time
				broke := walked(t, seed, walk, &m)
				if law := (broken{}); !errors.As(broke.err, &law) {
					continue
				}
				t.Logf("%s: seed %d, step %d: %v", m.name, seed, broke.steps, broke.err)
				if w := walked(t, seed, walk, nil); w.err != nil {
					t.Errorf("with the rule on, seed %d: %v\n%s", seed, w.err, w.story())
				}
				return
			}
			t.Errorf("no law was broken in %d walks of %d steps from seed %d", tries, steps, m.seed)
		})
	}
}

// walked runs do in a world of its own, in a bubble of its own.
func walked(t *testing.T, seed uint64, do func(*world) error, m *mutation) (w *world) {
	t.Helper()
	db, dir := databases.borrow(t), t.TempDir()
	defer databases.giveBack(db)
	synctest.Test(t, func(*testing.T) {
		w = newWorld(db, dir, seed, m)
		if w.err == nil {
			w.fail(do(w))
		}
		w.end()
	})
	return w
}
