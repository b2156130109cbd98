// Package conformance starts what the official SDKs are pointed at: the pod's four
// processes, the fake upstream, and a provider that plays recorded answers.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/penstock-gateway/penstock/test/stack"
)

// The environment through which a client learns where everything is.
const (
	EnvBaseURL  = "CONFORMANCE_BASE_URL"  // the gateway, with /v1
	EnvAdminURL = "CONFORMANCE_ADMIN_URL" // the gateway, without
	EnvAdminKey = "CONFORMANCE_ADMIN_KEY" // the master key
	EnvFakeURL  = "CONFORMANCE_FAKE_URL"  // the fake upstream's ledger
	EnvPlayURL  = "CONFORMANCE_PLAY_URL"  // the recorded answers, and what was received
	EnvWorkers  = "CONFORMANCE_WORKERS"   // how many the gateway has; for messages
)

// Config says what is started. BinDir is required; the programs are built into it.
type Config struct {
	BinDir  string
	Workers int // the gateway's --workers
}

// Pod is everything that was started. Stop it once.
type Pod struct {
	cfg    Config
	player *player
	stack  *stack.Stack
}

// Start builds the programs and starts everything; it returns when requests can be
// served. The caller's working directory must be in the module.
func Start(ctx context.Context, cfg Config) (*Pod, error) {
	if err := stack.Build(ctx, cfg.BinDir); err != nil {
		return nil, err
	}
	player, err := startPlayer()
	if err != nil {
		return nil, err
	}
	s, err := stack.Start(ctx, stack.Config{BinDir: cfg.BinDir, Workers: cfg.Workers, Models: models(player.url())})
	if err != nil {
		return nil, errors.Join(err, player.stop())
	}
	return &Pod{cfg: cfg, player: player, stack: s}, nil
}

// models adds a model that the provider knows by another name, and one for each
// recorded answer.
func models(playURL string) string {
	const entry = "- model_name: %q\n  litellm_params: {model: %q, input_cost_per_token: %de-9, output_cost_per_token: %de-9, api_base: %q, api_key: sk-fake}\n" +
		"  model_info: {base_model: gpt-4o, max_output_tokens: 4096}\n"
	// The stack puts the fake upstream's address where %s is left.
	return fmt.Sprintf(entry, "house-name", "openai/fake-renamed", stack.FakeInput, stack.FakeOutput, "%s/v1") +
		fmt.Sprintf(entry, "played-*", "openai/played-*", stack.FakeInput, stack.FakeOutput, playURL+"/v1")
}

// Env is the environment of a client, "NAME=value" each.
func (p *Pod) Env() []string {
	address := "http://" + p.stack.Address()
	return []string{
		EnvBaseURL + "=" + address + "/v1",
		EnvAdminURL + "=" + address,
		EnvAdminKey + "=" + p.stack.AdminKey(),
		EnvFakeURL + "=" + p.stack.FakeURL(),
		EnvPlayURL + "=" + p.player.url(),
		EnvWorkers + "=" + strconv.Itoa(p.cfg.Workers),
	}
}

// Logs are the ends of the programs' logs, for a failure's report.
func (p *Pod) Logs() string { return p.stack.Logs() }

// Stop ends everything. It says which program did not end well or had died.
func (p *Pod) Stop() error {
	var died error
	for _, name := range []stack.Process{stack.Gateway, stack.Collector, stack.Sidecar} {
		if n := p.stack.Restarts(name); n > 0 {
			died = errors.Join(died, fmt.Errorf("%s died %d times", name, n))
		}
	}
	return errors.Join(died, p.stack.Stop(), p.player.stop())
}
