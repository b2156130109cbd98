package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Meter is the state of one limit, as it stands in the database. All times are the
// database's, in Unix microseconds: no other clock decides what counts.
type Meter struct {
	// Clock is the latest time seen. It never goes back: were the database's clock set
	// back and forth again, permits granted in between would expire early.
	Clock int64  `json:"clock"`
	Cells []Cell `json:"cells,omitempty"` // ascending
	Slots []Slot `json:"slots,omitempty"` // one per holder
}

// Cell counts an amount until a time. What is granted at g and may be used for u counts
// until g + u + the window's length: each use in a window that ends at t was granted
// before t and counts still at t, so the uses never exceed what is counted.
type Cell struct {
	Until  int64
	Amount int64
}

// MarshalJSON writes a cell as [until, amount]: a busy limit has more than a hundred.
func (c Cell) MarshalJSON() ([]byte, error) { return json.Marshal([2]int64{c.Until, c.Amount}) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Cell) UnmarshalJSON(text []byte) error {
	var pair [2]int64
	err := json.Unmarshal(text, &pair)
	c.Until, c.Amount = pair[0], pair[1]
	return err
}

// Slot is what one holder has of a parallel limit. It counts until Ends, by which the
// requests in it have ended even if the holder was never heard of again, or until the
// holder is known to be dead.
type Slot struct {
	Holder string `json:"holder"`
	Count  int64  `json:"count"`
	Ends   int64  `json:"ends"`
}

// ParseMeter reads a meter's text; an empty one is a limit that nobody used yet.
func ParseMeter(text string) (Meter, error) {
	var m Meter
	if text == "" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return Meter{}, fmt.Errorf("cannot read the state of a limit: %w", err)
	}
	return m, nil
}

// Text is the meter as ParseMeter reads it.
func (m Meter) Text() (string, error) {
	text, err := json.Marshal(m)
	return string(text), err
}

// Holders lists who has slots.
func (m Meter) Holders() []string {
	var out []string
	for _, s := range m.Slots {
		out = append(out, s.Holder)
	}
	return out
}

// at copies the meter as it stands at now and returns the time to go by.
func (m Meter) at(now int64, dead map[string]bool) (Meter, int64) {
	now = max(now, m.Clock)
	out := Meter{Clock: now, Cells: make([]Cell, 0, len(m.Cells)+2)}
	for _, c := range m.Cells {
		if c.Until > now {
			out.Cells = append(out.Cells, c)
		}
	}
	for _, s := range m.Slots {
		if s.Ends > now && !dead[s.Holder] {
			out.Slots = append(out.Slots, s)
		}
	}
	return out, now
}

// counted is what the limit may give no more of.
func (m *Meter) counted() int64 {
	sum := int64(0)
	for _, c := range m.Cells {
		sum += c.Amount
	}
	for _, s := range m.Slots {
		sum += s.Count
	}
	return sum
}

// add counts n until a time.
func (m *Meter) add(until, n int64) {
	if n <= 0 {
		return
	}
	i, found := slices.BinarySearchFunc(m.Cells, until, func(c Cell, u int64) int { return int(min(max(c.Until-u, -1), 1)) })
	if !found {
		m.Cells = slices.Insert(m.Cells, i, Cell{Until: until})
	}
	m.Cells[i].Amount += n
}

// settle takes permits back: the unused part counts no more, the used part counts from
// now at the latest. A cell that has expired held nothing any more.
func (m *Meter) settle(r PermitReturn, settled int64) {
	i := slices.IndexFunc(m.Cells, func(c Cell) bool { return c.Until == r.Cell })
	if i < 0 {
		return
	}
	take := min(max(r.Granted, 0), m.Cells[i].Amount)
	if m.Cells[i].Amount -= take; m.Cells[i].Amount == 0 {
		m.Cells = slices.Delete(m.Cells, i, i+1)
	}
	m.add(min(r.Cell, settled), min(max(r.Used, 0), take))
}

// slots is what one holder has of a parallel limit.
func (m *Meter) slots(holder string) int64 {
	for _, s := range m.Slots {
		if s.Holder == holder {
			return s.Count
		}
	}
	return 0
}

// keep sets what one holder has of a parallel limit.
func (m *Meter) keep(s Slot) {
	m.Slots = slices.DeleteFunc(m.Slots, func(o Slot) bool { return o.Holder == s.Holder })
	if s.Count > 0 {
		m.Slots = append(m.Slots, s)
	}
}

// retry is the time until need fits below limit, when more is counted than the cells
// say by extra.
func (m *Meter) retry(limit, need, extra, now int64) time.Duration {
	over := m.counted() + extra + need - limit
	for _, c := range m.Cells {
		if over -= c.Amount; over <= 0 {
			return time.Duration(c.Until-now) * time.Microsecond
		}
	}
	return RetryUnknown
}

// reset is the time until nothing counts.
func (m *Meter) reset(now int64) time.Duration {
	if len(m.Cells) == 0 {
		return 0
	}
	return time.Duration(m.Cells[len(m.Cells)-1].Until-now) * time.Microsecond
}
