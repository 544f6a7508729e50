package redisson_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// TestACallOfRedissonThatHasEndedNeverHolds has the call's context end while the answer that
// grants the lock is under way.
func TestACallOfRedissonThatHasEndedNeverHolds(t *testing.T) {
	for name, opts := range map[string][]redisson.LockOption{"plain": nil, "fair": {redisson.Fair()}} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				ctx := rig.NewEndedContext(t.Context())
				link := redistest.NewLink(t, x.Server.Dial)
				c := clientOver(t, x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }))
				rig.Must(t, c.NewLock("other", opts...).Lock(t.Context())) // it knows the server's clock
				link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					if cmd.Is("eval", "evalsha") {
						ctx.End()
					}
					return redistest.Pass
				})
				l := c.NewLock("job", opts...)
				rig.WantIs(t, l.Lock(ctx), context.Canceled)
				if got, err := c.NewLock("job", opts...).TryLock(t.Context(), 0); !got || err != nil {
					t.Fatalf("a later attempt got %v, %v: what the call was granted stays", got, err)
				}
				ctx.Wake()
			})
		})
	}
}

// TestAnAttemptFindsFreeWhatAnEndedCallOfRedissonHasLeft delays what removes the place of a call
// that has ended.
func TestAnAttemptFindsFreeWhatAnEndedCallOfRedissonHasLeft(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		link := redistest.NewLink(t, x.Server.Dial)
		rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
		// Through a decorator each command may take another connection.
		c := clientOver(t, struct{ *redis.Client }{rdb})
		holds, waits := clientOver(t, x.Redis).NewLock("job", redisson.Fair()), c.NewLock("job", redisson.Fair())
		rig.Must(t, holds.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		call := rig.Beside(func() error { return waits.Lock(ctx) })
		call.Pending(t, "the call")
		gate := make(chan struct{})
		var first atomic.Bool
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("eval", "evalsha") && first.CompareAndSwap(false, true) {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		cancel()
		rig.WantIs(t, <-call, context.Canceled)
		synctest.Wait()
		rig.Must(t, holds.Unlock())
		attempt := rig.Beside(func() error {
			got, err := waits.TryLock(t.Context(), 0)
			if err == nil && !got {
				err = errors.New("a free lock was refused")
			}
			return err
		})
		attempt.Pending(t, "the attempt")
		close(gate)
		rig.Must(t, <-attempt)
		rig.Must(t, waits.Unlock())
	})
}

// gated returns a client, and what holds back its next script until it is told to let go.
func gated(t *testing.T, x *rig.Lab) (c *redisson.Client, hold func() (letGo func())) {
	t.Helper()
	link := redistest.NewLink(t, x.Server.Dial)
	rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
	return clientOver(t, struct{ *redis.Client }{rdb}), func() func() {
		gate := make(chan struct{})
		var first atomic.Bool
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("eval", "evalsha") && first.CompareAndSwap(false, true) {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		return func() { close(gate) }
	}
}

// TestInfoOfRedissonShowsNoCallThatHasEnded delays what removes the place of a call that has ended.
func TestInfoOfRedissonShowsNoCallThatHasEnded(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, hold := gated(t, x)
		holds, waits := clientOver(t, x.Redis).NewLock("job", redisson.Fair()), c.NewLock("job", redisson.Fair())
		rig.Must(t, holds.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		call := rig.Beside(func() error { return waits.Lock(ctx) })
		call.Pending(t, "the call")
		letGo := hold()
		cancel()
		rig.WantIs(t, <-call, context.Canceled)
		synctest.Wait()
		look := rig.Beside(func() error {
			info, err := waits.Info(t.Context())
			if err == nil && info.Waiters != 0 {
				err = errors.New("a call that has returned is shown as a waiter")
			}
			return err
		})
		look.Pending(t, "the look")
		letGo()
		rig.Must(t, <-look)
		rig.Must(t, holds.Unlock())
	})
}

// TestAnAttemptFindsFreeWhatAnOccupiedHandleOfRedissonGaveBack has Redis grant the lock again to a handle that has a
// hold of the grant before, and delays what gives the new one back.
func TestAnAttemptFindsFreeWhatAnOccupiedHandleOfRedissonGaveBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		link := redistest.NewLink(t, x.Server.Dial)
		rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
		c := clientOver(t, struct{ *redis.Client }{rdb})
		l := c.NewLock("job")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, x.Redis.FlushDB(t.Context()).Err())
		gate := make(chan struct{})
		var scripts atomic.Int32
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("evalsha") && scripts.Add(1) == 2 { // the first one is the request
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		_, err := l.TryLock(t.Context(), 0)
		rig.WantIs(t, err, relock.ErrLost)
		synctest.Wait()
		attempt := rig.Beside(func() error { return triedFree(t.Context(), c.NewLock("job")) })
		attempt.Pending(t, "the attempt")
		close(gate)
		rig.Must(t, <-attempt)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
	})
}

