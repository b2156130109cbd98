package upstream

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"sync"

	"golang.org/x/net/http/httpproxy"
)

// Config of a Client.
type Config struct {
	// Proxy chooses the forward proxy for a base URL; a nil URL means a direct
	// connection. Nil means HTTPS_PROXY, HTTP_PROXY and NO_PROXY as they stand
	// in the environment when New is called.
	Proxy func(*url.URL) (*url.URL, error)
}

// Client holds the connection pools of a process. All methods may be called
// from any goroutine.
type Client struct {
	proxy func(*url.URL) (*url.URL, error)

	mu      sync.Mutex
	closed  bool
	targets map[targetKey]*Target
}

// targetKey makes two equal configurations share one pool, unless the CA file
// has changed between them.
type targetKey struct {
	cfg TargetConfig
	ca  [sha256.Size]byte
}

// New makes a Client without connections and without goroutines.
func New(cfg Config) *Client {
	if cfg.Proxy == nil {
		cfg.Proxy = httpproxy.FromEnvironment().ProxyFunc()
	}
	return &Client{proxy: cfg.Proxy, targets: make(map[targetKey]*Target)}
}

// Target gives the target of a configuration. Equal configurations give the
// same target, so that many models of one provider share its connections and
// a reload keeps them; a target that is not used any more loses its
// connections after MaxIdleTime.
func (c *Client) Target(cfg TargetConfig) (*Target, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	var ca []byte
	if cfg.CAFile != "" {
		if ca, err = os.ReadFile(cfg.CAFile); err != nil {
			return nil, fmt.Errorf("cannot read CAFile of upstream %s: %w", cfg.BaseURL, err)
		}
	}
	key := targetKey{cfg: cfg, ca: sha256.Sum256(ca)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if t := c.targets[key]; t != nil {
		return t, nil
	}
	t, err := newTarget(cfg, ca, c.proxy)
	if err != nil {
		return nil, err
	}
	c.targets[key] = t
	return t, nil
}

// Close closes the connections that are not in use, and the others as their
// responses are closed. Calls that begin later fail with ErrClosed.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	targets := c.targets
	c.targets = nil
	c.mu.Unlock()
	for _, t := range targets {
		t.pool.close()
	}
}
