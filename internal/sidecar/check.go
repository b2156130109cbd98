package sidecar

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// Bounds on what a worker may make this process keep. Real workers stay far below.
const (
	maxFrameBytes     = 16 << 20
	maxWorkers        = 64     // that report at once
	maxGone           = 32     // kept apart by epoch after they left; older ones are summed up
	maxFamilies       = 256    // over all workers
	maxWorkerSeries   = 16_384 // per worker
	maxSeries         = 65_536
	maxNameBytes      = 128
	maxHelpBytes      = 512
	maxLabels         = 8
	maxLabelBytes     = 128
	maxBuckets        = 64
	maxIdentityBytes  = 128
	familyPrefix      = "penstock_"
	ownFamilyPrefix   = "penstock_sidecar_"
	reservedHistogram = "le"
)

// drop is why something in a frame was not taken.
type drop string

const (
	dropIdentity    drop = "identity"     // no worker, or not a believable one
	dropWorkers     drop = "workers"      // too many at once
	dropFamily      drop = "family"       // a definition that is wrong, or another one under a known name
	dropSeries      drop = "series"       // unknown family, wrong labels
	dropSeriesBound drop = "series_bound" // too many
	dropPoint       drop = "point"        // unknown series, wrong shape, not a number
	dropDecrease    drop = "decrease"     // a counter that went down
	dropFrame       drop = "frame"        // not a frame at all, or too large
)

func drops() []drop {
	return []drop{dropIdentity, dropWorkers, dropFamily, dropSeries, dropSeriesBound, dropPoint, dropDecrease, dropFrame}
}

// family is one metric, the same for all workers.
type family struct {
	name    string
	help    string
	kind    telemetryv1.Family_Type
	labels  []string
	buckets []float64
}

// readFamily checks a definition; nil: not one.
func readFamily(f *telemetryv1.Family) *family {
	known := f.GetType() == telemetryv1.Family_TYPE_COUNTER || f.GetType() == telemetryv1.Family_TYPE_GAUGE ||
		f.GetType() == telemetryv1.Family_TYPE_HISTOGRAM
	if !known || !goodFamilyName(f.GetName()) || len(f.GetHelp()) > maxHelpBytes || !utf8.ValidString(f.GetHelp()) {
		return nil
	}
	if !goodLabelNames(f.GetLabels()) || !goodBuckets(f) {
		return nil
	}
	return &family{name: f.GetName(), help: f.GetHelp(), kind: f.GetType(),
		labels: slices.Clone(f.GetLabels()), buckets: slices.Clone(f.GetBuckets())}
}

// goodFamilyName refuses the endings that Prometheus gives to parts of a histogram, so
// that no two families can collide in the text.
func goodFamilyName(name string) bool {
	if len(name) > maxNameBytes || !strings.HasPrefix(name, familyPrefix) || strings.HasPrefix(name, ownFamilyPrefix) {
		return false
	}
	for _, end := range []string{"_count", "_sum", "_bucket"} {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	return goodName(name)
}

func goodLabelNames(names []string) bool {
	if len(names) > maxLabels {
		return false
	}
	for i, name := range names {
		if name == reservedHistogram || len(name) > maxNameBytes || !goodName(name) || strings.HasPrefix(name, "__") {
			return false
		}
		if slices.Contains(names[:i], name) {
			return false
		}
	}
	return true
}

func goodName(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

func goodBuckets(f *telemetryv1.Family) bool {
	b := f.GetBuckets()
	if f.GetType() != telemetryv1.Family_TYPE_HISTOGRAM {
		return len(b) == 0
	}
	for i, bound := range b {
		if !finite(bound) || i > 0 && bound <= b[i-1] {
			return false
		}
	}
	return len(b) <= maxBuckets
}

func (f *family) same(o *family) bool {
	return f.kind == o.kind && f.help == o.help && slices.Equal(f.labels, o.labels) && slices.Equal(f.buckets, o.buckets)
}

// takes tells whether values can be a series of f.
func (f *family) takes(values []string) bool {
	if len(values) != len(f.labels) {
		return false
	}
	for _, v := range values {
		if len(v) > maxLabelBytes || !utf8.ValidString(v) {
			return false
		}
	}
	return true
}

// fits tells whether p can be a point of f.
func (f *family) fits(p *telemetryv1.Point) bool {
	if !finite(p.GetValue()) || math.Abs(p.GetValue()) > maxValue {
		return false
	}
	switch f.kind {
	case telemetryv1.Family_TYPE_GAUGE:
		return len(p.GetCounts()) == 0
	case telemetryv1.Family_TYPE_COUNTER:
		return len(p.GetCounts()) == 0 && p.GetValue() >= 0
	}
	if len(p.GetCounts()) != len(f.buckets)+1 || p.GetValue() < 0 {
		return false
	}
	for _, n := range p.GetCounts() {
		if n > maxCount {
			return false
		}
	}
	return true
}

// maxValue keeps every sum within an amount.
const maxValue = 1e15

// maxCount leaves room to add up every bucket of every worker without overflow.
const maxCount = math.MaxUint64 / (maxBuckets * (maxWorkers + maxGone) * 1024)

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
