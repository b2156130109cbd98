package sidecar

import (
	"fmt"
	"math"
	"testing"
	"time"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

func attach(t *testing.T, m *merger, w *telemetryv1.Worker) *link {
	t.Helper()
	l, refused := m.attach(w)
	if refused != "" {
		t.Fatalf("refused: %s", refused)
	}
	return l
}

func tell(t *testing.T, m *merger, l *link, f *telemetryv1.Frame) {
	t.Helper()
	if !m.apply(l, f, time.Now()) {
		t.Fatal("the report was replaced")
	}
}

func TestWorkersAddUp(t *testing.T) {
	t.Parallel()
	m := newMerger()
	a, b := attach(t, m, who(0, 1)), attach(t, m, who(1, 2))
	tell(t, m, a, full(who(0, 1), 10, 3))
	tell(t, m, b, full(who(1, 2), 5, 40))
	for _, c := range []struct {
		why, name string
		want      float64
	}{
		{"counters are summed", familyAdmitted, 15},
		{"gauges are summed", familyInFlight, 43},
		{"a share is the fullest worker's", "penstock_journal_fill_ratio", 0.4},
		{"histogram sums are summed", "penstock_request_duration_seconds", 22.5},
	} {
		if got := value(m, c.name); got != c.want {
			t.Errorf("%s: %s is %v, want %v", c.why, c.name, got, c.want)
		}
	}
	if counts := m.snapshot()["penstock_request_duration_seconds"].series[0].counts; counts[1] != 15 {
		t.Errorf("buckets are summed: %v", counts)
	}
}

func TestTotalsOutliveTheirWorkers(t *testing.T) {
	t.Parallel()
	m := newMerger()
	l := attach(t, m, who(0, 1))
	tell(t, m, l, full(who(0, 1), 10, 3))
	m.detach(l)
	if got := value(m, familyAdmitted); got != 10 {
		t.Errorf("a dead worker's count must stay: %v", got)
	}
	if got := value(m, familyInFlight); got != -1 {
		t.Errorf("a dead worker has nothing in flight: %v", got)
	}
	next := attach(t, m, who(0, 2)) // the same place, a new life
	tell(t, m, next, full(who(0, 2), 1, 1))
	if got := value(m, familyAdmitted); got != 11 {
		t.Errorf("both lives count: %v, want 11", got)
	}
}

func TestAReconnectCountsOnce(t *testing.T) {
	t.Parallel()
	m := newMerger()
	first := attach(t, m, who(0, 1))
	tell(t, m, first, full(who(0, 1), 10, 3))
	second := attach(t, m, who(0, 1)) // before the first is known to be over
	tell(t, m, second, full(who(0, 1), 12, 4))
	if m.apply(first, full(who(0, 1), 11, 9), time.Now()) {
		t.Error("the replaced report must end")
	}
	m.detach(first)
	if r, g := value(m, familyAdmitted), value(m, familyInFlight); r != 12 || g != 4 {
		t.Errorf("%v requests and %v in flight, want 12 and 4: the late end of the first report is none of the second's", r, g)
	}
}

func TestManyLivesAreSummedUp(t *testing.T) {
	t.Parallel()
	m := newMerger()
	for epoch := range 200 {
		l := attach(t, m, who(0, byte(epoch)))
		tell(t, m, l, full(who(0, byte(epoch)), 10, 3))
		m.detach(l)
		if got := value(m, familyAdmitted); got != float64(10*(epoch+1)) {
			t.Fatalf("after %d lives the total is %v", epoch+1, got)
		}
	}
	if s := m.stats(); s.gone != maxGone || s.series > (maxGone+1)*3 {
		t.Errorf("%d lives are kept apart with %d series: memory must be bounded", s.gone, s.series)
	}
	if _, refused := m.attach(who(0, 0)); refused != dropIdentity {
		t.Error("a life that was summed up already must not be counted again")
	}
}

func TestSummedUpSeriesAreBounded(t *testing.T) {
	t.Parallel()
	m := newMerger()
	const lives, each = 40, 700
	for life := range lives {
		l := attach(t, m, who(0, byte(life)))
		frame := &telemetryv1.Frame{Full: true, Families: []*telemetryv1.Family{
			{Id: 1, Name: "penstock_x_total", Type: telemetryv1.Family_TYPE_COUNTER, Labels: []string{"key_alias"}}}}
		for i := range uint32(each) {
			frame.Series = append(frame.Series, &telemetryv1.Series{Id: i, Family: 1, Values: []string{fmt.Sprint(life, "-", i)}})
			frame.Points = append(frame.Points, &telemetryv1.Point{Series: i, Value: 1})
		}
		tell(t, m, l, frame)
		m.detach(l)
	}
	if got := value(m, "penstock_x_total"); got != lives*each {
		t.Errorf("the total is %v, want %d: beyond the bound counts go to other", got, lives*each)
	}
	if n := len(m.summed.series[m.families["penstock_x_total"]]); n > maxSummedSeries+1 {
		t.Errorf("%d summed-up series", n)
	}
}

func TestNonsenseIsCountedAndLeftOut(t *testing.T) {
	t.Parallel()
	family := func(change func(*telemetryv1.Family)) *telemetryv1.Frame {
		f := &telemetryv1.Family{Id: 9, Name: "penstock_y_total", Type: telemetryv1.Family_TYPE_COUNTER}
		change(f)
		return &telemetryv1.Frame{Families: []*telemetryv1.Family{f}}
	}
	point := func(p *telemetryv1.Point) *telemetryv1.Frame {
		return &telemetryv1.Frame{Points: []*telemetryv1.Point{p}}
	}
	series := func(s *telemetryv1.Series) *telemetryv1.Frame {
		return &telemetryv1.Frame{Series: []*telemetryv1.Series{s}}
	}
	for _, c := range []struct {
		why   string
		frame *telemetryv1.Frame
		want  drop
	}{
		{"a name of somebody else's", family(func(f *telemetryv1.Family) { f.Name = "go_goroutines" }), dropFamily},
		{"the sidecar's own names", family(func(f *telemetryv1.Family) { f.Name = "penstock_sidecar_workers" }), dropFamily},
		{"a part of a histogram", family(func(f *telemetryv1.Family) { f.Name = "penstock_request_duration_seconds_count" }), dropFamily},
		{"a name that would break the text", family(func(f *telemetryv1.Family) { f.Name = "penstock_a b\n" }), dropFamily},
		{"no type", family(func(f *telemetryv1.Family) { f.Type = 0 }), dropFamily},
		{"an unknown type", family(func(f *telemetryv1.Family) { f.Type = 77 }), dropFamily},
		{"a label twice", family(func(f *telemetryv1.Family) { f.Labels = []string{"a", "a"} }), dropFamily},
		{"a histogram's label", family(func(f *telemetryv1.Family) { f.Labels = []string{"le"} }), dropFamily},
		{"buckets of a counter", family(func(f *telemetryv1.Family) { f.Buckets = []float64{1} }), dropFamily},
		{"another definition of a known name", family(func(f *telemetryv1.Family) { f.Name = familyAdmitted; f.Labels = []string{"model"} }), dropFamily},
		{"buckets that go down", family(func(f *telemetryv1.Family) {
			f.Type = telemetryv1.Family_TYPE_HISTOGRAM
			f.Buckets = []float64{2, 1}
		}), dropFamily},
		{"an unknown family", series(&telemetryv1.Series{Id: 9, Family: 99}), dropSeries},
		{"a value too many", series(&telemetryv1.Series{Id: 9, Family: idRequests, Values: []string{"x"}}), dropSeries},
		{"a value too long", series(&telemetryv1.Series{Id: 9, Family: idDuration, Values: []string{string(make([]byte, 129))}}), dropSeries},
		{"a value that is not UTF-8", series(&telemetryv1.Series{Id: 9, Family: idDuration, Values: []string{"\xff"}}), dropSeries},
		{"an unknown series", point(&telemetryv1.Point{Series: 99, Value: 1}), dropPoint},
		{"not a number", point(&telemetryv1.Point{Series: 1, Value: math.NaN()}), dropPoint},
		{"infinite", point(&telemetryv1.Point{Series: 2, Value: math.Inf(1)}), dropPoint},
		{"below zero", point(&telemetryv1.Point{Series: 1, Value: -1}), dropPoint},
		{"beyond all reason", point(&telemetryv1.Point{Series: 1, Value: 1e30}), dropPoint},
		{"a bucket missing", point(&telemetryv1.Point{Series: 3, Value: 99, Counts: []uint64{99, 99}}), dropPoint},
		{"buckets on a counter", point(&telemetryv1.Point{Series: 1, Value: 99, Counts: []uint64{1}}), dropPoint},
		{"buckets near overflow", point(&telemetryv1.Point{Series: 3, Value: 99, Counts: []uint64{0, math.MaxUint64, 0}}), dropPoint},
		{"a counter that goes down", point(&telemetryv1.Point{Series: 1, Value: 9}), dropDecrease},
		{"a bucket that goes down", point(&telemetryv1.Point{Series: 3, Value: 99, Counts: []uint64{0, 9, 5}}), dropDecrease},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			m := newMerger()
			l := attach(t, m, who(0, 1))
			tell(t, m, l, full(who(0, 1), 10, 3))
			tell(t, m, l, c.frame)
			if m.dropped[c.want] != 1 || len(m.dropped) != 1 {
				t.Errorf("dropped %v, want one %s", m.dropped, c.want)
			}
			if got := value(m, familyAdmitted); got != 10 {
				t.Errorf("the total is %v, want 10 as before", got)
			}
		})
	}
}

