package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

// Limits keeps rate limits over all holders. The decisions are [ledger.DecideLimits]'s;
// docs/adr/0005-rate-limits.md says why they hold.
type Limits interface {
	// SyncLimits answers one numbered call of one holder in one transaction. A number
	// that was answered before changes nothing: what was granted under it is left to
	// run out.
	SyncLimits(ctx context.Context, s LimitSync) (LimitResult, error)
}

// LimitSync is one call. Numbers start at 1 and grow by one.
type LimitSync struct {
	ledger.LimitSync
	Seq    uint64
	Window ledger.Window
}

// LimitResult answers a LimitSync: grants parallel to its asks, verdicts to its wants;
// both empty when replayed.
type LimitResult struct {
	Replayed bool
	Grants   []ledger.LimitGrant
	Verdicts []ledger.LimitVerdict
}

// LimitMeter is the row of one limit.
type LimitMeter struct {
	Subject string
	Kind    ledger.LimitKind
	State   string // of ledger.Meter
	New     bool   // there is no row yet
}

// LimitRows are the rows that a call's asks stand in, parallel to them, with what the
// database said of each; names are cleaned as they are stored.
func LimitRows(asks []ledger.LimitAsk, found []LimitMeter) []LimitMeter {
	type name struct {
		subject string
		kind    ledger.LimitKind
	}
	byName := make(map[name]LimitMeter, len(found))
	for _, m := range found {
		byName[name{m.Subject, m.Kind}] = m
	}
	rows := make([]LimitMeter, len(asks))
	for i, a := range asks {
		n := name{CleanText(a.Subject), a.Kind}
		m, ok := byName[n]
		if !ok {
			m = LimitMeter{Subject: n.subject, Kind: n.kind, New: true}
		}
		rows[i] = m
	}
	return rows
}

// DecideLimits decides a call over the rows that it stands in, and writes the new states
// into them. dead is asked, when a slot was refused, which of the holders that have slots
// are known to be dead.
func DecideLimits(s LimitSync, rows []LimitMeter, now time.Time, holders int, dead func(holders []string) (map[string]bool, error)) (LimitResult, error) {
	st := ledger.LimitState{Now: now.UnixMicro(), Holders: holders, Window: s.Window, Meters: make([]ledger.Meter, len(rows))}
	for i, r := range rows {
		var err error
		if st.Meters[i], err = ledger.ParseMeter(r.State); err != nil {
			return LimitResult{}, fmt.Errorf("%s: %w", r.Subject, err)
		}
	}
	plan := ledger.DecideLimits(s.LimitSync, st)
	if plan.RefusedParallel(s.Asks) {
		var suspects []string
		for _, m := range st.Meters {
			suspects = append(suspects, m.Holders()...)
		}
		var err error
		if st.Dead, err = dead(suspects); err != nil {
			return LimitResult{}, err
		}
		if len(st.Dead) > 0 {
			plan = ledger.DecideLimits(s.LimitSync, st)
		}
	}
	for i := range rows {
		var err error
		if rows[i].State, err = plan.Meters[i].Text(); err != nil {
			return LimitResult{}, err
		}
	}
	return LimitResult{Grants: plan.Grants, Verdicts: plan.Verdicts}, nil
}

// SortLimitRows orders rows as locks are taken.
func SortLimitRows(rows []LimitMeter) []LimitMeter {
	out := slices.Clone(rows)
	slices.SortFunc(out, func(a, b LimitMeter) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}
