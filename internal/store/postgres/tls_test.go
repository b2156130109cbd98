package postgres_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/test/pg"
)

// certificate writes a certificate for 127.0.0.1 that signs itself, and its key, readable
// for a server that runs as the account postgres.
func certificate(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	check(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	check(t, err)
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	check(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	check(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		check(t, err)
		uid, err := strconv.Atoi(u.Uid)
		check(t, err)
		check(t, os.Chown(key, uid, -1))
	}
	return cert, key
}

// What the URL says about TLS is what PgBouncer does towards the server: it encrypts, and
// a server whose certificate is not the right one gets no password.
func TestTLSToTheServer(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tls")
	check(t, err)
	defer os.RemoveAll(dir)
	check(t, os.Chmod(dir, 0o755))
	cert, key := certificate(t, dir, "server")
	other, _ := certificate(t, dir, "other")
	s := &site{t: t, server: strict(t, "ssl = on", "ssl_cert_file = '"+cert+"'", "ssl_key_file = '"+key+"'")}
	s.db = s.server.Database(t)
	s.sql("CREATE ROLE app LOGIN PASSWORD 'right'")
	behind := func(parameters string) *pg.Bouncer {
		b, err := pg.StartBouncer(t.Context(), pg.BouncerConfig{ServerURL: "postgres://app:right@" + s.server.Address() + "/x?" + parameters})
		check(t, err)
		t.Cleanup(func() { _ = b.Stop() })
		return b
	}
	encrypted := func(want string) {
		t.Helper()
		got, err := s.server.Query(t.Context(), s.db, "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'app'")
		if err != nil || got != want {
			t.Errorf("encrypted: %s (%v), want %s", got, err, want)
		}
		s.sql(cutAll)
	}
	for parameters, want := range map[string]string{
		"sslmode=verify-full&sslrootcert=" + cert: "t",
		"sslmode=require":                         "t",
		"":                                        "t", // as libpq does: where the server has it
		"sslmode=disable":                         "f",
	} {
		check(t, open(t, behind(parameters).URL(s.db)).Ping(t.Context()))
		encrypted(want)
	}
	s.bouncer = behind("sslmode=verify-full&sslrootcert=" + other)
	if err := open(t, s.bouncer.URL(s.db)).Ping(t.Context()); err == nil {
		t.Error("a server with another certificate got the password")
	}
	s.awaitLog("TLS handshake error")
}
