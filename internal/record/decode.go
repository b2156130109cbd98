package record

import (
	"encoding/hex"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/journal"
)

// Decode reads a closed entry. The number stands in the entry, not in the
// payload: it was given when the payload was complete.
func Decode(c journal.Closed) (*ledgerv1.SpendRecord, error) {
	rec := new(ledgerv1.SpendRecord)
	if err := proto.Unmarshal(c.Payload, rec); err != nil {
		return nil, fmt.Errorf("cannot read record %d of the journal: %w", c.Seq, err)
	}
	rec.Seq = c.Seq
	return rec, nil
}

// Interrupted reads an open entry of a dead process as the record it is booked
// as: all that was held. The caller gives it its number.
func Interrupted(payload []byte) (*ledgerv1.SpendRecord, error) {
	rec := new(ledgerv1.SpendRecord)
	if err := proto.Unmarshal(payload, rec); err != nil {
		return nil, fmt.Errorf("cannot read an open entry of the journal: %w", err)
	}
	rec.Seq = 0
	rec.Status = ledgerv1.SpendRecord_STATUS_INTERRUPTED
	return rec, nil
}

// ErrorLost is the error code of a record made by Lost.
const ErrorLost = "record_lost"

// Lost is the record that stands for a number whose entry could not be read: it
// costs nothing, so that the numbers behind it can be committed.
func Lost(holder journal.Identity, seq uint64, now time.Time) *ledgerv1.SpendRecord {
	return &ledgerv1.SpendRecord{
		Seq:       seq,
		RequestId: fmt.Sprintf("lost-%s-%d", hex.EncodeToString(holder.Epoch[:]), seq),
		StartMs:   now.UnixMilli(),
		EndMs:     now.UnixMilli(),
		Status:    ledgerv1.SpendRecord_STATUS_INTERRUPTED,
		ErrorCode: ErrorLost,
	}
}
