package sidecar

import (
	"bytes"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// FuzzFrames merges whatever arrives as frames of two workers: nothing may panic, the
// bounds hold, and what is served stays readable and never falls.
func FuzzFrames(f *testing.F) {
	seed := func(frames ...*telemetryv1.Frame) {
		var b bytes.Buffer
		for _, frame := range frames {
			if _, err := protodelim.MarshalTo(&b, frame); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(b.Bytes())
	}
	seed(full(who(0, 1), 10, 3), full(who(0, 2), 5, 1), &telemetryv1.Frame{Points: points(12, 0)})
	seed(&telemetryv1.Frame{Points: points(1, 1)}, full(who(0, 1), 1, 1), full(who(0, 1), 0, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		server := &Server{merger: newMerger(), rates: newRates(time.Nanosecond, time.Second)}
		server.rates.begin(time.Unix(0, 0), server.merger)
		m := server.merger
		one, two := attach(t, m, who(0, 1)), attach(t, m, who(1, 1))
		in := bytes.NewReader(data)
		for i := 0; i < 50; i++ {
			frame := &telemetryv1.Frame{}
			if protodelim.UnmarshalFrom(in, frame) != nil {
				break
			}
			before := exact(m)
			m.apply([]*link{one, two}[i%2], frame, time.Now())
			if f := m.families[familyAdmitted]; f != nil && f.kind != telemetryv1.Family_TYPE_GAUGE && exact(m).less(before) {
				t.Fatalf("the total fell from %v to %v", before, exact(m))
			}
		}
		m.detach(one)
		if m.series > maxSeries || len(m.families) > maxFamilies {
			t.Fatalf("%d series, %d families", m.series, len(m.families))
		}
		scrape(t, server)
		total := exact(m)
		frames, _ := m.gone()
		for _, frame := range frames { // what is kept must be readable by the next sidecar
			newMerger().restore(frame)
		}
		if again := exact(m); again != total {
			t.Fatalf("keeping the state changed the total from %v to %v", total, again)
		}
	})
}

// scrape is what a registry checks, without its goroutines: their order would look like
// new coverage to the fuzzer.
func scrape(t *testing.T, server *Server) {
	out := make(chan prometheus.Metric, 10_000)
	collector{server}.Collect(out)
	close(out)
	seen := map[string]bool{}
	for metric := range out {
		line := &dto.Metric{}
		if err := metric.Write(line); err != nil {
			t.Fatalf("the scrape breaks: %v", err)
		}
		line.Counter, line.Gauge, line.Histogram = nil, nil, nil
		key := metric.Desc().String() + line.String()
		if seen[key] {
			t.Fatalf("twice in one scrape: %s", key)
		}
		seen[key] = true
	}
}

func exact(m *merger) amount {
	total := amount{}
	for _, s := range m.snapshot()[familyAdmitted].series {
		total = total.plus(s.value)
	}
	return total
}