// TestAnAttemptFindsFreeWhatAnUnlockOfRedissonHasLost unlocks a hold that was lost by the clock, whose lease in Redis
// has not ended yet, and delays the release.
func TestAnAttemptFindsFreeWhatAnUnlockOfRedissonHasLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, hold := gated(t, x)
		l := c.NewLock("job", redisson.NoWatchdog(), redisson.TTL(10*time.Second))
		rig.Must(t, l.Lock(t.Context()))
		<-l.Lost()
		letGo := hold()
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		synctest.Wait()
		attempt := rig.Beside(func() error { return triedFree(t.Context(), c.NewLock("job")) })
		attempt.Pending(t, "the attempt")
		letGo()
		rig.Must(t, <-attempt)
	})
}

// TestAnAttemptFindsFreeWhatAnUnlockOfRedissonCouldNotConfirm holds back all releases until after the Unlock.
func TestAnAttemptFindsFreeWhatAnUnlockOfRedissonCouldNotConfirm(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		link := redistest.NewLink(t, x.Server.Dial)
		rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
		c, gate := clientOver(t, struct{ *redis.Client }{rdb}), make(chan struct{})
		l := c.NewLock("job")
		rig.Must(t, l.Lock(t.Context()))
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if slices.Contains(cmd.Args, "redisson_lock__channel:{job}") {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		began := time.Now()
		rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Unlock took %v, want the ReleaseTimeout of 5 s", took)
		}
		attempt := rig.Beside(func() error { return triedFree(t.Context(), c.NewLock("job")) })
		attempt.Pending(t, "the attempt")
		close(gate)
		rig.Must(t, <-attempt)
	})
}

// triedFree makes one attempt at a lock that is free, and unlocks it.
func triedFree(ctx context.Context, l *redisson.Lock) error {
	got, err := l.TryLock(ctx, 0)
	switch {
	case err != nil:
		return err
	case !got:
		return errors.New("a free lock was refused")
	}
	return l.Unlock()
}

// TestALateRequestOfAnEndedCallOfRedissonIsClearedSoon has Redis read a request 50 ms after all that was to undo it, as
// where the goroutine that sends it stood still meanwhile.
func TestALateRequestOfAnEndedCallOfRedissonIsClearedSoon(t *testing.T) {
	for name, opts := range map[string][]redisson.LockOption{"plain": nil, "fair": {redisson.Fair()}} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				link := redistest.NewLink(t, x.Server.Dial)
				rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
				l, other := clientOver(t, struct{ *redis.Client }{rdb}).NewLock("job", opts...), clientOver(t, x.Redis).NewLock("job", opts...)
				rig.Must(t, l.Lock(t.Context())) // the server knows the scripts
				rig.Must(t, l.Unlock())
				gate := make(chan struct{})
				var first atomic.Bool
				link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					if cmd.Is("evalsha") && first.CompareAndSwap(false, true) {
						return redistest.Hold(gate)
					}
					return redistest.Pass
				})
				ctx, cancel := context.WithCancel(t.Context())
				call := rig.Beside(func() error { return l.Lock(ctx) })
				call.Pending(t, "the call")
				cancel()
				rig.WantIs(t, <-call, context.Canceled)
				virtual.Sleep(50 * time.Millisecond)
				close(gate)
				rig.Must(t, link.Settle(t.Context()))
				if got, err := other.TryLock(t.Context(), 0); got || err != nil {
					t.Fatalf("TryLock as the late request has come: %v, %v, want that it has the lock", got, err)
				}
				virtual.Sleep(100 * time.Millisecond)
				if got, err := other.TryLock(t.Context(), 0); !got || err != nil {
					t.Fatalf("TryLock 100 ms later: %v, %v, want the lock", got, err)
				}
				rig.Must(t, other.Unlock())
			})
		})
	}
}

// clientOver returns a client that is closed at the end.
func clientOver(t *testing.T, rdb redis.UniversalClient, opts ...redisson.Option) *redisson.Client {
	t.Helper()
	c, err := redisson.New(rdb, opts...)
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, c.Close()) })
	return c
}
