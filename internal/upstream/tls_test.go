package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// authority makes a certificate for 127.0.0.1 and the PEM file that trusts it.
func authority(t *testing.T) (cert tls.Certificate, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "upstream"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, caFile
}

// tlsServer counts its handshakes: how many were resumed, and how many spoke h2.
type tlsServer struct {
	*server
	caFile      string
	resumed, h2 atomic.Int64
}

func serveTLS(t *testing.T, script func(*peer)) *tlsServer {
	cert, caFile := authority(t)
	srv := &tlsServer{caFile: caFile}
	conf := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}
	srv.server = serve(t, tls.NewListener(listen(t), conf), func(p *peer) {
		tc := p.Conn.(*tls.Conn)
		if tc.Handshake() != nil {
			return
		}
		if st := tc.ConnectionState(); st.DidResume {
			srv.resumed.Add(1)
		} else if st.NegotiatedProtocol == "h2" {
			srv.h2.Add(1)
		}
		script(p)
	})
	return srv
}

func https(s *tlsServer) string { return "https://" + s.ln.Addr().String() }

func TestTLS(t *testing.T) {
	t.Parallel()
	srv := serveTLS(t, answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
	_, otherCA := authority(t)
	for _, c := range []struct {
		why  string
		set  func(*TargetConfig)
		good bool
	}{
		{"the authority is given", func(c *TargetConfig) { c.CAFile = srv.caFile }, true},
		{"the system does not know it", nil, false},
		{"another authority", func(c *TargetConfig) { c.CAFile = otherCA }, false},
		{"verification is off", func(c *TargetConfig) { c.InsecureSkipVerify = true }, true},
	} {
		t.Run(c.why, func(t *testing.T) {
			for range 2 {
				_, body, err := roundTrip(target(t, https(srv), c.set), post("{}"))
				if c.good && (body != "ok" || err != nil) || !c.good && (err == nil || !NothingSent(err)) {
					t.Errorf("got %q %v", body, err)
				}
			}
		})
	}
	tg := target(t, https(srv), func(c *TargetConfig) { c.CAFile = srv.caFile })
	before := srv.resumed.Load()
	for range 3 {
		if _, _, err := roundTrip(tg, post("{}")); err != nil {
			t.Error(err)
		}
	}
	if srv.resumed.Load()-before != 2 || srv.h2.Load() != 0 {
		t.Errorf("%d of 3 sessions were resumed, %d spoke h2", srv.resumed.Load()-before, srv.h2.Load())
	}
}

// Session tickets that come with the first answer must not make a kept
// connection look stale; a close alert must.
func TestTLSReuse(t *testing.T) {
	t.Parallel()
	done := make(chan struct{}, 2)
	srv := serveTLS(t, func(p *peer) {
		for range 3 {
			_, _, _ = p.request()
			p.send(ok2)
		}
		p.Close()
		done <- struct{}{}
	})
	tg := target(t, https(srv), func(c *TargetConfig) { c.CAFile = srv.caFile })
	for i := range 4 {
		if _, body, err := roundTrip(tg, post(strings.Repeat("x", 100<<10))); body != "ok" || err != nil {
			t.Fatalf("got %q %v", body, err)
		}
		if i == 2 {
			<-done
		}
	}
	if st := tg.Stats(); st.Dialed != 2 || st.Reused != 2 || st.Stale != 1 || srv.requests.Load() != 4 {
		t.Errorf("stats %+v", st)
	}
}

func TestCancelOverTLS(t *testing.T) {
	t.Parallel()
	reached, ended := make(chan struct{}), make(chan time.Duration, 1)
	srv := serveTLS(t, func(p *peer) {
		_, _ = p.br.Peek(1)
		close(reached)
		// Nothing is read: neither the request nor a close alert could get through.
		raw := p.Conn.(*tls.Conn).NetConn()
		began := time.Now()
		for _, err := raw.Write([]byte{0}); err == nil; _, err = raw.Write([]byte{0}) {
		}
		ended <- time.Since(began)
	})
	tg := target(t, https(srv), func(c *TargetConfig) { c.CAFile = srv.caFile })
	call, do := post(strings.Repeat("x", 32<<20)), make(chan error, 1)
	go func() { _, _, err := roundTrip(tg, call); do <- err }()
	<-reached
	cancelNow(t, call, do)
	if d := <-ended; d > time.Second {
		t.Errorf("the upstream saw the end after %s", d)
	}
}

// forwardProxy is a CONNECT proxy that wants credentials, and a plain one.
type forwardProxy struct {
	*server
	connects, plain atomic.Int64
}

func serveProxy(t *testing.T, auth string) *forwardProxy {
	fp := &forwardProxy{}
	fp.server = serve(t, listen(t), func(p *peer) {
		req, err := http.ReadRequest(p.br)
		switch {
		case err != nil:
		case req.Header.Get("Proxy-Authorization") != auth:
			p.send("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
		case req.Method != http.MethodConnect:
			fp.plain.Add(1)
			_, _ = io.Copy(io.Discard, req.Body)
			p.send("HTTP/1.1 200 OK\r\nX-Asked: " + req.RequestURI + "\r\nContent-Length: 2\r\n\r\nok")
		default:
			fp.connects.Add(1)
			up, err := net.Dial("tcp", req.Host)
			if err != nil {
				return
			}
			p.send("HTTP/1.1 200 Connection established\r\n\r\n")
			var both sync.WaitGroup
			both.Go(func() { _, _ = io.Copy(up, p.br); up.Close() })
			_, _ = io.Copy(p, up)
			p.Close()
			both.Wait()
		}
	})
	return fp
}

// through makes a target whose traffic goes through a proxy.
func through(t *testing.T, via string, cfg TargetConfig) (*Target, error) {
	t.Helper()
	u, err := url.Parse(via)
	if err != nil {
		t.Fatal(err)
	}
	client := New(Config{Proxy: func(*url.URL) (*url.URL, error) { return u, nil }})
	t.Cleanup(client.Close)
	return client.Target(cfg)
}

func TestProxy(t *testing.T) {
	t.Parallel()
	auth := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:pa:ss"))
	fp := serveProxy(t, auth)
	srv := serveTLS(t, answering(ok2))
	via := "http://user:pa%3Ass@" + fp.ln.Addr().String()

	tg, err := through(t, via, TargetConfig{BaseURL: https(srv), CAFile: srv.caFile})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, body, err := roundTrip(tg, post("{}")); body != "ok" || err != nil {
			t.Errorf("CONNECT: %q %v", body, err)
		}
	}
	if n := fp.connects.Load(); n != 1 {
		t.Errorf("%d tunnels for three calls", n)
	}

	tg, err = through(t, via, TargetConfig{BaseURL: "http://far.test/v1"})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tg.Do(&Call{Method: "POST", Path: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	if got := string(resp.Header().Peek("X-Asked")); got != "http://far.test/v1/x" {
		t.Errorf("the plain proxy was asked for %q", got)
	}

	tg, err = through(t, "http://"+fp.ln.Addr().String(), TargetConfig{BaseURL: https(srv), CAFile: srv.caFile})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := roundTrip(tg, post("{}")); !errors.Is(err, ErrProxyRefused) || !NothingSent(err) || !strings.Contains(err.Error(), "407") {
		t.Errorf("without credentials: %v", err)
	}
}

func TestTargetConfigErrors(t *testing.T) {
	t.Parallel()
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(notPEM, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why, names, proxy string
		cfg               TargetConfig
	}{
		{"no scheme", "BaseURL", "", TargetConfig{BaseURL: "api.test/v1"}},
		{"other scheme", "BaseURL", "", TargetConfig{BaseURL: "ftp://api.test"}},
		{"no host", "BaseURL", "", TargetConfig{BaseURL: "http://"}},
		{"query", "BaseURL", "", TargetConfig{BaseURL: "http://api.test/?a=1"}},
		{"fragment", "BaseURL", "", TargetConfig{BaseURL: "http://api.test/#a"}},
		{"credentials", "BaseURL", "", TargetConfig{BaseURL: "http://u:secret@api.test/"}},
		{"negative time", "HeaderTimeout", "", TargetConfig{BaseURL: "http://api.test", HeaderTimeout: -1}},
		{"negative size", "MaxBody", "", TargetConfig{BaseURL: "http://api.test", MaxBody: -1}},
		{"no CA file", "CAFile", "", TargetConfig{BaseURL: "https://api.test", CAFile: "/nonexistent"}},
		{"CA file without PEM", "CAFile", "", TargetConfig{BaseURL: "https://api.test", CAFile: notPEM}},
		{"socks proxy", "proxy", "socks5://u:secret@p.test", TargetConfig{BaseURL: "https://api.test"}},
	} {
		_, err := through(t, c.proxy, c.cfg)
		if err == nil || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), c.names) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}
