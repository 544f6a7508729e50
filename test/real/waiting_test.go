package real_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// TestAWaitingProcessSendsOneHeartbeatForEachLock counts every command of a
// process that waits for some locks, however many of its calls do.
func TestAWaitingProcessSendsOneHeartbeatForEachLock(t *testing.T) {
	for _, ttl := range []time.Duration{30 * time.Second, time.Hour} {
		t.Run(ttl.String(), func(t *testing.T) { countHeartbeats(t, relock.TTL(ttl)) })
	}
}

func countHeartbeats(t *testing.T, opts ...relock.LockOption) {
	const locks, callers, waited = 3, 20, 10 * time.Minute
	rig.Run(t, func(t *testing.T, s *rig.Lab) {
		c, link := s.Linked()
		ctx, cancel := context.WithCancel(t.Context())
		var waiting []rig.Going
		for i := range locks {
			name := fmt.Sprint("job ", i)
			rig.Must(t, s.Eye.NewLock(name).Lock(t.Context()))
			l := c.NewLock(name, opts...)
			for range callers {
				waiting = append(waiting, rig.Beside(func() error { return l.Lock(ctx) }))
			}
			virtual.Sleep(1777 * time.Millisecond)
		}
		synctest.Wait()
		before := link.Commands()
		virtual.Sleep(waited)
		sent := link.Commands()
		maps.DeleteFunc(sent, func(name string, n int) bool { return n == before[name] })
		n := sent["evalsha"] - before["evalsha"]
		delete(sent, "evalsha")
		if len(sent) > 0 {
			t.Errorf("sent anything but heartbeats: %v", sent)
		}
		if want := locks * int(waited/(10*time.Second)); n < want-locks || n > want {
			t.Errorf("%d heartbeats within %v, want %d", n, waited, want)
		}
		cancel()
		for _, w := range waiting {
			if err := <-w; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// crowd is a process with many waiters of one lock.
type crowd struct {
	l      *relock.Lock // the holder's handle
	hold   *relock.Hold
	rdb    *redis.Client // the crowd's
	eye    *redis.Client // a client for looking
	done   chan error
	cancel context.CancelFunc
}

// gather makes 1,000 callers wait, all at once, named or not.
func gather(t *testing.T, srv *redistest.RealServer, named bool) *crowd {
	t.Helper()
	w := &crowd{eye: srv.Client(t), done: make(chan error, 1000)}
	w.rdb = srv.Client(t, func(o *redis.Options) { o.ClientName = "crowd" })
	// The test counts the commands of the crowd: a lease of an hour keeps the holder's renewals out of the count.
	w.l = rig.Open(t, w.eye).NewLock("job", relock.TTL(time.Hour))
	w.hold = rig.MustAcquire(t, w.l)
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	log := slog.New(slog.NewTextHandler(t.Output(), nil)) // shown where the test fails
	handle := rig.Open(t, w.rdb, relock.Defaults(relock.TTL(6*time.Second)), relock.Logger(log)).NewLock("job")
	for i := range 1000 {
		ctx := ctx
		if named {
			ctx = relock.WithOwner(ctx, fmt.Sprint("owner ", i))
		}
		go func() {
			h, err := handle.Acquire(ctx)
			if err == nil {
				err = released(h)
			}
			w.done <- err
		}()
	}
	return w
}

// released releases a hold, and says of an error what a lease that ended too soon
// would have to do with it.
func released(h *relock.Hold) error {
	until, began := h.TrustedUntil(), time.Now()
	err := h.Release()
	if err == nil {
		return nil
	}
	took := time.Since(began)
	return fmt.Errorf("%w (it was trusted for another %v, its release took %v, and the wall clock went %v ahead meanwhile)",
		err, until.Sub(began), took, time.Now().Round(0).Sub(began.Round(0))-took)
}

func (w *crowd) await(t *testing.T, entries int) {
	t.Helper()
	rig.Queued(t, w.l, entries)
}

// connections returns how many connections the crowd has, and how many of them
// have subscribed.
func (w *crowd) connections(t *testing.T) (all, subscribed int) {
	t.Helper()
	list, err := w.eye.ClientList(t.Context()).Result()
	rig.Must(t, err)
	for line := range strings.Lines(list) {
		if strings.Contains(line, " name=crowd ") {
			all++
			if !strings.Contains(line, " sub=0 ") {
				subscribed++
			}
		}
	}
	return all, subscribed
}

// TestAThousandWaitersShareConnectionAndSubscription has them wait through some
// rounds of heartbeats, and then get the lock (named) or give up (not named).
func TestAThousandWaitersShareConnectionAndSubscription(t *testing.T) {
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprint("named ", named), func(t *testing.T) {
			t.Parallel()
			srv := redistest.Real(t)
			w := gather(t, srv, named)
			entries, batches := 1, 1
			if named {
				entries, batches = 1000, 16+9
			}
			w.await(t, entries)
			all, subscribed := w.connections(t)
			// The client's pool and its pool for pipelines; the one that calls share; the one that has subscribed.
			if most := w.rdb.Options().PoolSize + 10 + 1 + 1; all > most || subscribed != 1 {
				t.Errorf("%d connections of which %d subscribed, want at most %d and 1", all, subscribed, most)
			}
			heartbeats(t, w, srv, entries, batches)
			w.end(t, named)
		})
	}
}

// heartbeats counts the commands of three rounds of heartbeats.
func heartbeats(t *testing.T, w *crowd, srv *redistest.RealServer, entries, batches int) {
	t.Helper()
	const every = 2 * time.Second
	round := time.NewTicker(every)
	defer round.Stop()
	<-round.C // the first heartbeats are as scattered as the waiters came
	before := srv.CommandStats(t.Context())
	for range 3 {
		<-round.C
	}
	after := srv.CommandStats(t.Context())
	n := int(after["evalsha"] - before["evalsha"])
	t.Logf("%d waiters: %d commands in three rounds", entries, n)
	if n < 2 || n > 4*batches {
		t.Errorf("%d commands for three rounds of heartbeats of %d entries, want 2 to %d", n, entries, 4*batches)
	}
	for _, name := range []string{"eval", "subscribe", "hello"} {
		if after[name] != before[name] {
			t.Errorf("%d times %s while waiting", after[name]-before[name], name)
		}
	}
	w.await(t, entries)
}

func (w *crowd) end(t *testing.T, named bool) {
	t.Helper()
	if !named {
		w.cancel()
	} else {
		rig.Must(t, w.hold.Release())
	}
	for range 1000 {
		if err := <-w.done; named && err != nil || !named && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	w.cancel()
	w.await(t, 0)
}
