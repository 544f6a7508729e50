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

	"github.com/redis/go-redis/v9"
)

// overTLS returns a stream over TLS, and the server's end of it.
func overTLS(t *testing.T) (*stream, *tls.Conn) {
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
	server := tls.Server(there, &tls.Config{
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		SessionTicketsDisabled: true, // a pipe has no buffer: tickets would block until the client reads
	})
	client := tls.Client(here, &tls.Config{InsecureSkipVerify: true})
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	shaken := make(chan error, 1)
	go func() { shaken <- server.Handshake() }()
	if err := errors.Join(client.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return client, nil }
	rdb := redis.NewClient(single(redis.Options{Addr: "192.0.2.1:6379", Dialer: dial, DisableIdentity: true}))
	t.Cleanup(func() { _ = rdb.Close() })
	go func() {
		for _, says := range []string{"-ERR no HELLO here\r\n", "+PONG\r\n"} {
			_, _ = server.Read(make([]byte, 1<<10))
			_, _ = server.Write([]byte(says))
		}
	}()
	if err := errors.Join(rdb.Ping(t.Context()).Err(), client.SetDeadline(time.Time{})); err != nil { // it has the connection
		t.Fatal(err)
	}
	s := newStream(&streamSource{}, client)
	s.source.stream.Store(s)
	return s, server
}

// start runs a caller on a goroutine of its own.
func start(run func() error) (ended chan error) {
	ended = make(chan error, 1)
	go func() { ended <- run() }()
	synctest.Wait()
	return ended
}

func sending(ctx context.Context, f *flight) func() error {
	return func() error {
		_, err := f.send(ctx, rawCmd{verb: evalsha})
		return err
	}
}

// One caller reads. The writer sends its own command and two others to a server that stops reading, and then the
// writer's context ends. Another call is queued. With TLS nothing can be written after that. Fails when a call returns
// ErrNoReply, or when a reply is lost that can still come.
func TestWhoIsCutOffAsItWritesWithTLSLeavesTheRepliesToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server := overTLS(t)
		reading, written, beside, cut, queued := aFlight(s), aFlight(s), aFlight(s), aFlight(s), aFlight(s)
		s.flying = append(s.flying, reading)
		s.reader = reading
		written.queued, beside.queued = true, true
		beside.cmd.args = []any{string(make([]byte, 4<<10))} // more than fits in one TLS record
		s.queue = []*flight{written, beside}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait := func(f *flight, do todo) chan error {
			return start(func() error { return s.roundTrip(t.Context(), f, do) })
		}
		toReading, toWritten, toBeside := wait(reading, reads), wait(written, waits), wait(beside, waits)
		toCut, toQueued := start(sending(ctx, cut)), start(sending(t.Context(), queued))
		if _, err := server.Read(make([]byte, 4<<10)); err != nil { // the first record
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		if err := <-toCut; !errors.Is(err, context.Canceled) {
			t.Errorf("who was cut off ends with %v, want its context's end", err)
		}
		if err := <-toQueued; !errors.Is(err, errNotSent) || !errors.Is(err, errLost) {
			t.Errorf("who was queued ends with %v, want that it is not sent for want of a connection", err)
		}
		if err := <-toBeside; !errors.Is(err, errLost) || errors.Is(err, errNotSent) {
			t.Errorf("what was not written in full ends with %v, want that it may have run", err)
		}
		_ = server.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = server.Write([]byte(":7\r\n:8\r\n"))
		if err := <-toReading; err != nil || reading.reply != (reply{val: int64(7)}) {
			t.Errorf("who reads ends with %v and %v, want 7", err, reading.reply)
		}
		if err := <-toWritten; err != nil || written.reply != (reply{val: int64(8)}) {
			t.Errorf("what was written ends with %v and %v, want 8", err, written.reply)
		}
	})
}

// Fails when a call begins on a connection that cannot be written, when no other connection is made, or when the last
// caller waits for the TLS close alert to a server that does not read.
func TestWhoIsCutOffAsItWritesWithTLSLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := overTLS(t)
		f := aFlight(s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.begin()
		s.begin()
		ended := start(func() error {
			defer s.end()
			return sending(ctx, f)()
		})
		began := time.Now()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v, want its context's end", err)
		}
		if _, err := aFlight(s).send(t.Context(), rawCmd{}); !errors.Is(err, errNotSent) || s.source.stream.Load() != nil {
			t.Errorf("one that has begun ends with %v, want that it is not sent; others begin: %t", err, s.source.stream.Load() != nil)
		}
		s.end()
		if took := time.Since(began); took != 0 {
			t.Errorf("the last of them took %v to leave", took)
		}
	})
}
