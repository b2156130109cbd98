package collector_test

import (
	"context"
	"sync"

	"github.com/penstock-gateway/penstock/internal/store"
)

// faultyStore is a real store whose commits can be made to fail, or to be seen.
type faultyStore struct {
	store.Store

	mu        sync.Mutex
	away      error                            // every call fails with it
	commit    func(n int) error                // before the n-th commit, from 1
	committed func(n int, ctx context.Context) // after the n-th commit, before its answer
	calls     int
	inFlight  map[store.HolderID]int
	overlap   bool    // two commits of one holder at a time
	sizes     [][]int // first and last number of each commit
}

func (f *faultyStore) set(change func(*faultyStore)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *faultyStore) heal() {
	f.set(func(f *faultyStore) { f.away, f.commit, f.committed = nil, nil, nil })
}

func (f *faultyStore) down() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.away
}

func (f *faultyStore) Commit(ctx context.Context, h store.HolderID, rows []store.Record) (uint64, error) {
	n, before, after := f.enter(h, rows)
	defer f.leave(h)
	if err := f.down(); err != nil {
		return 0, err
	}
	if before != nil {
		if err := before(n); err != nil {
			return 0, err
		}
	}
	cursor, err := f.Store.Commit(ctx, h, rows)
	if after != nil {
		after(n, ctx)
		if ctx.Err() != nil {
			return 0, ctx.Err() // committed, but the answer did not arrive
		}
	}
	return cursor, err
}

func (f *faultyStore) enter(h store.HolderID, rows []store.Record) (int, func(int) error, func(int, context.Context)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inFlight == nil {
		f.inFlight = map[store.HolderID]int{}
	}
	f.calls++
	f.inFlight[h]++
	f.overlap = f.overlap || f.inFlight[h] > 1
	f.sizes = append(f.sizes, []int{int(rows[0].Seq), int(rows[len(rows)-1].Seq)})
	return f.calls, f.commit, f.committed
}

func (f *faultyStore) leave(h store.HolderID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight[h]--
}

func (f *faultyStore) Key(ctx context.Context, id string) (store.Key, error) {
	if err := f.down(); err != nil {
		return store.Key{}, err
	}
	return f.Store.Key(ctx, id)
}

func (f *faultyStore) Admit(ctx context.Context, secret string) (store.Admission, error) {
	if err := f.down(); err != nil {
		return store.Admission{}, err
	}
	return f.Store.Admit(ctx, secret)
}

func (f *faultyStore) Subjects(ctx context.Context, names []string) ([]store.Subject, error) {
	if err := f.down(); err != nil {
		return nil, err
	}
	return f.Store.Subjects(ctx, names)
}

func (f *faultyStore) Changes(ctx context.Context, after int64) ([]string, int64, error) {
	if err := f.down(); err != nil {
		return nil, 0, err
	}
	return f.Store.Changes(ctx, after)
}

func (f *faultyStore) CloseHolder(ctx context.Context, h store.HolderID, top uint64) (bool, error) {
	if err := f.down(); err != nil {
		return false, err
	}
	return f.Store.CloseHolder(ctx, h, top)
}
