package model

import (
	"context"
	"slices"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// off names the rules that the walk's own parts do not follow. The product has no
// switches: what it does itself is changed in what goes into it and what comes out.
type off struct {
	cursorUnlocked      bool // 2
	numberAtOpen        bool // 3
	returnAtOnce        bool // 4
	heldWhenReturning   bool // 5
	anyReply            bool // 7
	closeNamedOnly      bool // 9
	closeFirst          bool // 10
	numberFromEntries   bool // 11
	numberFromCursor    bool // 12
	segmentLost         bool // 13
	roomAtSend          bool // 13
	attemptUnheld       bool // 14
	lostLeaseForgotten  bool // 19
	deadlineFromReply   bool // 21
	epochOfPlace        bool // 22
	correctionKeepsLost bool // 23
	costAtAck           bool // 24
}

// rule is a store with one rule of the store's changed by what is done before and
// after its own transaction. Only a walk that does one thing at a time may use it.
type rule struct {
	store.Ledger

	db *database
}

func (r rule) exec(sql string, args ...any) error { return r.db.exec(sql, args...) }

// number reads one number.
func (r rule) number(sql string, args ...any) (n int64) {
	_ = r.db.conn.QueryRow(context.Background(), sql, args...).Scan(&n) // no row is 0
	return n
}

// gapsPass lets a batch begin anywhere.
type gapsPass struct{ rule }

func (r gapsPass) Commit(ctx context.Context, h store.HolderID, rows []store.Record) (uint64, error) {
	if err := r.exec(`INSERT INTO cursors (holder, last_seq) VALUES ($1, $2) ON CONFLICT (holder) DO UPDATE SET last_seq = $2 WHERE cursors.last_seq < $2`,
		string(h), int64(rows[0].Seq-1)); err != nil {
		return 0, err
	}
	return r.Ledger.Commit(ctx, h, rows)
}

// highest takes rows as they come; the cursor is the highest number there was, since
// numbers given at open come with gaps.
type highest struct{ rule }

func (r highest) Commit(ctx context.Context, h store.HolderID, rows []store.Record) (last uint64, err error) {
	for _, row := range rows {
		if last, err = gapsPass(r).Commit(ctx, h, []store.Record{row}); err != nil {
			return last, err
		}
	}
	return last, nil
}

// returnsAtOnce closes leases whose records may still be under way.
type returnsAtOnce struct{ rule }

func (r returnsAtOnce) Return(ctx context.Context, h store.HolderID, leases []store.ReturnLease) ([]store.LeaseRef, error) {
	leases = slices.Clone(leases)
	for i := range leases {
		leases[i].After = 0
	}
	return r.Ledger.Return(ctx, h, leases)
}

// forgetsRefusals stores the number of a grant only when it has given something.
type forgetsRefusals struct{ rule }

func (r forgetsRefusals) Grant(ctx context.Context, g store.Grant) (store.GrantResult, error) {
	// Numbers that were not stored may be passed.
	if err := r.exec(`UPDATE holders SET grant_seq = $2 WHERE id = $1 AND grant_seq < $2`, string(g.Holder), int64(g.Seq-1)); err != nil {
		return store.GrantResult{}, err
	}
	res, err := r.Ledger.Grant(ctx, g)
	if err == nil && res.Status == store.GrantOK && len(res.Leases) == 0 {
		err = r.exec(`UPDATE holders SET grant_seq = $2 WHERE id = $1`, string(g.Holder), int64(g.Seq-1))
	}
	return res, err
}

// grantsToAnybody does not ask whether the holder is open and unexpired.
type grantsToAnybody struct{ rule }

func (r grantsToAnybody) Grant(ctx context.Context, g store.Grant) (store.GrantResult, error) {
	res, err := r.Ledger.Grant(ctx, g)
	if err != nil || res.Status != store.GrantRenewFirst {
		return res, err
	}
	id := string(g.Holder)
	var closed bool
	var expires time.Time
	if r.db.conn.QueryRow(ctx, `SELECT closed, expires FROM holders WHERE id = $1`, id).Scan(&closed, &expires) != nil {
		return res, nil // never seen
	}
	if err := r.exec(`UPDATE holders SET closed = false, expires = clock_timestamp() + interval '1 h' WHERE id = $1`, id); err != nil {
		return res, err
	}
	if res, err = r.Ledger.Grant(ctx, g); err != nil {
		return res, err
	}
	return res, r.exec(`UPDATE holders SET closed = $2, expires = $3 WHERE id = $1`, id, closed, expires)
}

// holderStaysOpen closes the leases of an adopted holder and not the holder.
type holderStaysOpen struct{ rule }

func (r holderStaysOpen) CloseHolder(ctx context.Context, h store.HolderID, top uint64) (bool, error) {
	done, err := r.Ledger.CloseHolder(ctx, h, top)
	if err == nil && done {
		err = r.exec(`UPDATE holders SET closed = false, closed_at = NULL WHERE id = $1`, string(h))
	}
	return done, err
}

// reaperFrees gives a dead holder's remainder back to the budget.
type reaperFrees struct{ rule }

func (r reaperFrees) Reap(ctx context.Context, margin time.Duration) (int, error) {
	n, err := r.Ledger.Reap(ctx, margin)
	if err != nil || n == 0 {
		return n, err
	}
	return n, r.exec(`WITH l AS (UPDATE leases SET lost = 0 FROM (SELECT holder, seq, budget, lost FROM leases WHERE state = 'lost' AND lost > 0) o
			WHERE leases.holder = o.holder AND leases.seq = o.seq AND leases.budget = o.budget RETURNING o.budget, o.lost),
			s AS (SELECT budget, sum(lost)::bigint AS lost FROM l GROUP BY budget)
		UPDATE budgets SET spent = budgets.spent - s.lost, lost = budgets.lost - s.lost FROM s WHERE budgets.id = s.budget`)
}

// chargesLess takes an overrun off the remainder that a reaper charges.
type chargesLess struct{ rule }

func (r chargesLess) Reap(ctx context.Context, margin time.Duration) (int, error) {
	n, err := r.Ledger.Reap(ctx, margin)
	if err != nil || n == 0 {
		return n, err
	}
	return n, r.exec(`WITH o AS (SELECT holder, seq, budget, lost - greatest(0, granted - spent) AS cut FROM leases
				WHERE state = 'lost' AND overrun > 0 AND lost = greatest(0, granted - (spent - overrun)) AND lost > greatest(0, granted - spent)),
			l AS (UPDATE leases SET lost = leases.lost - o.cut FROM o
				WHERE leases.holder = o.holder AND leases.seq = o.seq AND leases.budget = o.budget),
			s AS (SELECT budget, sum(cut)::bigint AS cut FROM o GROUP BY budget)
		UPDATE budgets SET spent = budgets.spent - s.cut, lost = budgets.lost - s.cut FROM s WHERE budgets.id = s.budget`)
}

// chargesTwice books a record of a lost lease without replacing the reaper's charge.
type chargesTwice struct{ rule }

func (r chargesTwice) Commit(ctx context.Context, h store.HolderID, rows []store.Record) (uint64, error) {
	// The charge is out of sight during the commit.
	if err := r.exec(`UPDATE leases SET granted = granted + lost * 1000000, lost = 0 WHERE holder = $1 AND state = 'lost'`, string(h)); err != nil {
		return 0, err
	}
	last, err := r.Ledger.Commit(ctx, h, rows)
	if e := r.exec(`UPDATE leases SET lost = granted / 1000000, granted = granted % 1000000 WHERE holder = $1 AND state = 'lost'`, string(h)); err == nil {
		err = e
	}
	return last, err
}

// keepsCharge closes a lost lease and leaves its charge in the budget.
type keepsCharge struct{ rule }

func (r keepsCharge) hide(h store.HolderID) error {
	return r.exec(`UPDATE leases SET lost = 0 WHERE holder = $1 AND state = 'lost'`, string(h))
}

func (r keepsCharge) Return(ctx context.Context, h store.HolderID, leases []store.ReturnLease) ([]store.LeaseRef, error) {
	for _, l := range leases {
		if l.After > uint64(r.number(`SELECT last_seq FROM cursors WHERE holder = $1`, string(h))) {
			continue
		}
		if err := r.exec(`UPDATE leases SET lost = 0 WHERE holder = $1 AND seq = $2 AND budget = $3 AND state = 'lost'`, string(h), int64(l.Seq), l.Budget); err != nil {
			return nil, err
		}
	}
	return r.Ledger.Return(ctx, h, leases)
}

func (r keepsCharge) CloseHolder(ctx context.Context, h store.HolderID, top uint64) (bool, error) {
	if err := r.hide(h); err != nil {
		return false, err
	}
	return r.Ledger.CloseHolder(ctx, h, top)
}

// lettersAreFree writes dead letters that move no money.
type lettersAreFree struct{ rule }

func (r lettersAreFree) Commit(ctx context.Context, h store.HolderID, rows []store.Record) (uint64, error) {
	rows = slices.Clone(rows)
	for i := range rows {
		if rows[i].Defect() != "" {
			rows[i].Charges = nil
		}
	}
	return r.Ledger.Commit(ctx, h, rows)
}

// lettersAreSkipped leaves a record out that the database does not take.
type lettersAreSkipped struct{ rule }

func (r lettersAreSkipped) Commit(ctx context.Context, h store.HolderID, rows []store.Record) (last uint64, err error) {
	for _, row := range rows {
		last = uint64(r.number(`SELECT last_seq FROM cursors WHERE holder = $1`, string(h)))
		if row.Defect() != "" && row.Seq == last+1 {
			if err := r.exec(`UPDATE cursors SET last_seq = $2 WHERE holder = $1`, string(h), int64(row.Seq)); err != nil {
				return last, err
			}
			last = row.Seq
			continue
		}
		if last, err = r.Ledger.Commit(ctx, h, []store.Record{row}); err != nil {
			return last, err
		}
	}
	return last, nil
}

// mutation is one rule switched off.
type mutation struct {
	name    string // the reason's number and first words
	off     off
	store   func(*database) store.Ledger
	profile profile
	seed    uint64 // of a walk that is known to break a law; the next ones are tried too
}

func on(db *database) rule { return rule{db.store, db} }

// mutations has one or more for each of the 24 reasons of the ledger's rules.
func mutations() []mutation {
	return []mutation{
		{name: "1 a batch must start at or below last_seq + 1", store: func(db *database) store.Ledger { return gapsPass{on(db)} },
			profile: profile{"send": 24, "kill": 4}},
		{name: "2 the cursor row is inserted before it is locked and read", seed: 10, off: off{cursorUnlocked: true}, profile: profile{"pair": 30, "pass": 3, "kill": 8, "start": 12}},
		{name: "3 a record's number is given at its close", off: off{numberAtOpen: true}, store: func(db *database) store.Ledger { return highest{on(db)} },
			profile: profile{"kill": 0, "lose node": 0}},
		{name: "4 a return carries the last number that can touch its lease", off: off{returnAtOnce: true},
			store: func(db *database) store.Ledger { return returnsAtOnce{on(db)} }},
		{name: "5 a lease marked returning is never held from again", seed: 10, off: off{heldWhenReturning: true}},
		{name: "6 the highest grant number is stored, also when refused", store: func(db *database) store.Ledger { return forgetsRefusals{on(db)} },
			profile: profile{"limit": 4, "once more": 14, "leave": 4, "leave on": 12, "kill": 0, "lose node": 0}},
		{name: "7 a grant reply with another number is dropped", seed: 10, off: off{anyReply: true}, profile: profile{"stale reply": 12, "recall": 8, "send": 24, "kill": 2, "lose node": 0, "away": 0}},
		{name: "8 a grant locks the holder's row and requires it open", seed: 22, store: func(db *database) store.Ledger { return grantsToAnybody{on(db)} },
			profile: profile{"once more": 14, "kill": 4, "adopt": 10, "adopt on": 16}},
		{name: "9 adoption closes every lease of the holder found in the database", off: off{closeNamedOnly: true}},
		{name: "9 and the holder itself", seed: 22, store: func(db *database) store.Ledger { return holderStaysOpen{on(db)} },
			profile: profile{"once more": 14, "kill": 4, "adopt": 10, "adopt on": 16}},
		{name: "10 only when the cursor has reached the journal's last number", off: off{closeFirst: true}},
		{name: "11 segment headers carry the next number", off: off{numberFromEntries: true}, profile: profile{"burst": 4, "attempt often": 16, "send": 24, "deliver": 10, "deliver all": 20, "kill": 5, "settle": 4, "lose node": 0, "away": 0}},
		{name: "12 never from the cursor", seed: 8, off: off{numberFromCursor: true},
			profile: profile{"adopt": 12, "adopt on": 14, "adopter dies": 8, "kill": 5, "away": 0}},
		{name: "13 a long stream's open is copied forward", off: off{segmentLost: true}, profile: profile{"burst": 10, "attempt often": 10, "send": 24, "deliver": 30, "deliver all": 10, "kill": 3, "lose node": 0, "away": 0}},
		{name: "13 segments are reused only when every close in them is acked", off: off{roomAtSend: true},
			profile: profile{"burst": 4, "attempt often": 2, "send": 24, "deliver": 14, "kill": 6, "adopt": 8, "adopt on": 10, "lose node": 0}},
		{name: "14 an attempt after one that may have been billed first raises the hold", seed: 4, off: off{attemptUnheld: true},
			profile: profile{"attempt": 14}},
		{name: "15 a reaper never frees money", store: func(db *database) store.Ledger { return reaperFrees{on(db)} }},
		{name: "16 the charged remainder is granted − (spent − overrun)", store: func(db *database) store.Ledger { return chargesLess{on(db)} },
			profile: profile{"settle": 2, "overrun beside": 12, "cut off": 8, "kill": 0, "lose node": 0, "limit": 0, "attempt": 0}},
		{name: "17 a record for a lost lease replaces its charge", store: func(db *database) store.Ledger { return chargesTwice{on(db)} }},
		{name: "18 a return or an adoption of a lost lease gives the rest back", store: func(db *database) store.Ledger { return keepsCharge{on(db)} }},
		{name: "19 the answer to a repeated grant carries the lease's state", off: off{lostLeaseForgotten: true}, profile: profile{"cut off": 4, "kill": 0, "lose node": 0}},
		{name: "20 a dead letter moves its money", store: func(db *database) store.Ledger { return lettersAreFree{on(db)} }},
		{name: "20 and is the record of its request", store: func(db *database) store.Ledger { return lettersAreSkipped{on(db)} }},
		{name: "21 the worker's deadline counts from the first send", off: off{deadlineFromReply: true},
			profile: profile{"slow grant": 24, "pass long": 0, "cut off": 0, "kill": 0, "lose node": 0, "away": 0}},
		{name: "22 an epoch is 128 random bits per process life", seed: 14, off: off{epochOfPlace: true}, profile: profile{"leave": 10, "leave on": 20, "start": 14, "kill": 0, "lose node": 0, "send": 24, "away": 0}},
		{name: "23 a corrected lease stays lost at 0", off: off{correctionKeepsLost: true}, profile: profile{"correct": 8, "reap": 10, "lose node": 2, "pass long": 5}},
		{name: "24 hold out and cost in is one step at settle", off: off{costAtAck: true}},
	}
}
