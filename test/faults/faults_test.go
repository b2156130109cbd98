// Package faults kills the pod's processes in the middle of load and counts the money
// afterwards. PENSTOCK_FAULTS=long runs the long forms; PENSTOCK_FAULT_SEED repeats a run.
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

// seedVariable repeats a run: the order of the kills, the loads between them, and what
// the clients send.
const seedVariable = "PENSTOCK_FAULT_SEED"

// source gives the random numbers of a test, and says how to have them again.
func source(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("%s=%d", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// fork is a source of its own, for a goroutine.
func fork(random *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(random.Uint64(), 0)) }

// scale is how much of everything there is.
type scale struct {
	limit time.Duration // for one test

	pods, workers, parallel int     // of a storm; parallel is for each worker
	dollars                 float64 // its budget

	kills, perKill int // of the kill storm; requests between two kills
	acks           int // how often PostgreSQL is killed right after one
	periods        int // ends of a budget's period under load
}

func scaled() scale {
	if os.Getenv("PENSTOCK_FAULTS") == "long" {
		return scale{limit: time.Hour, pods: 8, workers: 2, parallel: 32, dollars: 1000, kills: 100, perKill: 2000, acks: 50, periods: 20}
	}
	return scale{limit: 2 * time.Minute, pods: 4, workers: 2, parallel: 16, dollars: 100, kills: 12, perKill: 150, acks: 5, periods: 3}
}

// bounded is a context for a whole test.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scaled().limit)
	t.Cleanup(cancel)
	return ctx
}
