package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// FuzzLoad: no file makes a panic; what loads is complete, what does not names the file.
func FuzzLoad(f *testing.F) {
	data, err := os.ReadFile("testdata/litellm.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(good + "penstock_settings: {client_write_idle: 1m, estimate_factor: 2}\n"))
	f.Add([]byte(entryWith("extra_headers: {a: b}", "mock_response: {a: [1, x]}", "weight: 2", "<<: &a {x: *a}")))
	f.Add([]byte("a: &a [*a]\nmodel_list: *a\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("a: &a\nb: *a\n<<: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, warnings, err := compile(Source{Path: "c.yaml", Getenv: litellmEnv()}, data)
		if err != nil {
			var p *Problem
			if !errors.As(err, &p) || !strings.HasPrefix(err.Error(), "c.yaml") {
				t.Fatalf("unplaced error %v", err)
			}
			return
		}
		if len(c.Deployments) == 0 || c.Checksum == "" {
			t.Fatal("nothing was compiled")
		}
		ids := map[string]bool{}
		for _, d := range c.Deployments {
			if d.ModelName == "" || d.Model == "" || ids[d.ID] || d.Timeout <= 0 || d.StreamTimeout <= 0 || d.MaxOutput <= 0 || d.Weight < 0 {
				t.Fatalf("incomplete: %+v", d)
			}
			if !d.Mock() && d.APIBase == "" {
				t.Fatalf("no address: %+v", d)
			}
			ids[d.ID] = true
		}
		for _, w := range warnings {
			if w.Code == "" || len(w.Details) == 0 {
				t.Fatalf("empty warning: %+v", w)
			}
		}
	})
}
