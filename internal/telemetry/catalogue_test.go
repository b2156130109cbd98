package telemetry

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryFieldIsDeclaredOnce(t *testing.T) {
	t.Parallel()
	m := &Metrics{}
	declared := map[any]string{}
	for _, row := range m.table() {
		if other, twice := declared[row.field]; twice {
			t.Errorf("%s and %s share a field", row.Name, other)
		}
		declared[row.field] = row.Name
	}
	value := reflect.ValueOf(m).Elem()
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if _, ok := declared[value.Field(i).Addr().Interface()]; !ok {
			t.Errorf("field %s has no row in the table: it would count and never be seen", field.Name)
		}
	}
}

func TestCatalogueFollowsPrometheusRules(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^penstock_[a-z_]+$`)
	seen := map[string]bool{}
	for _, row := range new(Metrics).table() {
		d := row.Desc
		switch {
		case !name.MatchString(d.Name) || seen[d.Name]:
			t.Errorf("%s: not a name, or used twice", d.Name)
		case (d.Kind == KindCounter) != strings.HasSuffix(d.Name, "_total"):
			t.Errorf("%s: counters and only counters end in _total", d.Name)
		case (d.Kind == KindHistogram) != (len(d.Buckets) > 0) || !slices.IsSorted(d.Buckets):
			t.Errorf("%s: histograms and only histograms have ascending buckets", d.Name)
		case d.Help == "" || !strings.HasSuffix(d.Help, "."):
			t.Errorf("%s: no help", d.Name)
		case len(d.Labels) != arity(row.field):
			t.Errorf("%s: %d labels for a field with %d", d.Name, len(d.Labels), arity(row.field))
		}
		seen[d.Name] = true
		for _, label := range d.Labels {
			if strings.Contains(label, "hash") || label == "key" || label == "user" {
				t.Errorf("%s: label %s must not stand in a metric", d.Name, label)
			}
		}
	}
}

// arity reads the number of labels from the field's type.
func arity(field binder) int {
	name := reflect.TypeOf(field).Elem().Name()
	if n, ok := strings.CutPrefix(name, "Vec"); ok {
		return int(n[0] - '0')
	}
	return 0
}
