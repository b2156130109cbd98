package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("model_list:\n"+pricedModel+"litellm_settings: {drop_params: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why  string
		args []string
		out  string
		err  string
	}{
		{"a newcomer forgets the file", nil, "", "usage: penstock config check FILE"},
		{"a good one", []string{file}, "is good: 1 deployment, checksum ", ""},
		{"what has no effect is named", []string{file}, "litellm_settings.drop_params", ""},
		{"one that is not there", []string{file + "x"}, "", "cannot read the configuration"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			root := newRoot()
			root.SetOut(&out)
			root.SetArgs(append([]string{"config", "check"}, c.args...))
			err := root.ExecuteContext(t.Context())
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.Contains(out.String(), c.out) {
				t.Errorf("got %v, %q", err, &out)
			}
		})
	}
}

func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	root := newRoot()
	root.SetArgs([]string{"migrate", "--database-url", "localhost/penstock"})
	if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "want postgres://") {
		t.Errorf("got %v", err)
	}
}
