package transport_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// failing is a dialer that counts, and whose connections are broken while it is said to be.
func failing(dial dialer, dials *int, broken *bool, fails func(net.Conn) (net.Conn, error)) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		*dials++
		c, err := dial(ctx, network, addr)
		if err == nil && *broken {
			return fails(c)
		}
		return c, err
	}
}

// A server at its maxclients, or a firewall that lets nobody in any more, leaves the client's
// connections as they are. Fails when a call waits for another one in vain or says that there is
// none, when each call tries, or when none does again.
func TestCallsGoByTheClientWhereNoConnectionCanBeMade(t *testing.T) {
	refuses := func(net.Conn) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Err: errors.New("refused")} }
	hangsUp := func(c net.Conn) (net.Conn, error) { return c, c.Close() }
	for name, fails := range map[string]func(net.Conn) (net.Conn, error){"refused": refuses, "hung up": hangsUp} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, dials, broken := newLink(t), 0, false
				rdb := l.client(t, func(o *redis.Options) { o.Dialer = failing(l.dial, &dials, &broken, fails) })
				seen, over := during(rdb)
				tr := over(rdb)
				defer tr.Wait()
				dials, broken = 0, true
				begin := time.Now()
				for i := range int64(5) {
					reply, err := tr.Do(t.Context(), time.Minute, call("k"))
					if err != nil || reply[0] != i+1 || seen.Load() != 1 {
						t.Errorf("%v, %v, with %d goroutines, want run %d by the client", reply, err, seen.Load(), i+1)
					}
					synctest.Wait()
				}
				// go-redis dials once more for itself, as it has found that it cannot.
				if took := time.Since(begin); took != 0 || dials > 2 {
					t.Errorf("%v and %d dials, want one call to try", took, dials)
				}
				broken = false
				virtual.Sleep(time.Second)
				if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil || seen.Load() != 0 {
					t.Errorf("%v, with %d goroutines, want a connection beside", err, seen.Load())
				}
			})
		})
	}
}

// Fails when a call that a dial has kept to its end has the next ones wait as well.
func TestDialThatHangsIsNotTriedByEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		var hangs atomic.Bool
		tr := newTransport(t, l.client(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if hangs.Load() {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return l.dial(ctx, network, addr)
			}
		}))
		hangs.Store(true)
		if _, err := tr.Do(t.Context(), 50*time.Millisecond, call("k")); !errors.Is(err, transport.ErrNoReply) {
			t.Fatalf("error %v, want no reply", err)
		}
		begin := time.Now()
		for range 5 {
			synctest.Wait() // the client has its connection back
			if _, err := tr.Do(t.Context(), 50*time.Millisecond, call("k")); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v, want no wait", took)
		}
		hangs.Store(false)
		virtual.Sleep(10 * time.Second) // go-redis dials on, for nobody
	})
}

// deaf is a connection that has no deadlines, as those of SSH tunnels.
type deaf struct{ net.Conn }

func (deaf) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (deaf) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (deaf) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// Fails when a call stays at a connection that cannot be interrupted.
func TestCallEndsThoughConnectionsHaveNoDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		tr := newTransport(t, l.client(t, func(o *redis.Options) {
			o.ReadTimeout, o.WriteTimeout = -2, -2 // go-redis sets no deadlines either
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := l.dial(ctx, network, addr)
				return deaf{c}, err
			}
		}))
		for range 2 {
			if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
				t.Fatal(err)
			}
		}
		open := l.close()
		time.AfterFunc(time.Minute, open)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := tr.Do(ctx, time.Minute, call("k"))
		if took := time.Since(begin); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("returned %v after %v, want the end of the context after 1s", err, took)
		}
	})
}
