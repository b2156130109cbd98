package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const haproxyPath = "/usr/sbin/haproxy"

// haproxyConfig is a plain reverse proxy as it is usually run: one thread for one
// core, connections to the provider kept and shared.
const haproxyConfig = `global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend in
    bind %s
    default_backend provider
backend provider
    server fake %s
`

// haproxy is a running HAProxy.
type haproxy struct {
	cmd     *exec.Cmd
	dir     string
	address string
}

// startHAProxy starts one on cpus in front of upstream, a host:port.
func startHAProxy(ctx context.Context, upstream, cpus string) (*haproxy, error) {
	if _, err := os.Stat(haproxyPath); err != nil {
		return nil, fmt.Errorf("cannot find HAProxy: install the Debian package haproxy: %w", err)
	}
	dir, err := os.MkdirTemp("", "psh")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder (TMPDIR): %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	h := &haproxy{dir: dir, address: l.Addr().String()}
	l.Close()
	path := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(path, fmt.Appendf(nil, haproxyConfig, h.address, upstream), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	h.cmd = exec.Command("taskset", "--cpu-list", cpus, haproxyPath, "-db", "-f", path)
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out strings.Builder
	h.cmd.Stderr = &out
	if err := h.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start HAProxy: %w", err), os.RemoveAll(dir))
	}
	if err := h.ready(ctx); err != nil {
		h.stop()
		return nil, fmt.Errorf("%w: %s", err, out.String())
	}
	return h, nil
}

func (h *haproxy) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := net.Dial("tcp", h.address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot reach HAProxy: %w", err)
		case <-tick.C:
		}
	}
}

func (h *haproxy) stop() {
	_ = h.cmd.Process.Kill() // fails only for one that has ended
	_ = h.cmd.Wait()
	os.RemoveAll(h.dir)
}
