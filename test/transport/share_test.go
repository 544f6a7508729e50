package transport_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

// Fails when a call gets the reply of another, where some have left before theirs came,
// or when nobody reads or writes any more after one who did has left.
func TestRepliesFindTheirCallsThoughOthersLeave(t *testing.T) {
	rdb := realClient(t, &redis.Options{Addr: redistest.Real(t).Addr()})
	tr := newTransport(t, rdb)
	if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
		t.Fatal(err)
	}
	var served, left atomic.Int64
	var wg sync.WaitGroup
	for i := range 48 {
		wg.Go(func() {
			for n := range 300 {
				ctx, cancel := t.Context(), func() {}
				if i%3 == 0 {
					ctx, cancel = context.WithTimeout(ctx, rand.N(2*time.Millisecond))
				}
				mine := fmt.Sprint(i, "/", n)
				reply, err := tr.Do(ctx, time.Minute, transport.Call{Script: incr, Keys: []string{fmt.Sprint("k", i)}, Args: []any{mine}})
				switch {
				case err == nil && reply[1] == mine:
					served.Add(1)
				case err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
					left.Add(1)
				default:
					t.Errorf("%v, %v, want %s", reply, err, mine)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if served.Load() == 0 || left.Load() == 0 {
		t.Errorf("%d calls were served, and %d left: nothing is shown", served.Load(), left.Load())
	}
}

// Fails when calls that come while others are on the wire take further connections.
func TestCallsShareAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		c := newCrowd(newTransport(t, l.client(t)))
		if _, err := c.tr.Do(t.Context(), time.Minute, call("k")); err != nil {
			t.Fatal(err)
		}
		before := l.dialled()
		open := l.close()
		for i := range 64 {
			name := fmt.Sprint("k", i)
			c.call(t.Context(), time.Minute, name, call(name))
		}
		open()
		c.wg.Wait()
		for name, r := range c.results {
			if r.Err != nil || r.Reply[0] != int64(1) {
				t.Errorf("%s: %v, want a first run", name, r)
			}
		}
		if got := l.dialled() - before; got != 0 {
			t.Errorf("%d more connections", got)
		}
	})
}

// Fails when calls follow one that has had no answer on its connection for long, or
// when one that leaves takes a connection along on which others are answered.
func TestCallsDoNotFollowASilentOne(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration
		want  error
	}{
		"soon after": {10 * time.Millisecond, transport.ErrNoReply},
		"later":      {150 * time.Millisecond, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLink(t)
				c := newCrowd(newTransport(t, l.client(t)))
				if _, err := c.tr.Do(t.Context(), time.Minute, call("k")); err != nil {
					t.Fatal(err)
				}
				l.silence(l.dialled())
				c.call(t.Context(), time.Second, "first", call("first"))
				virtual.Sleep(row.after)
				c.call(t.Context(), time.Second, "second", call("second"))
				c.wg.Wait()
				if err := c.results["first"].Err; !errors.Is(err, transport.ErrNoReply) {
					t.Errorf("the first: %v, want no reply", err)
				}
				if err := c.results["second"].Err; !errors.Is(err, row.want) {
					t.Errorf("the second: %v, want %v", err, row.want)
				}
				if _, err := c.tr.Do(t.Context(), time.Second, call("third")); err != nil {
					t.Errorf("the third: %v", err)
				}
			})
		})
	}
}

// A stuck connection takes no write from the time on that stuck is set, until it is closed.
type stuck struct {
	net.Conn
	stuck  *atomic.Bool
	closed chan struct{}
}

func (c stuck) Write(p []byte) (int, error) {
	if c.stuck.CompareAndSwap(true, false) {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

func (c stuck) Close() error {
	close(c.closed)
	return c.Conn.Close()
}

// One call is on the wire, the next is cut off as it writes, and a third waits to be written.
// Nobody knows whether more can be written then, as with TLS it cannot. Fails when the third, of
// which nothing was sent, is not answered, or the first loses its reply.
func TestCallBehindOneThatIsCutOffAsItWritesIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, full := newLink(t), new(atomic.Bool)
		tr := newTransport(t, l.client(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := l.dial(ctx, network, addr)
				return stuck{c, full, make(chan struct{})}, err
			}
		}))
		if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
			t.Fatal(err)
		}
		do := func(ctx context.Context) chan error {
			ended := make(chan error, 1)
			go func() { _, err := tr.Do(ctx, time.Minute, call("k")); ended <- err }()
			synctest.Wait()
			return ended
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		open := l.close()
		first := do(t.Context())
		full.Store(true)
		second, third := do(ctx), do(t.Context())
		cancel()
		synctest.Wait()
		open()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("who was cut off: %v, want its context's end", err)
		}
		if err := errors.Join(<-first, <-third); err != nil || l.count(t, "k") != 3 {
			t.Errorf("the others: %v, and %d runs of the script; want replies, and 3", err, l.count(t, "k"))
		}
	})
}
