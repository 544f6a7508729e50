package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TLSServer is a server that asks its clients for a certificate.
type TLSServer struct {
	*RealServer
	config *tls.Config
	// Cert, Key and CACert are files in PEM: a client's certificate and its key, and whom to trust.
	Cert, Key, CACert string
}

// StartTLS starts a server that speaks TLS, with certificates made for this test. If it does not start, and is known
// to have no TLS, the test is skipped. The methods of RealServer use its plain port, which exists for the test.
func StartTLS(t testing.TB, args ...string) *TLSServer {
	t.Helper()
	dir := t.TempDir()
	authority := newAuthority(t, dir)
	server := authority.issue("server", x509.ExtKeyUsageServerAuth)
	client := authority.issue("client", x509.ExtKeyUsageClientAuth)
	pair, err := tls.LoadX509KeyPair(client+".crt", client+".key")
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(authority.cert)
	r, err := tryLaunch(t, func(r *RealServer) []string {
		return append(append(r.defaults(),
			"--tls-port", r.side, "--tls-cert-file", server+".crt", "--tls-key-file", server+".key",
			"--tls-ca-cert-file", authority.path+".crt", "--tls-auth-clients", "yes"), args...)
	})
	if err != nil && Lacks("tls") {
		t.Skip("left out: this server has no TLS")
	}
	if err != nil {
		t.Fatal(err)
	}
	return &TLSServer{
		RealServer: r,
		Cert:       client + ".crt", Key: client + ".key", CACert: authority.path + ".crt",
		config: &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
}

// TLSAddr returns the address at which the server speaks TLS.
func (s *TLSServer) TLSAddr() string { return net.JoinHostPort("127.0.0.1", s.side) }

// Client returns a client that shows its certificate, closed when t ends.
func (s *TLSServer) Client(t testing.TB, mod ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, &redis.Options{Addr: s.TLSAddr(), TLSConfig: s.config.Clone()}, mod)
}

// authority signs the certificates of one test.
type authority struct {
	t    testing.TB
	path string // of its files, without extension
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB, dir string) *authority {
	t.Helper()
	a := &authority{t: t, path: filepath.Join(dir, "ca")}
	a.issue("ca")
	return a
}

// issue writes a certificate and its key beside the authority's, and returns
// their path without the ending. The first one is the authority's own.
func (a *authority) issue(name string, use ...x509.ExtKeyUsage) (path string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "relock test " + name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  use,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage |= x509.KeyUsageCertSign
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	a.check(err)
	if a.cert == nil {
		a.key = key
		a.cert, err = x509.ParseCertificate(der)
		a.check(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	a.check(err)
	path = filepath.Join(filepath.Dir(a.path), name)
	a.write(path+".crt", "CERTIFICATE", der)
	a.write(path+".key", "PRIVATE KEY", private)
	return path
}

func (a *authority) write(path, kind string, der []byte) {
	a.t.Helper()
	a.check(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func (a *authority) check(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("redistest: %v", err)
	}
}
