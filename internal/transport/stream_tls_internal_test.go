package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// overTLS returns both ends of a connection by TLS.
func overTLS(t *testing.T) (client, server *tls.Conn) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, is, is, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	server = tls.Server(there, &tls.Config{
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		SessionTicketsDisabled: true, // a pipe has no buffer: tickets would block until the client reads
	})
	client = tls.Client(here, &tls.Config{InsecureSkipVerify: true})
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	shaken := make(chan error, 1)
	go func() { shaken <- server.Handshake() }()
	if err := errors.Join(client.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// The server does not read. Fails when the last call to leave waits for the write in progress, or for the alert with
// which TLS says goodbye, or when a goroutine stays.
func TestACallLeavesAtOnceThoughNothingCanBeWrittenWithTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := overTLS(t)
		s := newStream(&streamSource{t: &Transport{}}, client, 0)
		ctx, cancel := context.WithCancel(t.Context())
		c := sends(ctx, s)
		began := time.Now()
		cancel()
		<-c.ended
		if !errors.Is(c.err, context.Canceled) || s.source.stream.Load() != nil {
			t.Errorf("it ends with %v, want its context's end; others begin: %t", c.err, s.source.stream.Load() != nil)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v to leave", took)
		}
		s.running.Wait()
	})
}
