package sidecar_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/penstock-gateway/penstock/internal/sidecar"
	"github.com/penstock-gateway/penstock/internal/telemetry"
)

// pod is one pod's folder with a sidecar that can be restarted.
type pod struct {
	t    *testing.T
	dir  string
	side *sidecar.Server
}

func newPod(t *testing.T) *pod {
	t.Helper()
	dir, err := os.MkdirTemp("", "pod") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{t: t, dir: dir}
	p.start()
	t.Cleanup(func() {
		if err := p.side.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return p
}

func (p *pod) start() {
	p.t.Helper()
	p.side = sidecar.New(sidecar.Config{
		Socket: filepath.Join(p.dir, "telemetry.sock"), State: filepath.Join(p.dir, "telemetry.state"), Listen: "127.0.0.1:0",
		Settle: time.Nanosecond, Tick: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err := p.side.Start(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pod) restart() {
	p.t.Helper()
	if err := p.side.Stop(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.start()
}

func (p *pod) worker(index uint32, epoch byte) *telemetry.Metrics {
	p.t.Helper()
	m := telemetry.New(telemetry.Config{
		Worker: telemetry.Worker{PodUID: "pod", Index: index, Epoch: [16]byte{epoch}},
		Socket: filepath.Join(p.dir, "telemetry.sock"), Interval: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err := m.Start(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	return m
}

func (p *pod) stop(m *telemetry.Metrics) {
	p.t.Helper()
	if err := m.Stop(p.t.Context()); err != nil {
		p.t.Error(err)
	}
}

// scrape reads /metrics as Prometheus does.
func (p *pod) scrape() map[string]*dto.MetricFamily {
	p.t.Helper()
	answer, err := http.Get(fmt.Sprintf("http://%s/metrics", p.side.Address()))
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("status %d, %v", answer.StatusCode, err)
	}
	return families
}

// total adds up the series of a scraped metric.
func total(families map[string]*dto.MetricFamily, name string) float64 {
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

// until polls for what another goroutine brings about.
func (p *pod) until(why string, reached func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !reached(); {
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %s", why)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func use(m *telemetry.Metrics, n int64) {
	m.AdmittedRequests.Add(n)
	m.AdmittedInputTokens.Add(100 * n)
	m.DeliveredOutputTokens.Add(10 * n)
	m.InFlightRequests.Add(n)
	m.Requests.With("gpt-5", "200", "team-a").Add(n)
	m.InputTokens.With("gpt-5", "team-a").Add(100 * n)
	m.OutputTokens.With("gpt-5", "team-a").Add(10 * n)
	m.SpendNano.With("gpt-5", "team-a").Add(2_500_000_000 * n)
	for range n {
		m.Duration.With("gpt-5").Observe(30 * time.Millisecond)
	}
}

func TestTwoWorkersAreScrapedAsOne(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	a, b := p.worker(0, 1), p.worker(1, 2)
	use(a, 3)
	use(b, 4)
	p.until("both are in the sum", func() bool { return total(p.scrape(), "penstock_requests_total") == 7 })
	families := p.scrape()
	for name, want := range map[string]float64{
		"penstock_admitted_requests_total": 7, "penstock_in_flight_requests": 7, "penstock_spend_usd_total": 17.5,
		"penstock_request_duration_seconds": 7, "penstock_sidecar_workers": 2,
		"litellm_proxy_total_requests_metric_total": 7, "litellm_total_tokens_metric_total": 770,
		"litellm_input_tokens_metric_total": 700, "litellm_output_tokens_metric_total": 70, "litellm_spend_metric_total": 17.5,
	} {
		if got := total(families, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	labels := map[string]string{}
	for _, l := range families["litellm_proxy_total_requests_metric_total"].GetMetric()[0].GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	for name, want := range map[string]string{"hashed_api_key": "", "end_user": "", "api_key_alias": "team-a",
		"requested_model": "gpt-5", "model": "gpt-5", "status_code": "200"} {
		if got, there := labels[name]; !there || got != want {
			t.Errorf("LiteLLM's label %s is %q (there: %v), want %q", name, got, there, want)
		}
	}
	if families["penstock_sidecar_go_goroutines"] == nil || families["go_goroutines"] != nil {
		t.Error("the sidecar's own Go metrics must have its name, or they are taken for the gateway's")
	}
	p.stop(a)
	p.stop(b)
}

func TestBothScalingCountersAreThereBeforeTheFirstRequest(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	m := p.worker(0, 1)
	p.until("the worker reports", func() bool { return total(p.scrape(), "penstock_sidecar_workers") == 1 })
	families := p.scrape()
	for _, name := range []string{"penstock_admitted_requests_total", "penstock_delivered_output_tokens_total",
		"litellm_proxy_total_requests_metric_total", "litellm_total_tokens_metric_total"} {
		if len(families[name].GetMetric()) != 1 || total(families, name) != 0 {
			t.Errorf("%s must be there at zero: an autoscaler takes a missing series for unknown", name)
		}
	}
	p.stop(m)
}

func TestARestartedSidecarLosesNoCount(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	dead, alive := p.worker(0, 1), p.worker(1, 2)
	use(dead, 5)
	use(alive, 2)
	p.stop(dead) // its last frame is in; nobody will tell these counts again
	p.until("the dead worker's in-flight is gone", func() bool { return total(p.scrape(), "penstock_in_flight_requests") == 2 })
	p.restart()
	use(alive, 1)
	p.until("the living worker is back", func() bool { return total(p.scrape(), "penstock_in_flight_requests") == 3 })
	if got := total(p.scrape(), "penstock_requests_total"); got != 8 {
		t.Errorf("%v requests after a restart, want all 8", got)
	}
	p.restart()
	p.until("a second restart changes nothing", func() bool { return total(p.scrape(), "penstock_requests_total") == 8 })
	p.stop(alive)
}

func TestARestartedWorkerKeepsTotalsRising(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	last, want := 0.0, 0.0
	for life := range byte(5) {
		m := p.worker(0, life)
		use(m, 3)
		want += 3
		p.until("this life is counted", func() bool {
			now := total(p.scrape(), "penstock_admitted_requests_total")
			if now < last {
				t.Fatalf("the total fell from %v to %v", last, now)
			}
			last = now
			return now == want
		})
		p.stop(m)
	}
}

func TestRatesMove(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	m := p.worker(0, 1)
	p.until("the worker reports", func() bool { return total(p.scrape(), "penstock_sidecar_workers") == 1 })
	var rates sidecar.Rates
	p.until("input and output flow while requests run", func() bool {
		use(m, 1)
		answer := httptest.NewRecorder()
		p.side.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/rates", nil))
		if answer.Code == http.StatusServiceUnavailable { // before the first tick
			return false
		}
		if err := json.NewDecoder(answer.Body).Decode(&rates); err != nil {
			t.Fatal(err)
		}
		w := rates.Windows["60s"]
		return w.RequestsPerSecond > 0 && w.InputTokensPerSecond > 0 && w.OutputTokensPerSecond > 0 && rates.InFlightRequests > 0
	})
	if len(rates.Windows) != 3 || rates.UnixMs == 0 || rates.Workers != 1 {
		t.Errorf("an answer must have three windows, a time and the workers: %+v", rates)
	}
	p.stop(m)
}

func TestNothingIsServedBeforeWorkersCouldReport(t *testing.T) {
	t.Parallel()
	side := sidecar.New(sidecar.Config{Settle: time.Hour})
	for path, want := range map[string]int{"/rates": http.StatusServiceUnavailable, "/metrics": http.StatusOK, "/health": http.StatusOK, "/": http.StatusNotFound} {
		answer := httptest.NewRecorder()
		side.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != want {
			t.Errorf("%s answers %d, want %d", path, answer.Code, want)
		}
	}
}

func TestABrokenStateDoesNotStopTheStart(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	if err := p.side.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "telemetry.state"), []byte("\x05garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start()
	m := p.worker(0, 1)
	use(m, 1)
	p.until("counting goes on", func() bool { return total(p.scrape(), "penstock_requests_total") == 1 })
	p.stop(m)
}

func TestStartNamesTheKnobThatIsWrong(t *testing.T) {
	t.Parallel()
	for why, cfg := range map[string]sidecar.Config{
		"--run-dir": {Socket: "/nonexistent/telemetry.sock"},
		"--listen":  {Socket: filepath.Join(t.TempDir(), "s"), Listen: "256.0.0.1:1"},
	} {
		err := sidecar.New(cfg).Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("the error must name %s: %v", why, err)
		}
	}
}

func TestASecondSidecarLeavesTheRunningOneAlone(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	for why, listen := range map[string]string{
		"its port is taken":                    p.side.Address().String(),
		"only the socket is served by another": "127.0.0.1:0",
	} {
		second := sidecar.New(sidecar.Config{Socket: filepath.Join(p.dir, "telemetry.sock"), Listen: listen, Logger: slog.New(slog.DiscardHandler)})
		if err := second.Start(t.Context()); err == nil {
			t.Errorf("%s: it started", why)
		}
	}
	m := p.worker(0, 1)
	use(m, 1)
	p.until("workers still reach the running one", func() bool { return total(p.scrape(), "penstock_requests_total") == 1 })
	p.stop(m)
}
