package contract_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// wantsFree makes an attempt, which fails unless it gets the lock.
func wantsFree(t *testing.T, l relock.Locker) rig.Going {
	return rig.Beside(func() error {
		got, err := l.TryLock(t.Context(), 0)
		if err == nil && !got {
			err = errors.New("a free lock was refused")
		}
		return err
	})
}

// findsFree makes an attempt that must wait until letGo has been called, and then gets the lock.
func findsFree(t *testing.T, l relock.Locker, letGo chan struct{}) {
	t.Helper()
	attempt := wantsFree(t, l)
	attempt.Pending(t, "the attempt")
	close(letGo)
	rig.Must(t, <-attempt)
	rig.Must(t, l.Unlock())
}

// TestAnAttemptFindsFreeWhatAMultiGaveBack delays the release of the first of two locks, of which the second was taken.
func TestAnAttemptFindsFreeWhatAMultiGaveBack(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		link := redistest.NewLink(t, x.Server.Dial)
		rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
		own := x.ActorOver(struct{ *redis.Client }{rdb}, link)
		own.Warm()
		rig.Must(t, x.Lock("b").Lock(t.Context()))
		gate := make(chan struct{})
		own.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "release", "usual") {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		got, err := relock.NewMulti(own.NewLock("a"), own.NewLock("b")).TryLock(t.Context(), 0)
		if rig.Must(t, err); got {
			t.Fatal("held though one of its locks is taken")
		}
		findsFree(t, own.NewLock("a"), gate)
	})
}

// A lateContext has a deadline that its timer is late for: it ends with its parent.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// TestAQuorumCallThatHasEndedNeverHolds has the lock come free after the deadline of the call, and before it has ended.
func TestAQuorumCallThatHasEndedNeverHolds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		holds, waits := p.lock("a"), p.lock("a")
		rig.Must(t, holds.Lock(t.Context()))
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := lateContext{parent, time.Now().Add(time.Second)}
		call := rig.Beside(func() error { return waits.Lock(ctx) })
		virtual.Sleep(2 * time.Second)
		rig.Must(t, holds.Unlock())
		synctest.Wait()
		cancel()
		rig.WantIs(t, <-call, context.Canceled)
		if got, err := waits.TryLock(t.Context(), 0); !got || err != nil {
			t.Fatalf("a later attempt got %v, %v: what the call was granted stays", got, err)
		}
		rig.Must(t, waits.Unlock())
	})
}

// TestAnAttemptFindsFreeWhatAQuorumGaveBack delays the release of the first of two primaries, as the second was taken.
func TestAnAttemptFindsFreeWhatAQuorumGaveBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 2)
		link := redistest.NewLink(t, p.all[0].Dial)
		rdb := p.all[0].Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
		q, err := relock.NewQuorum(x.ClientOver(struct{ *redis.Client }{rdb}), x.ClientOver(p.all[1].Client(t)))
		rig.Must(t, err)
		l := q.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
		other := rig.MustAcquire(t, x.ClientOver(p.all[1].Client(t)).NewLock("a", relock.Fair()))
		gate := make(chan struct{})
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "release", "usual") {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		ctx, cancel := context.WithCancel(t.Context())
		call := rig.Beside(func() error {
			_, err := l.TryAcquire(ctx, 0)
			return err
		})
		call.Pending(t, "the call")
		cancel() // else it waits for what it gives back, for a while
		if <-call == nil {
			t.Fatal("held though one of two primaries is taken")
		}
		rig.Must(t, other.Release())
		findsFree(t, l, gate)
	})
}

// TestAQuorumIsWantedAtAPrimaryThatItTookLater: the others wait at the first primary, which had lost its data.
func TestAQuorumIsWantedAtAPrimaryThatItTookLater(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		h := take(t, p.lock("a", relock.TTL(3*time.Second)))
		wanted := h.Wanted()
		p.all[0].Direct().FlushAll()
		virtual.Sleep(10 * time.Second) // it is taken again
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waits := rig.Beside(func() error { return p.lock("a").Lock(ctx) })
		virtual.Sleep(2 * time.Second)
		synctest.Wait()
		if !rig.IsShut(wanted) {
			t.Error("not wanted, though another waits")
		}
		rig.Must(t, h.Release())
		rig.Must(t, <-waits)
	})
}
