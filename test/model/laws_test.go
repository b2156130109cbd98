package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
)

// broken says that a law does not hold.
type broken struct {
	law int
	why string
}

func (b broken) Error() string { return fmt.Sprintf("law %d is broken: %s", b.law, b.why) }

// budget is a row of the database with what the walk knows about it.
type budget struct {
	id                                  int64
	entity                              string
	limit, spent, overrun, leased, lost int64
	until                               *time.Time

	within  int64 // promised to the upstream, within caps, by requests on its leases
	over    int64 // billed beyond caps
	booked  int64 // cost of the requests that have a record
	excused int64 // of requests whose lease an administrator has corrected
}

// sum is what law 2 bounds.
func (b *budget) sum() int64 { return b.spent - b.overrun + b.leased }

type row struct {
	id     string
	cost   int64
	status store.Status
}

// books is what the database says.
type books struct {
	budgets []*budget
	byID    map[int64]*budget
	rows    map[string][]row
}

const recordsSQL = `SELECT request_id, cost, status FROM spend_records
	UNION ALL SELECT request_id, (payload::jsonb->>'Cost')::bigint, payload::jsonb->>'Status' FROM dead_letters`

func (w *world) read() (*books, error) {
	b := &books{byID: map[int64]*budget{}, rows: map[string][]row{}}
	var batch pgx.Batch
	batch.Queue(`SELECT id, entity, limit_n, spent, overrun, leased, lost, until_ts FROM budgets ORDER BY id`).Query(func(rows pgx.Rows) error {
		var x budget
		_, err := pgx.ForEachRow(rows, []any{&x.id, &x.entity, &x.limit, &x.spent, &x.overrun, &x.leased, &x.lost, &x.until}, func() error {
			one := x
			b.budgets = append(b.budgets, &one)
			b.byID[x.id] = &one
			return nil
		})
		return err
	})
	batch.Queue(recordsSQL).Query(func(rows pgx.Rows) error {
		var x row
		_, err := pgx.ForEachRow(rows, []any{&x.id, &x.cost, &x.status}, func() error { b.rows[x.id] = append(b.rows[x.id], x); return nil })
		return err
	})
	var err error
	w.do(func() { err = w.db.conn.SendBatch(context.Background(), &batch).Close() })
	w.account(b)
	return b, err
}

// account adds the walk's own account to the rows.
func (w *world) account(b *books) {
	for _, r := range w.requests {
		for _, ref := range r.leases {
			x := b.byID[ref.Budget]
			if x == nil {
				continue
			}
			cost, _ := r.booked()
			if len(b.rows[r.id()]) > 0 {
				x.booked += cost
			}
			if r.state == settled {
				x.over += r.over
			}
			if w.corrected[leaseID{r.k.holder, ref}] {
				x.excused += cost + r.within()
				continue
			}
			x.within += r.within()
		}
	}
}

// check reads the database and says which law is broken, if any.
func (w *world) check() (*books, error) {
	b, err := w.read()
	if err != nil {
		return b, err
	}
	for _, x := range b.budgets {
		if _, known := w.ends[x.id]; !known { // a reset gives it another end later
			w.ends[x.id] = time.Time{}
			if x.until != nil {
				w.ends[x.id] = *x.until
			}
		}
		last, known := w.limits[x.id]
		w.limits[x.id] = x.sum()
		switch {
		case x.sum() > x.limit && (!known || x.sum() > last):
			return b, broken{2, fmt.Sprintf("%s: spent − overrun + leased is %d of %d, and was %d", x, x.sum(), x.limit, last)}
		case x.within > x.sum():
			return b, broken{2, fmt.Sprintf("%s: requests were sent for %d, but only %d are held or spent", x, x.within, x.sum())}
		case x.overrun > x.over+x.excused:
			return b, broken{2, fmt.Sprintf("%s: %d overrun, but the upstream has billed %d beyond its caps", x, x.overrun, x.over)}
		case x.spent < 0 || x.overrun < 0:
			return b, broken{2, fmt.Sprintf("%s: below nothing", x)}
		}
	}
	return b, w.checkRecords(b)
}

