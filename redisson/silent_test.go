package redisson_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// silentServer accepts connections and answers nothing. hangUp closes them, and accepts no more.
func silentServer(t *testing.T) (addr string, hangUp func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(t, err)
	var mu sync.Mutex
	var open []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
		}
	}()
	return listener.Addr().String(), func() {
		_ = listener.Close()
		<-done
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range open {
			_ = conn.Close()
		}
	}
}

// go-redis would wait for a minute. Fails when the first call in a Cluster waits for go-redis.
func TestFirstCallInASilentClusterEndsWithItsContext(t *testing.T) {
	addr, hangUp := silentServer(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{addr}, ReadTimeout: time.Minute, DialTimeout: time.Minute, MaxRetries: -1, MaxRedirects: -1,
	})
	c, err := redisson.New(rdb)
	rig.Must(t, err)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	rig.WantIs(t, c.NewLock("a").Lock(ctx), context.DeadlineExceeded, relock.ErrUnavailable)
	again, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.NewLock("a").ForceUnlock(again)
	rig.WantIs(t, err, context.DeadlineExceeded, relock.ErrUnavailable)
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		if got, err := c.NewLock("a").TryLock(t.Context(), wait); got || !errors.Is(err, relock.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryLock for %v = %v, %v: a cluster that is silent is no lock that is taken, and no context has ended", wait, got, err)
		}
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the calls took %v", took)
	}
	hangUp()
	rig.Must(t, c.Close())
	rig.Must(t, rdb.Close())
}

// TestFirstCallsInAClusterThatRefusesConnectionsTellAnOutage has no server at the address. Lock returned the
// error of the first connection at once, and did not go on asking.
func TestFirstCallsInAClusterThatRefusesConnectionsTellAnOutage(t *testing.T) {
	addr, hangUp := silentServer(t)
	hangUp()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, MaxRetries: -1, MaxRedirects: -1, DialerRetries: 1})
	c, err := redisson.New(rdb)
	rig.Must(t, err)
	l := c.NewLock("a")
	for name, call := range map[string]func(ctx context.Context) error{
		"Lock": l.Lock,
		"TryLock": func(ctx context.Context) error {
			_, err := l.TryLock(ctx, time.Minute)
			return err
		},
		"ForceUnlock": func(ctx context.Context) error {
			_, err := l.ForceUnlock(ctx)
			return err
		},
		"ForceUnlockHolder": func(ctx context.Context) error {
			_, err := l.ForceUnlockHolder(ctx, relock.Holder{Owner: "gone"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // longer than the first question
			defer cancel()
			rig.WantIs(t, call(ctx), context.DeadlineExceeded, relock.ErrUnavailable)
		})
	}
	got, err := l.TryLock(t.Context(), 0)
	if rig.WantIs(t, err, relock.ErrUnavailable); got {
		t.Error("TryLock returned true")
	}
	rig.Must(t, c.Close())
	rig.Must(t, rdb.Close())
}

// The wait of a TryLock ends while Redis is silent, and its context goes on. Fails when the error is the end of a context:
// a caller that gives up at the end of its own context would give up here.
func TestAWaitThatEndsUnansweredIsNoEndOfAContext(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second, time.Minute} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			link := redistest.NewLink(t, x.Server.Dial)
			c, err := redisson.New(x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }))
			rig.Must(t, err)
			l := c.NewLock("a")
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
			heal := link.Hole()
			got, err := l.TryLock(t.Context(), wait)
			if got || !errors.Is(err, relock.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("TryLock for %v = %v, %v, want ErrUnavailable, and no error of a context", wait, got, err)
			}
			heal()
			rig.Must(t, c.Close())
		})
	}
}

// Redis grants the lock in time, and the answer reaches the call after its wait has ended. Fails when that is told as the
// end of a context.
func TestAWaitThatEndsBeforeItsHoldComesIsNoEndOfAContext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const wait = time.Second
		rdb := x.Server.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
		late := &lateAnswers{}
		rdb.AddHook(late)
		c, err := redisson.New(rdb)
		rig.Must(t, err)
		l := c.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
		late.by.Store(int64(wait + time.Millisecond))
		got, err := l.TryLock(t.Context(), wait)
		if late.by.Store(0); got || err != nil {
			t.Errorf("TryLock = %v, %v, want false and no error", got, err)
		}
		virtual.Sleep(time.Minute)
		rig.Must(t, c.NewLock("a").Lock(t.Context()))
		rig.Must(t, c.Close())
	})
}

// lateAnswers keeps each answer to a script for some time.
type lateAnswers struct{ by atomic.Int64 }

func (*lateAnswers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*lateAnswers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *lateAnswers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "evalsha" {
			virtual.Sleep(time.Duration(h.by.Load()))
		}
		return err
	}
}

// A lost hold occupies the handle until the wait of a TryLock has ended.
func TestAWaitThatEndsAtAnOccupiedHandleIsNoEndOfAContext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, err := redisson.New(x.Server.Client(t))
		rig.Must(t, err)
		l := c.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		if _, err := c.NewLock("a").ForceUnlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		virtual.Sleep(time.Minute) // a renewal finds it lost
		_, err = l.TryLock(t.Context(), time.Second)
		if rig.WantIs(t, err, relock.ErrLost); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want no error of a context", err)
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, c.Close())
	})
}
