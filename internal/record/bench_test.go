package record

import (
	"crypto/rand"
	"testing"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/journal"
)

func BenchmarkOpenClose(b *testing.B) {
	id := journal.Identity{PodUID: "pod"}
	rand.Read(id.Epoch[:])
	j, err := journal.Create(journal.Config{Root: b.TempDir(), Identity: id, MaxSegments: 4})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = j.Stop() }() // the figures are in
	r := New(Config{Journal: j})
	rec := sample("0190c3a0-0000-7000-8000-000000000000")
	b.ReportAllocs()
	for b.Loop() {
		t, err := r.Open(rec)
		if err != nil {
			b.Fatal(err)
		}
		rec.Status = ledgerv1.SpendRecord_STATUS_SUCCESS
		seq, err := r.Close(t, rec)
		if err != nil {
			b.Fatal(err)
		}
		j.Ack(seq)
	}
}
