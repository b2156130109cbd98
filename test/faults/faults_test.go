// Package faults kills the pod's processes in the middle of load and counts the money
// afterwards.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/test/stack"
)

// bin has the programs, built once.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "psb")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := stack.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin = dir
	return m.Run()
}

// seedVariable repeats a run: the order of the kills and the loads between them.
const seedVariable = "PENSTOCK_FAULT_SEED"

func seed(t *testing.T) uint64 {
	n, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		n = rand.Uint64()
	}
	t.Logf("%s=%d", seedVariable, n)
	return n
}

// TestMoneySurvivesKills is law 1: every complete answer has exactly one exact record,
// every dispatch in the provider's ledger has exactly one, and what is left over is
// flagged as interrupted; law 3: nothing stays leased.
func TestMoneySurvivesKills(t *testing.T) {
	for _, c := range []struct {
		why     string
		workers int
		kill    []fault
	}{
		{"the gateway's only process and the collector die", 1,
			[]fault{killCollector, killWorker, killCollector, killWorker, killBoth}},
		{"one of two workers dies, the collector too", 2,
			[]fault{killCollector, killWorker, killWorker, killCollector, killBoth}},
		{"the database goes away and comes back, while processes die", 2,
			[]fault{killPgBouncer, killPostgres, killWorker, killCollector}},
	} {
		t.Run(c.why, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			s, err := stack.Start(ctx, stack.Config{BinDir: bin, Workers: c.workers})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if t.Failed() {
					t.Log(s.Logs())
				}
				if err := s.Stop(); err != nil {
					t.Error(err)
				}
			}()
			random := rand.New(rand.NewPCG(seed(t), 1))
			random.Shuffle(len(c.kill), func(i, j int) { c.kill[i], c.kill[j] = c.kill[j], c.kill[i] })
			key, err := s.NewKey(ctx, stack.KeyOptions{Alias: "faults", Budget: 10_000})
			if err != nil {
				t.Fatal(err)
			}
			seen := attack(ctx, t, s, key, plan{faults: c.kill, random: random})
			verify(ctx, t, s, key, seen)
		})
	}
}
