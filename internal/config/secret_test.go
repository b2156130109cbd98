package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// hidden are all the credentials of testdata/litellm.yaml and its environment.
var hidden = []string{
	"sk-openai-secret", "sk-ant-secret", "acme-secret", "sk-master-secret", "db-secret", "redis-secret",
	"token-from-the-file", "gsk_literal", "blue",
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	c, warnings := loadLiteLLM(t)
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p"} {
		fmt.Fprintf(&out, verb+"\n", *c)
		fmt.Fprintf(&out, verb+"\n", c.MasterKey)
		fmt.Fprintf(&out, verb+"\n", c.Environment)
		for _, d := range c.Deployments {
			fmt.Fprintf(&out, verb+"\n", *d)
		}
	}
	fmt.Fprintln(&out, warnings, c.MasterKey, &c.MasterKey)
	logger := slog.New(slog.NewJSONHandler(&out, nil))
	logger.Info("configuration", "config", c, "key", c.MasterKey, "deployment", c.Deployments[0])
	slog.New(slog.NewTextHandler(&out, nil)).Info("configuration", "config", c, "key", c.MasterKey)
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, yamlMarshal} {
		data, err := marshal(map[string]any{"c": c.Deployments, "k": c.MasterKey, "e": c.Environment})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(data)
	}
	text := out.String()
	for _, secret := range hidden {
		if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) || strings.Contains(text, fmt.Sprintf("%X", secret)) {
			t.Errorf("%q was printed", secret)
		}
	}
	if !strings.Contains(text, redacted) {
		t.Error("nothing was printed in their place")
	}
}

func yamlMarshal(v any) ([]byte, error) { return yaml.Marshal(v) }

func TestSecret(t *testing.T) {
	t.Parallel()
	s := NewSecret("x")
	if s.Reveal() != "x" || s.IsZero() || s.String() != redacted {
		t.Error("a secret must reveal itself only when asked")
	}
	if (Secret{}).String() != "" || !(Secret{}).IsZero() {
		t.Error("no secret must look like none")
	}
}