func (b *budget) String() string {
	return fmt.Sprintf("budget %d (%.8s: limit %d, spent %d, overrun %d, leased %d, lost %d)", b.id, b.entity, b.limit, b.spent, b.overrun, b.leased, b.lost)
}

// checkRecords compares the records that there are with the requests.
func (w *world) checkRecords(b *books) error {
	for id, rows := range b.rows {
		r := w.request(id)
		switch {
		case strings.HasPrefix(id, "lost-"):
			return broken{1, "a record stands for one that was lost: " + id}
		case r == nil || r.state != settled && r.state != cut:
			return broken{1, fmt.Sprintf("%s has a record and is not over", id)}
		case len(rows) > 1:
			return broken{1, fmt.Sprintf("%s has %d records", id, len(rows))}
		}
		if cost, status := r.booked(); rows[0].cost != cost || rows[0].status != status {
			return broken{1, fmt.Sprintf("%s costs %d (%s), and its record says %d (%s)", id, cost, status, rows[0].cost, rows[0].status)}
		}
	}
	return nil
}

// checkRest is check when nothing is in flight any more.
func (w *world) checkRest() error {
	b, err := w.check()
	if err != nil {
		return err
	}
	for _, r := range w.requests {
		if (r.state == settled || r.state == cut) && len(b.rows[r.id()]) == 0 && !w.lostPods[r.k.pod.uid] {
			return broken{1, fmt.Sprintf("%s of %s has no record", r.id(), r.k)}
		}
	}
	explained, err := w.explained()
	if err != nil {
		return err
	}
	for _, x := range b.budgets {
		switch {
		case x.leased != 0:
			return broken{3, fmt.Sprintf("%s: still leased", x)}
		case x.lost != explained[x.id]:
			return broken{3, fmt.Sprintf("%s: lost with nodes are only %d", x, explained[x.id])}
		case x.spent != x.booked+x.lost:
			return broken{3, fmt.Sprintf("%s: spent is not the records' %d and what was lost", x, x.booked)}
		case x.overrun < x.over-w.unbooked(b, x.id):
			return broken{3, fmt.Sprintf("%s: the upstream has billed %d beyond its caps", x, x.over)}
		}
	}
	return nil
}

// unbooked is what lost nodes took with them of a budget's overrun.
func (w *world) unbooked(b *books, id int64) (sum int64) {
	for _, r := range w.requests {
		for _, ref := range r.leases {
			if ref.Budget == id && r.state == settled && len(b.rows[r.id()]) == 0 {
				sum += r.over
			}
		}
	}
	return sum
}

// explained sums, by budget, what may stand as lost: money of holders whose node is
// gone, or that ended in time while the ledger did not take their leases back.
func (w *world) explained() (map[int64]int64, error) {
	out := map[int64]int64{}
	var err error
	w.do(func() {
		var rows pgx.Rows
		if rows, err = w.db.conn.Query(context.Background(), `SELECT holder, budget, lost, state, late FROM leases WHERE state <> 'closed' OR late > 0`); err != nil {
			return
		}
		var holder, state string
		var id, lost, late int64
		_, err = pgx.ForEachRow(rows, []any{&holder, &id, &lost, &state, &late}, func() error {
			pod, _, _ := strings.Cut(holder, "/")
			gone := w.lostPods[pod] || w.orphaned[store.HolderID(holder)]
			switch {
			case late > 0:
				return broken{3, fmt.Sprintf("%d records came after their lease of %s was closed", late, holder)}
			case state == "open":
				return broken{3, "an open lease of " + holder}
			case gone:
				out[id] += lost
			case lost > 0:
				return broken{3, fmt.Sprintf("%d lost by %s, which is not lost", lost, holder)}
			}
			return nil
		})
	})
	return out, err
}
