package sidecar

import "github.com/prometheus/client_golang/prometheus"

// Desc describes a metric that the sidecar adds to those of the workers.
type Desc struct {
	Name   string
	Type   string // counter or gauge
	Labels []string
	Help   string
}

// LiteLLMNames lists the metrics that are served under LiteLLM's names as well.
func LiteLLMNames() []Desc {
	var descs []Desc
	for _, m := range litellmMetrics() {
		descs = append(descs, Desc{Name: m.name, Type: "counter", Labels: m.labels(), Help: m.help})
	}
	return descs
}

// OwnMetrics lists what the sidecar says about itself, but for client_golang's metrics
// of a process, which have their usual names behind penstock_sidecar_.
func OwnMetrics() []Desc {
	var descs []Desc
	for _, m := range ownMetrics() {
		kind := "gauge"
		if m.kind == prometheus.CounterValue {
			kind = "counter"
		}
		descs = append(descs, Desc{Name: m.name, Type: kind, Labels: m.labels, Help: m.help})
	}
	return descs
}
