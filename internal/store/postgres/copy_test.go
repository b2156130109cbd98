package postgres

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// However the driver reads, it gets the same bytes; that they are what PostgreSQL takes,
// the conformance tests show by reading each value back.
func TestCopyReader(t *testing.T) {
	t.Parallel()
	records := make([]store.Record, 300) // more than one chunk
	for i := range records {
		records[i] = store.Record{
			Seq: uint64(i + 1), RequestID: "r", Start: time.UnixMicro(1), End: time.UnixMicro(2), Tags: []string{"a", ""},
			Charges: []store.LeaseCharge{{LeaseRef: store.LeaseRef{Seq: 1, Budget: 2}, Cost: 3}},
		}
	}
	whole, err := io.ReadAll(&copyReader{holder: "h", records: records})
	if err != nil {
		t.Fatal(err)
	}
	if len(whole) < copyChunk {
		t.Fatalf("%d bytes are less than a chunk", len(whole))
	}
	bytewise, err := io.ReadAll(iotest.OneByteReader(&copyReader{holder: "h", records: records}))
	if err != nil || !bytes.Equal(whole, bytewise) {
		t.Errorf("read byte by byte it differs (%v)", err)
	}
	if err := iotest.TestReader(&copyReader{holder: "h", records: records}, whole); err != nil {
		t.Error(err)
	}
}

// Encoding a record must not cost memory by its values.
func TestCopyAllocations(t *testing.T) {
	r := store.Record{RequestID: "r", Start: time.UnixMicro(1), End: time.UnixMicro(2), Tags: []string{"a"}, Charges: make([]store.LeaseCharge, 1)}
	b := make([]byte, 0, 4096)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := appendRecord(b, "h", &r); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 4 { // of the charges' JSON
		t.Errorf("%v allocations per record", allocs)
	}
}
