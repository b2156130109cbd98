// Package gosdk_test is the official openai client for Go against the four real
// processes: those that the environment names, else its own.
package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/test/conformance"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	stop := func() error { return nil }
	if os.Getenv(conformance.EnvBaseURL) == "" {
		var err error
		if stop, err = startPod(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := m.Run()
	if err := errors.Join(stop(), goleak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func startPod() (stop func() error, err error) {
	bin, err := os.MkdirTemp("", "psb")
	if err != nil {
		return nil, err
	}
	pod, err := conformance.Start(context.Background(), conformance.Config{BinDir: bin, Workers: 1})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(bin))
	}
	for _, pair := range pod.Env() {
		name, value, _ := strings.Cut(pair, "=")
		if err := os.Setenv(name, value); err != nil {
			return nil, errors.Join(err, pod.Stop(), os.RemoveAll(bin))
		}
	}
	return func() error { return errors.Join(pod.Stop(), os.RemoveAll(bin)) }, nil
}