func TestIdentitiesAndWorkersAreBounded(t *testing.T) {
	t.Parallel()
	m := newMerger()
	for why, w := range map[string]*telemetryv1.Worker{
		"nobody":         nil,
		"no epoch":       {PodUid: "pod"},
		"a long epoch":   {Epoch: make([]byte, 17)},
		"a long pod uid": {Epoch: make([]byte, 16), PodUid: string(make([]byte, 129))},
	} {
		if _, refused := m.attach(w); refused != dropIdentity {
			t.Errorf("%s was taken", why)
		}
	}
	for i := range uint32(maxWorkers) {
		attach(t, m, who(i, 1))
	}
	if _, refused := m.attach(who(maxWorkers, 1)); refused != dropWorkers {
		t.Error("one worker too many was taken")
	}
	attach(t, m, who(3, 1)) // a reconnect is not one more
}

func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	m := newMerger()
	for worker := range uint32(6) {
		l := attach(t, m, who(worker, 1))
		frame := full(who(worker, 1), 1, 1)
		for i := range uint32(20_000) {
			frame.Series = append(frame.Series, &telemetryv1.Series{Id: i + 10, Family: idDuration, Values: []string{fmt.Sprint(i)}})
		}
		tell(t, m, l, frame)
		if l.worker.count > maxWorkerSeries {
			t.Fatalf("a worker has %d series", l.worker.count)
		}
	}
	if m.series > maxSeries || m.dropped[dropSeriesBound] == 0 {
		t.Errorf("%d series, %v dropped", m.series, m.dropped)
	}
	if got := value(m, familyAdmitted); got < 3 {
		t.Errorf("known series must go on when there is no room for more: %v", got)
	}
}
