package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page is read by people who have no toolchain: it must not lag behind.
func TestThePageIsCurrent(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var now bytes.Buffer
	if err := write(&now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), now.String()); diff != "" {
		t.Errorf("docs/metrics.md is not what hack/generate makes: %s", diff)
	}
}
