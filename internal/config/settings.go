package config

import (
	"math"
	"slices"
	"strings"
	"time"
)

func defaultSettings() Settings {
	return Settings{
		MaxBodyBytes:       DefaultMaxBodyBytes,
		FitOutputMin:       256,
		EstimatePermille:   1300,
		ClientWriteIdle:    60 * time.Second,
		UpstreamConnect:    10 * time.Second,
		UpstreamHeader:     600 * time.Second,
		UpstreamStreamIdle: 300 * time.Second,
		UpstreamKeepAlive:  60 * time.Second,
	}
}

// maxBytes bounds sizes of bodies: an offset in one fits in 31 bits.
const maxBytes = 1 << 30

func (l *loader) generalSettings(n *node, path string) {
	s := &l.config.Settings
	l.section(n, path, handlers{
		"master_key":   func(n *node, path string) { l.config.MasterKey = l.secret(n, path) },
		"database_url": l.databaseURL,
		"max_request_size_mb": func(n *node, path string) {
			s.MaxBodyBytes = l.integer(n, path, 1, maxBytes>>20) << 20
		},
		"max_in_flight_requests_per_worker": func(n *node, path string) {
			s.MaxInFlight = l.integer(n, path, 1, math.MaxInt32)
		},
	}, litellmGeneral())
}

func (l *loader) databaseURL(n *node, path string) {
	url := l.secret(n, path)
	if url.IsZero() {
		return
	}
	if text := url.Reveal(); !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		l.fail(n.at, path, "it is not a postgresql:// URL")
		return
	}
	l.config.DatabaseURL = url
}

func (l *loader) litellmSettings(n *node, path string) {
	l.section(n, path, handlers{
		"network_mock":    func(n *node, path string) { l.config.NetworkMock = l.boolean(n, path) },
		"request_timeout": func(n *node, path string) { l.requestTimeout = l.seconds(n, path) },
		"num_retries":     func(n *node, path string) { l.litellmRetries = l.count(n, path) },
	}, litellmLitellm())
}

func (l *loader) routerSettings(n *node, path string) {
	l.section(n, path, handlers{
		"timeout":           func(n *node, path string) { l.timeout = l.seconds(n, path) },
		"stream_timeout":    func(n *node, path string) { l.streamTimeout = l.seconds(n, path) },
		"num_retries":       func(n *node, path string) { l.retries = l.count(n, path) },
		"model_group_alias": l.aliases,
		"routing_strategy":  l.routingStrategy,
	}, litellmRouter())
}

// routingStrategy knows LiteLLM's default; another one is named like a key without effect.
func (l *loader) routingStrategy(n *node, path string) {
	if s, ok := l.text(n, path); ok && s != defaultStrategy {
		l.unsupported[path] = true
	}
}

// count reads a number of retries.
func (l *loader) count(n *node, path string) *int {
	v := int(l.integer(n, path, 0, 100))
	return &v
}

// penstockSettings is our own section: a key that we do not know is a mistake there.
func (l *loader) penstockSettings(n *node, path string) {
	if !l.is(n, path, kindMapping) {
		return
	}
	act := l.penstockHandlers()
	for _, f := range n.fields {
		at := child(path, f.key)
		handle := act[f.key]
		switch {
		case handle == nil:
			hint := ""
			if name := likely(f.key, act, nil); name != "" {
				hint = " (" + meant(f.key, name) + ")"
			}
			l.fail(f.at, at, "there is no such setting%s; there are %s", hint, strings.Join(sortedKeys(act), ", "))
		case f.value.kind != kindNull:
			handle(f.value, at)
		}
	}
	s := &l.config.Settings
	if s.MaxBodyBytesInFlight != 0 && s.MaxBodyBytesInFlight < s.MaxBodyBytes {
		l.fail(n.get("max_body_bytes_in_flight").at, child(path, "max_body_bytes_in_flight"),
			"%d is below the %d bytes of one body (max_body_bytes): such a body could never be taken", s.MaxBodyBytesInFlight, s.MaxBodyBytes)
	}
}

func (l *loader) penstockHandlers() handlers {
	s := &l.config.Settings
	integer := func(to *int64, least, most int64) func(*node, string) {
		return func(n *node, path string) { *to = l.integer(n, path, least, most) }
	}
	duration := func(to *time.Duration, least time.Duration) func(*node, string) {
		return func(n *node, path string) { *to = l.duration(n, path, least) }
	}
	text := func(to *string) func(*node, string) {
		return func(n *node, path string) { *to = l.name(n, path) }
	}
	return handlers{
		"max_body_bytes":           integer(&s.MaxBodyBytes, 1024, maxBytes),
		"max_in_flight":            integer(&s.MaxInFlight, 1, math.MaxInt32),
		"max_body_bytes_in_flight": integer(&s.MaxBodyBytesInFlight, 1024, math.MaxInt64),
		"fit_output_min":           integer(&s.FitOutputMin, 1, math.MaxInt32),
		"estimate_factor":          l.estimateFactor,
		"price_map":                text(&s.PriceMap),
		"client_write_idle":        duration(&s.ClientWriteIdle, time.Second),
		"upstream_connect":         duration(&s.UpstreamConnect, time.Millisecond),
		"upstream_header":          duration(&s.UpstreamHeader, time.Millisecond),
		"upstream_stream_idle":     duration(&s.UpstreamStreamIdle, time.Millisecond),
		"upstream_keep_alive":      duration(&s.UpstreamKeepAlive, time.Millisecond),
		"upstream_ca_file":         text(&s.UpstreamCAFile),
	}
}

func (l *loader) estimateFactor(n *node, path string) {
	permille, ok := l.decimal(n, path, 3)
	if ok && (permille < 1000 || permille > 100_000) {
		l.fail(n.at, path, "%s is not a factor from 1 to 100", n.shown())
	}
	l.config.Settings.EstimatePermille = permille
}

func sortedKeys(h handlers) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// aliases reads {alias: group} and {alias: {model: group, hidden: true}}.
func (l *loader) aliases(n *node, path string) {
	if !l.is(n, path, kindMapping) {
		return
	}
	for _, f := range n.fields {
		at := child(path, f.key)
		a := Alias{Name: f.key}
		switch f.value.kind {
		case kindMapping:
			l.section(f.value, at, handlers{
				"model":  func(n *node, path string) { a.Model = l.name(n, path) },
				"hidden": func(n *node, path string) { a.Hidden = l.boolean(n, path) },
			}, nil)
		case kindScalar:
			a.Model = l.name(f.value, at)
		}
		if a.Model == "" {
			l.fail(f.at, at, "it names no model group")
			continue
		}
		l.config.Aliases = append(l.config.Aliases, a)
	}
}

// checkAliases drops aliases of models that were left out and refuses those of none.
func (l *loader) checkAliases(root *node) {
	groups := map[string]bool{}
	for _, d := range l.config.Deployments {
		groups[d.ModelName] = true
	}
	l.config.Aliases = slices.DeleteFunc(l.config.Aliases, func(a Alias) bool {
		if groups[a.Model] {
			return false
		}
		const path = "router_settings.model_group_alias"
		if l.leftOut[a.Model] {
			l.unserved = append(l.unserved, a.Name+" (alias of "+a.Model+")")
			return true
		}
		n := root.get("router_settings").get("model_group_alias")
		l.fail(n.get(a.Name).at, child(path, a.Name), "there is no model %q in model_list", a.Model)
		return true
	})
}
