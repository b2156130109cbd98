// Package config is the runtime configuration: it reads LiteLLM's YAML, checks and
// completes it, and compiles it into one immutable Config. It knows nothing of
// Kubernetes or HTTP servers.
package config

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
)

// Source says where a configuration comes from.
type Source struct {
	// Path of the YAML file; it is also what errors name.
	Path string
	// Getenv looks an environment variable up, as os.LookupEnv does. Nil: the
	// environment is empty.
	Getenv func(name string) (string, bool)
}

// Config is a compiled configuration. Nothing in it is written after Load returned,
// so it may be shared by all goroutines.
type Config struct {
	// Deployments in the order of the file. Several with the same ModelName are a
	// group. At least one.
	Deployments []*Deployment
	// Aliases are further names of model groups (router_settings.model_group_alias).
	Aliases []Alias

	MasterKey   Secret // empty: no master key, the admin API refuses everybody
	DatabaseURL Secret // empty: none
	// Environment is the file's environment_variables: already seen by this
	// configuration, and to be exported by the process before it starts.
	Environment map[string]Secret
	// NetworkMock answers every upstream call in the process, after everything that
	// comes before the network (litellm_settings.network_mock).
	NetworkMock bool

	Settings Settings
	// Prices serves wildcard deployments, whose models are not known before a request.
	Prices Prices
	// Checksum is the hex SHA-256 of the compiled configuration without its secrets:
	// equal for files that mean the same.
	Checksum string
}

// Export puts the file's environment_variables into the process's environment, where
// libraries look for theirs (HTTPS_PROXY); the file wins, as in LiteLLM. Call it before
// anything else starts.
func (c *Config) Export() error {
	for name, value := range c.Environment {
		if err := os.Setenv(name, value.Reveal()); err != nil {
			return fmt.Errorf("cannot export environment_variables.%s: %w", name, err)
		}
	}
	return nil
}

// Deployment is one place that serves a model.
type Deployment struct {
	ID        string   // model_info.id, else derived from what the entry says
	ModelName string   // what a client asks for; may end in "*"
	Provider  string   // "openai", "anthropic", "mock", …
	Model     string   // the upstream's name of the model; may end in "*" where ModelName does
	APIBase   string   // URL without a trailing slash; empty for a mock
	APIKey    Secret   // empty where Headers carry their own Authorization
	Headers   []Header // extra_headers in the order of the file, then the organization

	// MockResponse is the canned answer of a deployment that is not real, nil for others.
	MockResponse *string

	Timeout       time.Duration // whole request, above zero
	StreamTimeout time.Duration // whole streamed request, above zero
	NumRetries    int
	Weight        int64 // of simple-shuffle, relative to others of the group; at least 0

	// Price is nil where the model has none: a budgeted key is refused.
	Price *money.Price
	// BaseModel is the name to look prices and encodings up by: model_info.base_model,
	// else Model.
	BaseModel string
	Mode      string // "chat", "embedding", …; empty: unknown
	MaxInput  int64  // tokens; 0: unknown
	MaxOutput int64  // tokens; DefaultMaxOutput where unknown

	// Info is model_info as the file has it, as a JSON object, for /v1/model/info.
	Info json.RawMessage

	source source
}

// Mock says whether the deployment answers in the process by itself.
func (d *Deployment) Mock() bool { return d.Provider == ProviderMock || d.MockResponse != nil }

// Header is a header to send upstream. Its value may be a credential.
type Header struct {
	Name  string
	Value Secret
}

// Alias is another name of a model group.
type Alias struct {
	Name   string
	Model  string
	Hidden bool // not in lists of models
}

// Settings are penstock's own knobs (section penstock_settings, and the LiteLLM keys
// that mean the same).
type Settings struct {
	MaxBodyBytes         int64 // a larger request body is refused with 413
	MaxInFlight          int64 // requests in flight of one worker; 0: from the memory limit
	MaxBodyBytesInFlight int64 // bytes of request bodies in flight of one worker; 0: from the memory limit
	// FitOutputMin is the least output cap, in tokens, that a request is shrunk to
	// when the budget does not afford more.
	FitOutputMin int64
	// EstimatePermille is the factor, in thousandths, on the count of a model whose
	// tokenizer is not exact.
	EstimatePermille int64
	PriceMap         string // path of a file in LiteLLM's price-map format; empty: none

	ClientWriteIdle    time.Duration // a client that takes no byte for this long is dropped
	UpstreamConnect    time.Duration // TCP and TLS
	UpstreamHeader     time.Duration // until the first byte of an answer
	UpstreamStreamIdle time.Duration // between two bytes of a streamed answer
	UpstreamKeepAlive  time.Duration // an idle connection is closed after this long
	UpstreamCAFile     string        // PEM file of further certificate authorities
}

// Defaults of penstock_settings and of what LiteLLM leaves open.
const (
	DefaultMaxBodyBytes = 32 << 20
	// DefaultMaxOutput is taken where neither the file nor a price table knows a
	// model's maximum output.
	DefaultMaxOutput = 16_384
)
