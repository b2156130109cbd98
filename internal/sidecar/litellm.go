package sidecar

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// litellmLabels are the labels that existing dashboards group by. Only the key's alias,
// the model and the status are known here; a key's hash and an end user never stand in
// a metric, so those labels exist and stay empty, as do the others.
func litellmLabels() []string {
	return []string{"end_user", "hashed_api_key", "api_key_alias", "model", "requested_model", "team", "team_alias", "user", "user_email"}
}

// litellmMetric is one name of LiteLLM's, and the series of ours that it is made from.
type litellmMetric struct {
	name   string
	help   string
	status bool // has status_code and route as well
	from   []string
}

func litellmMetrics() []litellmMetric {
	const input, output = "penstock_input_tokens_total", "penstock_output_tokens_total"
	return []litellmMetric{
		{"litellm_proxy_total_requests_metric_total", "Requests that ended; LiteLLM's name for penstock_requests_total.", true, []string{"penstock_requests_total"}},
		{"litellm_total_tokens_metric_total", "Input and output tokens; LiteLLM's name for the sum of both.", false, []string{input, output}},
		{"litellm_input_tokens_metric_total", "Input tokens; LiteLLM's name for " + input + ".", false, []string{input}},
		{"litellm_output_tokens_metric_total", "Output tokens; LiteLLM's name for " + output + ".", false, []string{output}},
		{"litellm_spend_metric_total", "US dollars; LiteLLM's name for penstock_spend_usd_total.", false, []string{"penstock_spend_usd_total"}},
	}
}

// litellm derives LiteLLM's names. A name without a series yet gets one at zero, because
// an autoscaler takes a missing series for "unknown".
func litellm(out chan<- prometheus.Metric, sums map[string]merged) {
	for _, metric := range litellmMetrics() {
		labels := metric.labels()
		desc := prometheus.NewDesc(metric.name, metric.help, labels, nil)
		totals := metric.totals(sums, labels)
		if len(totals) == 0 {
			emit(out, desc, prometheus.CounterValue, 0, make([]string, len(labels))...)
		}
		for _, s := range totals {
			emit(out, desc, prometheus.CounterValue, s.value.float(), s.values...)
		}
	}
}

func (l litellmMetric) labels() []string {
	labels := litellmLabels()
	if l.status {
		labels = append(labels, "status_code", "route")
	}
	return labels
}

func (l litellmMetric) totals(sums map[string]merged, labels []string) map[string]*series {
	totals := map[string]*series{}
	for _, name := range l.from {
		m, known := sums[name]
		if !known || m.family.kind != telemetryv1.Family_TYPE_COUNTER {
			continue
		}
		for _, s := range m.series {
			values := translate(m.family.labels, s.values, labels)
			key := join(values)
			if totals[key] == nil {
				totals[key] = &series{values: values}
			}
			totals[key].value = totals[key].value.plus(s.value)
		}
	}
	return totals
}

// translate puts our labels' values where LiteLLM's names for them stand.
func translate(ours, values, labels []string) []string {
	names := map[string]string{"api_key_alias": "key_alias", "model": "model", "requested_model": "model", "status_code": "status"}
	translated := make([]string, len(labels))
	for i, label := range labels {
		if at := slices.Index(ours, names[label]); at >= 0 {
			translated[i] = values[at]
		}
	}
	return translated
}
