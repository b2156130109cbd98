package upstream

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// TargetConfig says where an upstream is and how patient to be with it. The
// zero value of a limit means its default; a negative one is refused.
type TargetConfig struct {
	// BaseURL is http or https, with a host and optionally a port and a path
	// that is put before every call's path. No user, query or fragment.
	BaseURL string
	// SocketPath dials this unix socket in place of BaseURL's host.
	SocketPath string
	// CAFile is a PEM file of the only authorities to trust. Empty means the
	// system's.
	CAFile string
	// InsecureSkipVerify accepts any certificate: whoever is on the path can
	// read and change everything, keys included.
	InsecureSkipVerify bool

	// DialTimeout covers name lookup, connect, proxy and TLS. Default 10 s.
	DialTimeout time.Duration
	// HeaderTimeout is the time from the request's last byte to the end of the
	// response header. Default 10 min.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a body may stand still, in either direction; any
	// byte counts as progress. Default 5 min.
	IdleTimeout time.Duration
	// MaxIdle is the number of connections kept open unused. Default 512.
	MaxIdle int
	// MaxIdleTime is how long one is kept; a Keep-Alive header of the upstream
	// shortens it. Default 30 s, below the 60 s and 75 s of common servers.
	MaxIdleTime time.Duration
	// MaxResponseHeader is in bytes; it is also the size of the read buffer
	// that a call holds while it runs. Default 16 KiB.
	MaxResponseHeader int
	// MaxBody is what ReadAll takes at most, in bytes. Default 64 MiB.
	MaxBody int
}

func (cfg TargetConfig) withDefaults() (TargetConfig, error) {
	durations := []struct {
		name  string
		value *time.Duration
		std   time.Duration
	}{
		{"DialTimeout", &cfg.DialTimeout, 10 * time.Second},
		{"HeaderTimeout", &cfg.HeaderTimeout, 10 * time.Minute},
		{"IdleTimeout", &cfg.IdleTimeout, 5 * time.Minute},
		{"MaxIdleTime", &cfg.MaxIdleTime, 30 * time.Second},
	}
	for _, d := range durations {
		if *d.value < 0 {
			return cfg, fmt.Errorf("cannot use %s %s for upstream %s: it is negative", d.name, *d.value, cfg.BaseURL)
		}
		if *d.value == 0 {
			*d.value = d.std
		}
	}
	sizes := []struct {
		name  string
		value *int
		std   int
	}{
		{"MaxIdle", &cfg.MaxIdle, 512},
		{"MaxResponseHeader", &cfg.MaxResponseHeader, 16 << 10},
		{"MaxBody", &cfg.MaxBody, 64 << 20},
	}
	for _, s := range sizes {
		if *s.value < 0 {
			return cfg, fmt.Errorf("cannot use %s %d for upstream %s: it is negative", s.name, *s.value, cfg.BaseURL)
		}
		if *s.value == 0 {
			*s.value = s.std
		}
	}
	return cfg, nil
}

// Target is one upstream with its pool. All methods may be called from any
// goroutine.
type Target struct {
	cfg     TargetConfig
	network string
	addr    string      // what to dial: the host, the socket or the proxy
	host    string      // the Host header
	hostTCP string      // host:port, what a proxy is asked for
	prefix  string      // what stands before a call's path in the request line
	tls     *tls.Config // nil for http
	proxy   *proxy      // nil for a direct connection
	pool    pool
	readers sync.Pool // of *bufio.Reader, MaxResponseHeader in size
	stats   counters
}

type counters struct {
	dialed, reused, stale, resent atomic.Uint64
	inUse                         atomic.Int64
}

// Stats are counts since the target was made, and two gauges.
type Stats struct {
	Dialed uint64 // connections opened
	Reused uint64 // calls sent on a kept connection
	Stale  uint64 // kept connections found closed before use
	Resent uint64 // calls sent again, see the package comment
	Idle   int    // connections kept now
	InUse  int    // connections with a call on them now
}

// Stats of the target.
func (t *Target) Stats() Stats {
	return Stats{
		Dialed: t.stats.dialed.Load(),
		Reused: t.stats.reused.Load(),
		Stale:  t.stats.stale.Load(),
		Resent: t.stats.resent.Load(),
		Idle:   t.pool.len(),
		InUse:  int(t.stats.inUse.Load()),
	}
}

func newTarget(cfg TargetConfig, ca []byte, choose func(*url.URL) (*url.URL, error)) (*Target, error) {
	u, err := parseBaseURL(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("cannot use BaseURL %q: %w", redact(cfg.BaseURL), err)
	}
	host, err := httpguts.PunycodeHostPort(u.Host)
	if err != nil {
		return nil, fmt.Errorf("cannot use BaseURL %q: %w", cfg.BaseURL, err)
	}
	t := &Target{cfg: cfg, network: "tcp", host: host, prefix: strings.TrimRight(u.EscapedPath(), "/")}
	t.hostTCP = hostPort(host, u.Scheme)
	t.addr = t.hostTCP
	t.pool.max = cfg.MaxIdle
	t.readers.New = func() any { return bufio.NewReaderSize(nil, cfg.MaxResponseHeader) }
	if u.Scheme == "https" {
		if t.tls, err = tlsConfig(cfg, ca, t.hostTCP); err != nil {
			return nil, err
		}
	}
	if cfg.SocketPath != "" {
		t.network, t.addr = "unix", cfg.SocketPath
		return t, nil
	}
	via, err := choose(u)
	if err != nil {
		return nil, fmt.Errorf("cannot choose a proxy for upstream %s: %w", cfg.BaseURL, err)
	}
	if via == nil {
		return t, nil
	}
	return t, t.useProxy(via)
}

func parseBaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("it is not a URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the scheme must be http or https")
	case u.Hostname() == "":
		return nil, errors.New("it has no host")
	case u.User != nil:
		return nil, errors.New("it holds credentials; give them as a header")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("it must not have a query or a fragment")
	case !validPath(u.EscapedPath() + "/"):
		return nil, errors.New("its path has characters that need escaping")
	}
	return u, nil
}

// redact keeps a password that was put into a URL by mistake out of the logs.
func redact(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "(unreadable)"
	}
	return u.Redacted()
}

// hostPort adds the scheme's port where none is given.
func hostPort(host, scheme string) string {
	u := url.URL{Host: host}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func tlsConfig(cfg TargetConfig, ca []byte, addr string) (*tls.Config, error) {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cannot use BaseURL %q: %w", cfg.BaseURL, err)
	}
	conf := &tls.Config{
		ServerName:         name,
		NextProtos:         []string{"http/1.1"},
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: cfg.InsecureSkipVerify,
		ClientSessionCache: tls.NewLRUClientSessionCache(64),
	}
	if cfg.CAFile != "" {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("cannot use CAFile %s: it holds no PEM certificate", cfg.CAFile)
		}
	}
	return conf, nil
}
