package admin

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/penstock-gateway/penstock/internal/store"
)

// correct sets right what the ledger had to assume: {"request_id", "spend"} sets what
// an interrupted request cost, {"lease"} takes back what a lost lease was charged.
// "reason" goes into the audit; "holder" and "seq" tell records of one request apart.
func (a *api) correct(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	by, err := changedBy(r)
	if err != nil {
		return nil, err
	}
	obj, err := readObject(w, r)
	if err != nil {
		return nil, err
	}
	c, err := readCorrection(newFieldReader(obj))
	if err != nil {
		return nil, err
	}
	c.record.By, c.lost.By = by, by
	done, err := c.apply(a, r)
	if err != nil {
		return nil, correctionError(err, c.field)
	}
	a.log.Info("spend corrected", "subject", done.Subject, "by", by, "before", done.Before, "after", done.After)
	return map[string]any{"subject": done.Subject, "spend_before": dollars(done.Before), "spend": dollars(done.After), "reason": orNull(done.Reason)}, nil
}

// correction is one of the two.
type correction struct {
	field  string // that names what is corrected
	record store.CorrectRecord
	lost   store.TakeBack
}

func (c correction) apply(a *api, r *http.Request) (store.Correction, error) {
	if c.field == "lease" {
		return a.store.TakeBack(r.Context(), c.lost)
	}
	return a.store.CorrectRecord(r.Context(), c.record)
}

func readCorrection(f *fieldReader) (correction, error) {
	request, lease, reason, holder := given(f.text("request_id")), given(f.text("lease")), given(f.text("reason")), given(f.text("holder"))
	seq, spend := f.count("seq"), f.amount("spend")
	for _, name := range f.obj.names {
		if !f.used[name] {
			f.fail(badField(printable(name), "is not known: want request_id and spend, or lease"))
		}
	}
	switch {
	case f.err != nil:
		return correction{}, f.err
	case (request == "") == (lease == ""):
		return correction{}, badField("request_id", "or lease is required, and not both")
	case lease != "" && (spend != nil || seq != 0 || holder != ""):
		return correction{}, badField("lease", "goes with no spend, holder or seq: all that was charged is taken back")
	case lease != "":
		from, ref, err := store.ParseLeaseName(lease)
		if err != nil {
			return correction{}, badField("lease", "must be holder/grant/budget, as penstock ledger verify names it")
		}
		return correction{field: "lease", lost: store.TakeBack{Holder: from, LeaseRef: ref, Reason: reason}}, nil
	case spend == nil || *spend == nil:
		return correction{}, badField("spend", "is required: what the request cost, in dollars")
	}
	return correction{field: "request_id", record: store.CorrectRecord{
		RequestID: request, Holder: store.HolderID(holder), Seq: seq, Cost: **spend, Reason: reason,
	}}, nil
}

func given(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// count reads a whole number; 0 where there is none.
func (f *fieldReader) count(name string) uint64 {
	raw, ok := f.take(name)
	if !ok || isNull(raw) {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 63)
	if err != nil {
		f.fail(badField(name, "must be a whole number"))
	}
	return n
}

// correctionError gives what the store says a status and the field at fault.
func correctionError(err error, field string) error {
	switch {
	case errors.Is(err, store.ErrCorrected):
		return &apiError{status: http.StatusConflict, kind: "bad_request_error", param: field, msg: field + " has nothing to correct (any more): each correction is made once"}
	case errors.Is(err, store.ErrNotFound):
		return &apiError{status: http.StatusNotFound, kind: "not_found_error", param: field, msg: field + " is not in the ledger"}
	}
	return err
}
