// Package deptest lets a program's test say what it must not link, so that a
// boundary between processes is a fact and not a habit.
package deptest

import (
	"os/exec"
	"strings"
	"testing"
)

// Forbidden is an import path prefix and why the program must do without it.
type Forbidden struct {
	Prefix string
	Reason string
}

// Check fails for each forbidden package in the import graph of the package in the
// current folder, tests aside.
func Check(t *testing.T, forbidden []Forbidden) {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("cannot list the dependencies: %v", err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 10 {
		t.Fatalf("go list named only %d packages: the check would prove nothing", len(packages))
	}
	for _, p := range packages {
		for _, f := range forbidden {
			if p == f.Prefix || strings.HasPrefix(p, f.Prefix+"/") {
				t.Errorf("links %s: %s", p, f.Reason)
			}
		}
	}
}
