package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/valyala/fasthttp"
)

// proxy is a forward proxy on the way to a target.
type proxy struct {
	tls  *tls.Config // nil for a proxy that is reached by plain TCP
	auth string      // value of Proxy-Authorization, or empty
}

func (t *Target) useProxy(via *url.URL) error {
	t.proxy = &proxy{}
	switch via.Scheme {
	case "http":
	case "https":
		t.proxy.tls = &tls.Config{ServerName: via.Hostname(), MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	default:
		return fmt.Errorf("cannot use proxy %s: the scheme must be http or https", via.Redacted())
	}
	if user := via.User; user != nil {
		password, _ := user.Password()
		t.proxy.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
	}
	t.addr = hostPort(via.Host, via.Scheme)
	if t.tls == nil {
		t.prefix = "http://" + t.host + t.prefix
	}
	return nil
}

// dial opens a connection, TLS included. It ends early when the call is
// canceled, DialTimeout passes, or the call's deadline does.
func (t *Target) dial(call *Call) (*conn, error) {
	ctx, stop := context.WithDeadline(context.Background(), call.until(t.cfg.DialTimeout))
	defer stop()
	defer call.detach()
	if !call.attachDial(stop) {
		return nil, t.failed(PhaseDial, SentNothing, ErrCanceled)
	}
	c, err := t.connect(ctx)
	if err != nil {
		return nil, t.failed(PhaseDial, SentNothing, dialReason(ctx, call, err))
	}
	t.stats.dialed.Add(1)
	return c, nil
}

func dialReason(ctx context.Context, call *Call, err error) error {
	netErr, ok := errors.AsType[net.Error](err)
	switch {
	case call.Canceled():
		return ErrCanceled
	case ctx.Err() != nil || ok && netErr.Timeout():
		return classify(call, os.ErrDeadlineExceeded, ErrDialTimeout)
	default:
		return err
	}
}

func (t *Target) connect(ctx context.Context) (*conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, t.network, t.addr)
	if err != nil {
		return nil, err
	}
	// What follows blocks on the socket; closing it is the way to stop that.
	unhook := context.AfterFunc(ctx, func() { raw.Close() })
	rw, err := t.secure(raw)
	if !unhook() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, err
	}
	return newConn(t, raw, rw)
}

// secure puts the tunnel and the TLS layers on a socket.
func (t *Target) secure(raw net.Conn) (net.Conn, error) {
	rw := raw
	if t.proxy != nil && t.proxy.tls != nil {
		outer := tls.Client(rw, t.proxy.tls)
		if err := outer.Handshake(); err != nil {
			return nil, err
		}
		rw = outer
	}
	if t.tls == nil {
		return rw, nil
	}
	if t.proxy != nil {
		if err := t.proxy.tunnel(rw, t.hostTCP); err != nil {
			return nil, err
		}
	}
	inner := tls.Client(rw, t.tls)
	return inner, inner.Handshake()
}

// tunnel asks the proxy for a connection to addr.
func (p *proxy) tunnel(rw net.Conn, addr string) error {
	head := "CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n"
	if p.auth != "" {
		head += "Proxy-Authorization: " + p.auth + "\r\n"
	}
	if _, err := rw.Write([]byte(head + "\r\n")); err != nil {
		return err
	}
	br := bufio.NewReader(rw)
	var h fasthttp.ResponseHeader
	if err := h.Read(br); err != nil {
		return fmt.Errorf("%w: no readable answer to CONNECT", ErrProxyRefused)
	}
	if h.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("%w: status %d", ErrProxyRefused, h.StatusCode())
	}
	// The upstream speaks after us: bytes that are here already are not its.
	if br.Buffered() > 0 {
		return fmt.Errorf("%w: bytes after the answer to CONNECT", ErrProtocol)
	}
	return nil
}
