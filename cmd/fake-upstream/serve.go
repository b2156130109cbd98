package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
)

type options struct {
	listen string
	rows   int
	mode   fakeupstream.Mode
}

// flag lets one setting be given on the command line.
type flag struct {
	fakeupstream.Setting
	mode *fakeupstream.Mode
}

func (f flag) String() string {
	if f.mode == nil {
		return ""
	}
	return f.mode.Show()[f.Name]
}
func (f flag) Set(value string) error { return f.mode.Set(f.Name, value) }
func (f flag) Type() string           { return "value" }

func settings(o *options) []flag {
	var flags []flag
	for _, s := range fakeupstream.Settings() {
		flags = append(flags, flag{Setting: s, mode: &o.mode})
	}
	return flags
}

func long() string {
	var b strings.Builder
	b.WriteString(`Serves POST /v1/chat/completions like a provider, streaming and not, and keeps a ledger.

The flags set the defaults. A request changes them for itself, by its model's name or by
headers; headers win:

`)
	for _, s := range fakeupstream.Settings() {
		fmt.Fprintf(&b, "  fake-%-16s X-Fake-%-16s %s\n", strings.TrimPrefix(s.Word+"-VALUE", "-"), http.CanonicalHeaderKey(s.Name), s.Help)
	}
	b.WriteString(`
A status or a fault may stand in a model's name alone: fake-429, fake-500, fake-no-done.
Settings add up: fake-slow-2s-out-100-pace-10ms. Other words mean nothing: fake-gpt.

  GET  /ledger?after=N&limit=M  rows with n above N as JSON lines, 10,000 at most
  GET  /ledger/summary          sums since the last reset; in_flight 0 means all rows are final
  POST /ledger/reset            forget all rows
  GET  /mode, POST /mode        the defaults; POST takes {"setting": value, …}
  GET  /health                  200`)
	return b.String()
}

// run serves until a signal; running answers get a second to end.
func run(ctx context.Context, o *options) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("cannot listen on --listen %s: %w", o.listen, err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{
		Handler:           fakeupstream.New(fakeupstream.Config{Mode: o.mode, LedgerRows: o.rows}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := server.Shutdown(last); errors.Is(err, context.DeadlineExceeded) {
		return server.Close() // streams that are told to be slow do not hold up a stop
	}
	return nil
}
