package proxy

import (
	"fmt"

	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/upstream"
)

// target is a deployment ready to be called: its pool and the headers that every
// call carries. Nothing of a client's own headers goes upstream.
type target struct {
	pool     *upstream.Target
	headers  [][2]string
	capField string
}

// chatPath is appended to a deployment's api_base.
const chatPath = "/chat/completions"

func newTargets(client *upstream.Client, c *config.Config) (map[string]*target, error) {
	targets := make(map[string]*target)
	for _, d := range c.Deployments {
		if d.Mock() || c.NetworkMock {
			continue
		}
		pool, err := client.Target(upstream.TargetConfig{
			BaseURL:       d.APIBase,
			CAFile:        c.Settings.UpstreamCAFile,
			DialTimeout:   c.Settings.UpstreamConnect,
			HeaderTimeout: c.Settings.UpstreamHeader,
			IdleTimeout:   c.Settings.UpstreamStreamIdle,
			MaxIdleTime:   c.Settings.UpstreamKeepAlive,
		})
		if err != nil {
			return nil, fmt.Errorf("cannot use deployment %q: %w", d.ModelName, err)
		}
		targets[d.ID] = &target{pool: pool, headers: upstreamHeaders(d), capField: capField(d)}
	}
	return targets, nil
}

func upstreamHeaders(d *config.Deployment) [][2]string {
	headers := [][2]string{{"Content-Type", "application/json"}, {"User-Agent", "penstock"}}
	if key := d.APIKey.Reveal(); key != "" {
		headers = append(headers, [2]string{"Authorization", "Bearer " + key})
	}
	for _, h := range d.Headers {
		headers = append(headers, [2]string{h.Name, h.Value.Reveal()})
	}
	return headers
}

// capField is the member in which an upstream takes an output cap. OpenAI's newer
// models refuse max_tokens; others mostly know nothing else.
func capField(d *config.Deployment) string {
	if d.Provider == "openai" && d.APIBase == openAIBase {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

const openAIBase = "https://api.openai.com/v1"
