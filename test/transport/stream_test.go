package transport_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
)

// Fails when the client sets a deadline anew that has just been cut short.
func TestCallOfWhoIsAloneEndsThoughTheClientSetsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		ctx, cancel := context.WithCancel(t.Context())
		write := func() {}
		tr := newTransport(t, l.client(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := l.dial(ctx, network, addr)
				return writes{c, func() { write() }}, err
			}
		}))
		if _, err := tr.Do(t.Context(), 0, call("k")); err != nil {
			t.Fatal(err)
		}
		l.set(swallow)
		write = func() {
			cancel()
			synctest.Wait()
		}
		begin := time.Now()
		_, err := tr.Do(ctx, time.Minute, call("k"))
		if took := time.Since(begin); took != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("returned %v after %v, want context canceled at once", err, took)
		}
	})
}

// writes is a connection that tells when it has written.
type writes struct {
	net.Conn
	tell func()
}

func (c writes) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.tell()
	return n, err
}

// Fails when the timer of one call ends the next, or does not end it.
func TestTimeoutOfACallIsItsOwn(t *testing.T) {
	for name, row := range map[string]struct{ first, pause, second, want time.Duration }{
		"shorter":          {time.Minute, 0, time.Second, time.Second},
		"overlapping":      {time.Second, 500 * time.Millisecond, time.Second, time.Second},
		"long after":       {time.Second, 2 * time.Second, time.Second, time.Second},
		"none, the client": {time.Second, 0, 0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLink(t)
				tr := newTransport(t, l.client(t))
				if _, err := tr.Do(t.Context(), row.first, call("k")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(row.pause)
				l.set(swallow)
				begin := time.Now()
				_, err := tr.Do(t.Context(), row.second, call("k"))
				if took := time.Since(begin); took != row.want || !errors.Is(err, transport.ErrNoReply) {
					t.Errorf("returned %v after %v, want no reply after %v", err, took, row.want)
				}
			})
		})
	}
}

// Fails when a client that waits for ever is copied as one that does not.
func TestOwnConnectionsHaveTheClientsTimeouts(t *testing.T) {
	for _, row := range []struct{ timeout, own, want time.Duration }{
		{3 * time.Second, 0, 3 * time.Second},
		{3 * time.Second, 10 * time.Second, 3 * time.Second},
		{3 * time.Second, 2 * time.Second, 2 * time.Second},
		{-1, 0, time.Minute},
		{-2, 0, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLink(t)
			tr := newTransport(t, l.client(t, func(o *redis.Options) { o.ReadTimeout = row.timeout }))
			for range 3 { // with a time limit and without: what one sets is not the other's
				for _, timeout := range []time.Duration{0, time.Second} {
					if _, err := tr.Do(t.Context(), timeout, call("k")); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Second)
				}
			}
			l.set(swallow)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begin := time.Now()
			_, err := tr.Do(ctx, row.own, call("k"))
			if took := time.Since(begin); took != row.want || err == nil {
				t.Errorf("%v: returned %v after %v", row, err, took)
			}
		})
	}
}

// Fails when the end of one call reaches the next on its connection. On one
// thread what the first has left to be done is done when the second waits.
func TestEndOfACallEndsNoOther(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	rdb := newLink(t).client(t)
	replied := func() {}
	rdb.AddHook(after(func() { replied() }))
	tr := newTransport(t, rdb)
	if _, err := tr.Do(t.Context(), 0, call("k")); err != nil { // the server knows the script
		t.Fatal(err)
	}
	for i := range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		replied = cancel
		for _, ctx := range []context.Context{ctx, t.Context()} {
			mine := strconv.Itoa(i)
			c := transport.Call{Script: incr, Keys: []string{"k"}, Args: []any{mine}}
			if reply, err := tr.Do(ctx, time.Minute, c); err != nil || reply[1] != mine {
				t.Fatalf("%v, %v, want %s", reply, err, mine)
			}
		}
	}
}
