package telemetry

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// A collector's frame carries its own metrics and none of a worker's, which would make
// it look like one.
func TestPoolFrame(t *testing.T) {
	t.Parallel()
	p := NewPool(Config{})
	p.Servers.With("used").Set(2)
	p.Wait.Add(int64(1500 * time.Millisecond))
	p.MaxWait.Bind(func() float64 { return 0.25 })
	f := (&framer{registry: p.reporter.registry, worker: p.reporter.cfg.Worker.proto()}).next(time.Now())
	if f.Worker.Role != RoleCollector {
		t.Errorf("the role is %q", f.Worker.Role)
	}
	got := map[string]float64{}
	for i, s := range f.Series {
		family := f.Families[s.Family]
		if !strings.HasPrefix(family.Name, "penstock_pool_") {
			t.Errorf("%s is not a collector's", family.Name)
		}
		got[strings.Join(append([]string{family.Name}, s.Values...), " ")] = f.Points[i].Value
	}
	want := map[string]float64{
		"penstock_pool_up": 0, "penstock_pool_server_connections used": 2, "penstock_pool_max_wait_seconds": 0.25,
		"penstock_pool_transactions_total": 0, "penstock_pool_wait_seconds_total": 1.5,
	}
	for name, v := range want {
		if g, there := got[name]; !there || g != v {
			t.Errorf("%s is %v (there %v), want %v", name, g, there, v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("series %v", slices.Collect(maps.Keys(got)))
	}
}
