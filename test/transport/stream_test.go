package transport_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

// The context ends as the command has just been written.
func TestACallEndsThoughItsContextEndsAsItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		ctx, cancel := context.WithCancel(t.Context())
		write := new(atomic.Pointer[func()])
		write.Store(new(func() {}))
		tr := newTransport(t, l.client(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := l.dial(ctx, network, addr)
				return writes{c, func() { (*write.Load())() }}, err
			}
		}))
		if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
			t.Fatal(err)
		}
		l.set(swallow)
		write.Store(new(func() {
			cancel()
			synctest.Wait() // the call is interrupted before it knows that it has written
		}))
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
		"shorter":            {time.Minute, 0, time.Second, time.Second},
		"overlapping":        {time.Second, 500 * time.Millisecond, time.Second, time.Second},
		"long after":         {time.Second, 2 * time.Second, time.Second, time.Second},
		"longer, the client": {time.Second, 0, time.Minute, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLink(t)
				tr := newTransport(t, l.client(t))
				if _, err := tr.Do(t.Context(), row.first, call("k")); err != nil {
					t.Fatal(err)
				}
				virtual.Sleep(row.pause)
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
		{3 * time.Second, time.Minute, 3 * time.Second},
		{3 * time.Second, 10 * time.Second, 3 * time.Second},
		{3 * time.Second, 2 * time.Second, 2 * time.Second},
		{-1, time.Hour, time.Minute},
		{-2, time.Hour, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLink(t)
			tr := newTransport(t, l.client(t, func(o *redis.Options) { o.ReadTimeout = row.timeout }))
			for range 3 { // with two time limits: what one sets is not the other's
				for _, timeout := range []time.Duration{time.Minute, time.Second} {
					if _, err := tr.Do(t.Context(), timeout, call("k")); err != nil {
						t.Fatal(err)
					}
					virtual.Sleep(2 * time.Second)
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
	if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil { // the server knows the script
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

// An address leads to another server once its own is a primary no more, as a name does that
// follows the primary. Fails when calls stay on the connection to the old one.
func TestACallAfterADemotionIsMadeOnANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, now := newLink(t), newLink(t)
		var at atomic.Pointer[link]
		at.Store(old)
		tr := newTransport(t, old.client(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				return at.Load().dial(ctx, network, addr)
			}
		}))
		if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
			t.Fatal(err)
		}
		old.srv.SetError("READONLY You can't write against a read only replica.")
		at.Store(now)
		if _, err := tr.Do(t.Context(), time.Minute, call("k")); err == nil || transport.Classify(err) != transport.NotExecuted {
			t.Errorf("the old server: %v, want not executed", err)
		}
		if reply, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil || reply[0] != int64(1) {
			t.Errorf("the new server: %v, %v, want a first run", reply, err)
		}
		synctest.Wait()
		if got := old.srv.CurrentConnectionCount(); got != 0 {
			t.Errorf("%d connections to the old server, want none: the client's own lead there as well", got)
		}
	})
}

// aging is a client whose connections are not to be used for longer than a second.
func aging(t *testing.T, l *link) *redis.Client {
	t.Helper()
	return l.client(t, func(o *redis.Options) { o.ConnMaxLifetime = time.Second })
}

// Fails when a connection that is never idle is used beyond its lifetime, or is left open.
func TestAConnectionThatIsBusyEndsWithItsLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		tr := newTransport(t, aging(t, l))
		before := l.dialled()
		for range 2600 {
			if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
				t.Fatal(err)
			}
			virtual.Sleep(time.Millisecond)
		}
		if got := l.dialled() - before; got != 3 {
			t.Errorf("%d connections in 2.6 s, want one for each second", got)
		}
		synctest.Wait()
		if got := l.srv.CurrentConnectionCount(); got != 2 {
			t.Errorf("%d connections, want one of the client's and one beside", got)
		}
	})
}

// Fails when a call that is under way as the lifetime ends loses its reply, or when the
// connection is closed before that or not at all.
func TestRepliesComeThoughTheLifetimeOfTheirConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		c := newCrowd(newTransport(t, aging(t, l)))
		if _, err := c.tr.Do(t.Context(), time.Minute, call("warm")); err != nil {
			t.Fatal(err)
		}
		before := l.dialled()
		open := l.close()
		virtual.Sleep(995 * time.Millisecond)
		c.call(t.Context(), time.Minute, "old", call("old"))
		virtual.Sleep(5 * time.Millisecond)
		c.call(t.Context(), time.Minute, "new", call("new"))
		if got := l.dialled() - before; got != 1 {
			t.Errorf("%d more connections, want one", got)
		}
		open()
		c.wg.Wait()
		for name, r := range c.results {
			if r.Err != nil || l.count(t, name) != 1 {
				t.Errorf("%s: %v after %d runs, want a reply after one", name, r, l.count(t, name))
			}
		}
		synctest.Wait()
		if got := l.srv.CurrentConnectionCount(); got != 2 {
			t.Errorf("%d connections, want one of the client's and one beside", got)
		}
	})
}

// A goodbye is a connection whose Close waits, as that of TLS may.
type goodbye struct {
	net.Conn
	closes, goOn chan struct{}
}

func (c goodbye) Close() error {
	select {
	case c.closes <- struct{}{}:
	default:
	}
	<-c.goOn
	return c.Conn.Close()
}

// Fails when Wait returns while a stream that has ended before is still being closed.
func TestWaitWaitsForAStreamThatHasEndedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		closes, goOn := make(chan struct{}, 1), make(chan struct{})
		rdb := l.client(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := l.dial(ctx, network, addr)
				return goodbye{c, closes, goOn}, err
			}
		})
		tr := newTransport(t, rdb)
		if _, err := tr.Do(t.Context(), time.Second, call("a")); err != nil {
			t.Fatal(err)
		}
		l.silence(l.dialled()) // the stream
		if _, err := tr.Do(t.Context(), time.Second, call("a")); err == nil {
			t.Fatal("the call was answered")
		}
		<-closes
		waited := make(chan struct{})
		go func() { tr.Wait(); close(waited) }()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("a stream is still being closed")
		default:
		}
		close(goOn)
		<-waited
	})
}

// Two calls are on the wire. The first is answered, then the connection is dead, and the second leaves.
// Fails when a later call is made on that connection: the server owes a reply on it, and has been silent for long.
func TestNoCallBeginsWhereAReplyIsOwedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		tr := newTransport(t, l.client(t))
		for range 2 {
			if _, err := tr.Do(t.Context(), time.Second, call("a")); err != nil {
				t.Fatal(err)
			}
		}
		open := l.close()
		ended := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := tr.Do(t.Context(), 2*time.Second, call("a"))
				ended <- err
			}()
			synctest.Wait()
		}
		l.silence(l.dialled(), 1)
		open()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, transport.ErrNoReply) {
			t.Fatalf("%v, want no reply in time", err)
		}
		for range 3 {
			if _, err := tr.Do(t.Context(), time.Second, call("a")); err != nil {
				t.Errorf("%v, though the server answers on other connections", err)
			}
		}
	})
}
