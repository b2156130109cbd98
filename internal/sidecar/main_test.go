package sidecar

import (
	"testing"

	"go.uber.org/goleak"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Ids of the frames in tests.
const (
	idRequests = iota + 1
	idInFlight
	idDuration
	idFill
)

func who(index uint32, epoch byte) *telemetryv1.Worker {
	return &telemetryv1.Worker{PodUid: "pod", Index: index, Role: "gateway", Epoch: []byte{15: epoch}}
}

// full is a worker's first frame: requests counted, in flight, and one observation each.
func full(w *telemetryv1.Worker, requests, inFlight float64) *telemetryv1.Frame {
	return &telemetryv1.Frame{
		Worker: w, Full: true,
		Families: []*telemetryv1.Family{
			{Id: idRequests, Name: familyAdmitted, Help: "Requests.", Type: telemetryv1.Family_TYPE_COUNTER},
			{Id: idInFlight, Name: familyInFlight, Help: "In flight.", Type: telemetryv1.Family_TYPE_GAUGE},
			{Id: idDuration, Name: "penstock_request_duration_seconds", Help: "Time.", Type: telemetryv1.Family_TYPE_HISTOGRAM,
				Labels: []string{"model"}, Buckets: []float64{1, 2}},
			{Id: idFill, Name: "penstock_journal_fill_ratio", Help: "Fill.", Type: telemetryv1.Family_TYPE_GAUGE},
		},
		Series: []*telemetryv1.Series{
			{Id: 1, Family: idRequests}, {Id: 2, Family: idInFlight},
			{Id: 3, Family: idDuration, Values: []string{"gpt-5"}}, {Id: 4, Family: idFill},
		},
		Points: points(requests, inFlight),
	}
}

func points(requests, inFlight float64) []*telemetryv1.Point {
	return []*telemetryv1.Point{
		{Series: 1, Value: requests}, {Series: 2, Value: inFlight},
		{Series: 3, Value: requests * 1.5, Counts: []uint64{0, uint64(requests), 0}}, {Series: 4, Value: inFlight / 100},
	}
}

// value is a sum as /metrics would show it; -1: there is no such series.
func value(m *merger, name string) float64 {
	sum := m.snapshot()[name]
	if len(sum.series) == 0 {
		return -1
	}
	total := 0.0
	for _, s := range sum.series {
		total += s.value.float()
	}
	return total
}
