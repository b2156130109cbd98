package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cmd := command()
	cmd.SetArgs([]string{"--help"})
	cmd.SetOut(&out)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Examples:", "--run-dir", "--listen", "--check", "telemetry.sock", "PENSTOCK_RUN_DIR"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the help does not have %s:\n%s", part, out.String())
		}
	}
}
