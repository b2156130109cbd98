package sidecar_test

import (
	"os"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/telemetry"
)

// Whatever a scrape shows stands in the reference, LiteLLM's names above all: people
// look there for what their dashboards ask for.
func TestEveryServedMetricIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newPod(t)
	m := p.worker(0, 1)
	m.Requests.With("m", telemetry.StatusLabel(200), "a").Add(1)
	p.stop(m) // it waits until the sidecar has its last frame
	litellm := 0
	for name := range p.scrape() {
		if strings.HasPrefix(name, "penstock_sidecar_go_") || strings.HasPrefix(name, "penstock_sidecar_process_") {
			continue
		}
		if strings.HasPrefix(name, "litellm_") {
			litellm++
		}
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("%s is served and not in docs/metrics.md", name)
		}
	}
	if litellm < 5 {
		t.Errorf("%d of LiteLLM's names are served: the check would prove nothing", litellm)
	}
}
