package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

// gatewayRole is the column of the process that requests pass.
const gatewayRole = "gateway"

// roles are the columns of CPU time, in order.
func roles() []string {
	return []string{gatewayRole, string(stack.Collector), string(stack.Sidecar), string(stack.PgBouncer), string(stack.Postgres)}
}

// target is something that a scenario's load is sent to.
type target struct {
	scenario, name string
	address        string
	requests       []*load.Request
	concurrency    int
	usage          func() (map[string]stack.Usage, error)
}

// bench is what was started for the targets.
type bench struct {
	o       *runOptions
	stacks  []*stack.Stack
	haproxy *haproxy
	targets []*target
}

func (b *bench) stop() error {
	if b.haproxy != nil {
		b.haproxy.stop()
	}
	var errs []error
	for _, s := range b.stacks {
		errs = append(errs, s.Stop())
	}
	return errors.Join(errs...)
}

// prepare starts what the scenarios need.
func (b *bench) prepare(ctx context.Context) error {
	if b.o.scenario == scenarioWorkers {
		return b.prepareWorkers(ctx)
	}
	s, key, err := b.stack(ctx, stack.Config{Workers: b.o.workers, GatewayCPUs: b.o.gatewayCPUs})
	if err != nil {
		return err
	}
	if b.o.has(scenarioLarge) {
		requests, err := largePrompts(key)
		if err != nil {
			return err
		}
		b.add(s, scenarioLarge, "Penstock", requests)
	}
	if b.o.has(scenarioShort) {
		requests := shortChats(key)
		b.add(s, scenarioShort, "Penstock", requests)
		upstream := strings.TrimPrefix(s.FakeURL(), "http://")
		if b.haproxy, err = startHAProxy(ctx, upstream, b.o.gatewayCPUs); err != nil {
			return err
		}
		pid := b.haproxy.cmd.Process.Pid
		b.targets = append(b.targets, &target{
			scenario: scenarioShort, name: "HAProxy", address: b.haproxy.address, requests: requests, concurrency: b.o.connections(scenarioShort),
			usage: func() (map[string]stack.Usage, error) {
				return map[string]stack.Usage{gatewayRole: stack.UsageOf(pid)}, nil
			},
		})
	}
	return nil
}

// prepareWorkers sets one process with a thread for each CPU against one process for
// each CPU with one thread.
func (b *bench) prepareWorkers(ctx context.Context) error {
	set, err := cpuSet(b.o.gatewayCPUs)
	if err != nil {
		return err
	}
	n := set.Count()
	for _, c := range []struct{ workers, threads int }{{1, n}, {n, 1}} {
		s, key, err := b.stack(ctx, stack.Config{
			Workers: c.workers, GatewayCPUs: b.o.gatewayCPUs, GatewayEnv: []string{fmt.Sprintf("GOMAXPROCS=%d", c.threads)},
		})
		if err != nil {
			return err
		}
		requests, err := largePrompts(key)
		if err != nil {
			return err
		}
		b.add(s, scenarioLarge, fmt.Sprintf("%d process(es) × %d thread(s)", c.workers, c.threads), requests)
	}
	return nil
}

func (b *bench) stack(ctx context.Context, cfg stack.Config) (*stack.Stack, string, error) {
	cfg.BinDir, cfg.Logger = b.o.bin, slog.New(slog.DiscardHandler)
	s, err := stack.Start(ctx, cfg)
	if err != nil {
		return nil, "", err
	}
	b.stacks = append(b.stacks, s)
	key, err := s.NewKey(ctx, stack.KeyOptions{Alias: "bench", Budget: 1_000_000})
	return s, key, err
}

func (b *bench) add(s *stack.Stack, scenario, name string, requests []*load.Request) {
	b.targets = append(b.targets, &target{
		scenario: scenario, name: name, address: s.Address(), requests: requests, concurrency: b.o.connections(scenario),
		usage: func() (map[string]stack.Usage, error) {
			all := map[string]stack.Usage{}
			for _, role := range roles() {
				u, err := s.Usage(stack.Process(role))
				if err != nil {
					return nil, err
				}
				all[role] = u
			}
			return all, nil
		},
	})
}

// largePrompts are 24 requests of 50, 75 and 100 thousand tokens for the in-process
// mock, half of them streams. Each request also begins with a number of its own.
func largePrompts(key string) ([]*load.Request, error) {
	perWord, err := tokensPerWord()
	if err != nil {
		return nil, err
	}
	var all []*load.Request
	for i := range 24 {
		size := float64(50_000 + i%3*25_000)
		all = append(all, load.Chat(load.ChatOptions{
			Key: key, Model: "mock", Prompt: prompt(int64(i), int(size/perWord)), MaxTokens: 16, Stream: i/3%2 == 1, Serial: true,
		}))
	}
	return all, nil
}

// shortChats are 24 requests of about a hundred tokens for the fake upstream, half of
// them streams.
func shortChats(key string) []*load.Request {
	var all []*load.Request
	for i := range 24 {
		all = append(all, load.Chat(load.ChatOptions{
			Key: key, Model: "fake", Prompt: prompt(int64(i), 80), MaxTokens: 16, Stream: i%2 == 1, Serial: true,
		}))
	}
	return all
}
