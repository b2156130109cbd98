package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Programs are the programs that Start needs, as they are called in BinDir.
func Programs() []string {
	return []string{"gateway", "spend-collector", "metrics-sidecar", "fake-upstream"}
}

// Build builds the programs into dir, under the race detector when the caller is.
// The caller's working directory must be in the module.
func Build(ctx context.Context, dir string) error {
	args := []string{"build"}
	env := append(os.Environ(), "CGO_ENABLED=0")
	if underRace {
		args = append(args, "-race")
		env = append(os.Environ(), "CGO_ENABLED=1")
	}
	args = append(args, "-o", dir+string(os.PathSeparator))
	for _, name := range Programs() {
		args = append(args, "github.com/penstock-gateway/penstock/cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the programs: %w: %s", err, out)
	}
	return nil
}
