package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
)

// limitsCall asks for one request of each subject.
func limitsCall(holder string, seq uint64, limit int64, subjects ...string) store.LimitSync {
	s := store.LimitSync{LimitSync: ledger.LimitSync{Holder: holder}, Seq: seq, Window: ledger.Window{Length: time.Minute}}
	for i, name := range subjects {
		s.Asks = append(s.Asks, ledger.LimitAsk{Subject: name, Kind: ledger.LimitRequests, Limit: limit})
		s.Wants = append(s.Wants, ledger.LimitWant{{Ask: i, Amount: 1}})
	}
	return s
}

// Several collectors at the same limits, with and without locks: what is granted is
// the limit, no more and no less.
func TestLimitsOfManyCollectors(t *testing.T) {
	t.Parallel()
	const limit, collectors = 50, 4
	name := server.Database(t)
	if _, err := postgres.Migrate(t.Context(), server.URL(name), postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	var granted atomic.Int64
	var wg sync.WaitGroup
	for c := range collectors {
		s := open(t, bouncer.URL(name))
		wg.Go(func() {
			for seq := uint64(1); seq <= 40; seq++ {
				subjects := []string{"key:a", "team:b", "user:c"}
				res, err := s.SyncLimits(t.Context(), limitsCall(fmt.Sprint("pod/", c, "/aa"), seq, limit, subjects[c%3], subjects[(c+1)%3], subjects[(c+2)%3]))
				if err != nil {
					t.Error(err)
					return
				}
				for _, v := range res.Verdicts {
					if v.Granted {
						granted.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n != 3*limit {
		t.Errorf("%d granted over three limits of %d", n, limit)
	}
}
