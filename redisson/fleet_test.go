package redisson_test

import (
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// cuts does to the hash of a read lock what a reader in Java does as it renews, and dies.
func cuts(t *testing.T, x *rig.Lab, timeout time.Duration) {
	t.Helper()
	rig.Must(t, x.Redis.HSet(t.Context(), "a", "java:1", 1).Err())
	rig.Must(t, x.Redis.Set(t.Context(), "{a}:java:1:rwlock_timeout:1", 1, timeout).Err())
	rig.Must(t, x.Redis.PExpire(t.Context(), "a", timeout).Err())
}

// lengthens does to a reader here what one in Java with another timeout does, before 4.4.0.
func lengthens(t *testing.T, x *rig.Lab, h *redisson.Hold, timeout time.Duration) {
	t.Helper()
	rig.Must(t, x.Redis.PExpire(t.Context(), "a", timeout).Err())
	rig.Must(t, x.Redis.PExpire(t.Context(), "{a}:"+h.Owner()+":rwlock_timeout:1", timeout).Err())
}

// outlived fails unless a reader knows that it has lost its hold when a writer has the lock.
func outlived(t *testing.T, x *rig.Lab, h *redisson.Hold) {
	t.Helper()
	w := client(t, x).NewRWLock("a")
	if ok, err := w.TryLock(t.Context(), 20*time.Minute); !ok || err != nil {
		t.Fatalf("the writer: %v, %v", ok, err)
	}
	rig.WantIs(t, h.Err(), relock.ErrLost)
	rig.Must(t, w.Unlock())
	_ = h.Release() // it was lost
}

// TestAReaderTrustsNoMoreThanAReaderInJavaLeavesIt: that one's watchdog cuts the hash of all
// readers to its own timeout, and with the last renewal of the one here it dies.
// Fails when the lease of a read hold is not bounded, or by something else than
// WatchdogTimeout says.
func TestAReaderTrustsNoMoreThanAReaderInJavaLeavesIt(t *testing.T) {
	for name, at := range map[string]time.Duration{"just had": 0, "renewed": 25 * time.Second} {
		for _, timeout := range []time.Duration{30 * time.Second, 10 * time.Second} {
			t.Run(name+" "+timeout.String(), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					var opts []redisson.Option
					if timeout != 30*time.Second { // which it is by itself
						opts = append(opts, redisson.WatchdogTimeout(timeout))
					}
					c, link := linked(t, x, opts...)
					h, err := c.NewRWLock("a", redisson.TTL(5*time.Minute)).RLocker().Acquire(t.Context())
					rig.Must(t, err)
					virtual.Sleep(at)
					cuts(t, x, timeout)
					link.Hole()
					outlived(t, x, h)
				})
			})
		}
	}
}

// TestARenewalIsTrustedForNoMoreThanTheShortestWatchdogInJava: another, with a longer one,
// has given the reader here a longer lease than it asked for.
// Fails when what Redis says is left is trusted as it is.
func TestARenewalIsTrustedForNoMoreThanTheShortestWatchdogInJava(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := linked(t, x)
		h, err := c.NewRWLock("a").RLocker().Acquire(t.Context())
		rig.Must(t, err)
		virtual.Sleep(9 * time.Second)
		lengthens(t, x, h, 10*time.Minute)
		virtual.Sleep(2 * time.Second) // and it has renewed
		cuts(t, x, 30*time.Second)
		link.Hole()
		outlived(t, x, h)
	})
}

// TestARenewalIsTrustedForNoMoreThanTheHashHas, though the reader's own key has more.
// Fails when a renewal answers what is left of the key alone.
func TestARenewalIsTrustedForNoMoreThanTheHashHas(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := linked(t, x)
		h, err := c.NewRWLock("a", redisson.TTL(10*time.Second)).RLocker().Acquire(t.Context())
		rig.Must(t, err)
		virtual.Sleep(time.Second)
		lengthens(t, x, h, time.Minute)
		virtual.Sleep(time.Second)
		cuts(t, x, 30*time.Second)
		virtual.Sleep(2 * time.Second) // and it has renewed
		link.Hole()
		outlived(t, x, h)
	})
}

// TestAReadLeaseThatJavaMightCutIsRefused where nobody renews it. The other side of the lock
// has what it asked for.
// Fails when such a lease is shortened without a word, or that of a writer is refused.
func TestAReadLeaseThatJavaMightCutIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw := client(t, x).NewRWLock("a", redisson.TTL(time.Minute), redisson.NoWatchdog())
		rig.WantIs(t, rw.RLock(t.Context()), relock.ErrInvalidOption)
		rig.Must(t, rw.Lock(t.Context()))
		if left := x.Redis.PTTL(t.Context(), "a").Val(); left != time.Minute {
			t.Errorf("the writer's lease is %v", left)
		}
		rig.WantIs(t, rw.Downgrade(t.Context()), relock.ErrInvalidOption)
		rig.Must(t, rw.Unlock())
		rw = client(t, x, redisson.WatchdogTimeout(time.Minute)).NewRWLock("a", redisson.TTL(time.Minute), redisson.NoWatchdog())
		rig.Must(t, rw.RLock(t.Context()))
		if left := x.Redis.PTTL(t.Context(), "a").Val(); left != time.Minute {
			t.Errorf("the reader's lease is %v", left)
		}
		rig.Must(t, rw.RUnlock())
		for _, d := range []time.Duration{0, time.Millisecond, 25 * time.Hour} {
			if _, err := redisson.New(x.Redis, redisson.WatchdogTimeout(d)); !errors.Is(err, relock.ErrInvalidOption) {
				t.Errorf("WatchdogTimeout(%v): %v", d, err)
			}
		}
		bare(t, x)
	})
}
