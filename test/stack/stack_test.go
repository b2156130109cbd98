package stack_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/test/load"
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

// TestFourProcesses: one request of each kind goes all the way, with one worker and
// with two: its answer, its record, the provider's ledger and the metrics agree.
func TestFourProcesses(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("workers %d", workers), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			s, err := stack.Start(ctx, stack.Config{BinDir: bin, Workers: workers})
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
			key, err := s.NewKey(ctx, stack.KeyOptions{Alias: "all-the-way", Budget: 1})
			if err != nil {
				t.Fatal(err)
			}
			ids := ask(t, s.Address(), key)
			checkLedgers(ctx, t, s, key, ids)
			checkMetrics(ctx, t, s, len(ids))
			if b, err := s.AwaitQuiet(ctx, key); err != nil || b.Spent != int64(len(ids))*30_000_000 {
				t.Errorf("budget %+v, %v", b, err)
			}
			if n := s.Restarts(stack.Gateway) + s.Restarts(stack.Collector) + s.Restarts(stack.Sidecar); n != 0 {
				t.Errorf("programs died %d times", n)
			}
		})
	}
}

// ask sends a whole and a streamed request and gives their ids.
func ask(t *testing.T, address, key string) map[string]bool {
	t.Helper()
	conn := load.Dial(address)
	defer conn.Close()
	ids := map[string]bool{}
	for _, stream := range []bool{false, true} {
		a, err := conn.Do(load.Chat(load.ChatOptions{
			Key: key, Model: stack.ThreeCents, Prompt: stack.ThreeCentsPrompt, MaxTokens: stack.ThreeCentsCap, Stream: stream,
		}), 0)
		if err != nil || a.Fault() != "" {
			t.Fatalf("stream %v: %v, status %d, %s: %s", stream, err, a.Status, a.Fault(), a.Body)
		}
		ids[a.RequestID] = true
	}
	return ids
}

func checkLedgers(ctx context.Context, t *testing.T, s *stack.Stack, key string, ids map[string]bool) {
	t.Helper()
	records, err := s.AwaitRecords(ctx, key, len(ids))
	if err != nil {
		t.Fatal(err)
	}
	served, err := s.FakeLedger(ctx)
	if err != nil || len(served) != len(ids) || len(records) != len(ids) {
		t.Fatalf("%d records, the provider served %d, %v", len(records), len(served), err)
	}
	byID := map[string]store.Record{}
	for _, r := range records {
		byID[r.RequestID] = r
		if !ids[r.RequestID] || r.Status != store.StatusSuccess || r.Cost != 30_000_000 || r.Hold != 30_000_000 || r.KeyAlias != "all-the-way" {
			t.Errorf("record %+v", r)
		}
	}
	for _, e := range served {
		if r := byID[e.RequestID]; r.UpstreamID != e.ID || r.Usage.Input != int64(e.PromptTokens) || r.Usage.Output != int64(e.CompletionTokens) {
			t.Errorf("the provider's row %+v has the record %+v", e, r)
		}
	}
}

// checkMetrics waits for the next frames: workers report four times a second.
func checkMetrics(ctx context.Context, t *testing.T, s *stack.Stack, n int) {
	t.Helper()
	want := fmt.Sprintf(`penstock_requests_total{key_alias="all-the-way",model="%s",status="200"} %d`, stack.ThreeCents, n)
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := s.Metrics(ctx)
		if err == nil && strings.Contains(text, want) {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("the metrics do not have %s: %v\n%s", want, err, text)
			return
		case <-tick.C:
		}
	}
}
