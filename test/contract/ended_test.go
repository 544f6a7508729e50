package contract_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// sides are kinds of locks: a handle that holds, and one that waits behind it.
var sides = map[string]func(c *relock.Client) (holds, waits relock.Locker){
	"plain": func(c *relock.Client) (relock.Locker, relock.Locker) { return c.NewLock("job"), c.NewLock("job") },
	"fair": func(c *relock.Client) (relock.Locker, relock.Locker) {
		return c.NewLock("job", relock.Fair()), c.NewLock("job", relock.Fair())
	},
	"write": func(c *relock.Client) (relock.Locker, relock.Locker) { return c.NewRWLock("job"), c.NewRWLock("job") },
	"read": func(c *relock.Client) (relock.Locker, relock.Locker) {
		return c.NewRWLock("job"), c.NewRWLock("job").RLocker()
	},
	"semaphore": func(c *relock.Client) (relock.Locker, relock.Locker) {
		return c.NewSemaphore("job", 1), c.NewSemaphore("job", 1)
	},
	"multi": func(c *relock.Client) (relock.Locker, relock.Locker) {
		several := func() relock.Locker { return relock.NewMulti(c.NewLock("job"), c.NewLock("other job")) }
		return several(), several()
	},
}

// TestACallThatHasEndedNeverHolds has the lock come free after the context of a call has ended,
// and before the call has noticed.
func TestACallThatHasEndedNeverHolds(t *testing.T) {
	for name, of := range sides {
		for where, elsewhere := range map[string]bool{"in the client": false, "between clients": true} {
			t.Run(name+" "+where, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					own := x.Actor()
					holds, _ := of(x.Eye)
					_, waits := of(own.Client)
					if !elsewhere {
						holds, _ = of(own.Client)
					}
					rig.Must(t, holds.Lock(t.Context()))
					ctx := rig.NewEndedContext(t.Context())
					call := rig.Beside(func() error { return waits.Lock(ctx) })
					call.Pending(t, "the call")
					ctx.End()
					rig.Must(t, holds.Unlock())
					synctest.Wait()
					ctx.Wake()
					rig.WantIs(t, <-call, context.Canceled)
					if got, err := waits.TryLock(t.Context(), 0); !got || err != nil {
						t.Fatalf("a later attempt got %v, %v: what the call was granted stays", got, err)
					}
					rig.Must(t, waits.Unlock())
				})
			})
		}
	}
}

// TestAWaitThatIsOverNeverHolds has the lock come free at the very instant at which a wait ends.
func TestAWaitThatIsOverNeverHolds(t *testing.T) {
	for name, of := range sides {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				own := x.Actor()
				holds, waits := of(own.Client)
				for range 20 {
					rig.Must(t, holds.Lock(t.Context()))
					time.AfterFunc(time.Second, func() {
						if err := holds.Unlock(); err != nil {
							t.Error(err)
						}
					})
					if got, err := waits.TryLock(t.Context(), time.Second); got || err != nil {
						t.Fatalf("TryLock returned %v, %v at the end of its wait", got, err)
					}
					synctest.Wait()
				}
			})
		})
	}
}

// TestAnAttemptFindsFreeWhatAnEndedCallHasLeft delays what removes the place of a call that has
// ended. The lock is released, and granted to that place.
func TestAnAttemptFindsFreeWhatAnEndedCallHasLeft(t *testing.T) {
	for name, of := range sides {
		for end, wait := range map[string]time.Duration{"cancelled": time.Hour, "timed out": 50 * time.Millisecond} {
			t.Run(name+" "+end, func(t *testing.T) {
				rig.Play(t, func(t *testing.T, x *rig.Lab) {
					link := redistest.NewLink(t, x.Server.Dial)
					rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
					// Through a decorator each command may take another connection.
					own := x.ActorOver(struct{ *redis.Client }{rdb}, link)
					own.Warm()
					holds, _ := of(x.Eye)
					_, waits := of(own.Client)
					rig.Must(t, holds.Lock(t.Context()))
					gate := make(chan struct{})
					own.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
						if rig.Runs(cmd, "release") {
							return redistest.Hold(gate)
						}
						return redistest.Pass
					})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					call := rig.Beside(func() error {
						got, err := waits.TryLock(ctx, wait)
						if got || err != nil {
							return cmp.Or(err, errors.New("got a lock that is taken"))
						}
						return nil
					})
					call.Pending(t, "the call")
					if end == "cancelled" {
						cancel()
						rig.WantIs(t, <-call, context.Canceled)
					} else {
						rig.Must(t, <-call)
					}
					seen := rig.Beside(func() error {
						info, err := own.NewLock("job").Info(t.Context())
						if err == nil && info.Waiters > 0 {
							err = fmt.Errorf("the call that has ended is seen to wait: %+v", info)
						}
						return err
					})
					seen.Pending(t, "the look")
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
					rig.Must(t, <-seen)
					rig.Must(t, waits.Unlock())
				})
			})
		}
	}
}

// TestAnAttemptWaitsUntilAllEndedCallsHaveLeft has the places of all calls removed that have ended, but for one.
// The attempt looks at them in any order, so there are four rounds.
// Fails when it goes on as soon as one of them is removed.
func TestAnAttemptWaitsUntilAllEndedCallsHaveLeft(t *testing.T) {
	for range 4 {
		rig.Play(t, func(t *testing.T, x *rig.Lab) {
			const ended = 8
			link := redistest.NewLink(t, x.Server.Dial)
			rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
			// Through a decorator each command may take another connection.
			own := x.ActorOver(struct{ *redis.Client }{rdb}, link)
			own.Warm()
			holds, l := x.Take(x.Eye.NewLock("job", relock.Fair())), own.NewLock("job", relock.Fair())
			most, last := make(chan struct{}), make(chan struct{})
			var releases atomic.Int32
			own.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if !rig.Runs(cmd, "release") {
					return redistest.Pass
				}
				if releases.Add(1) < ended {
					return redistest.Hold(most)
				}
				return redistest.Hold(last)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var calls []rig.Going
			for range ended {
				call := rig.Beside(func() error { return l.Lock(ctx) })
				call.Pending(t, "a call")
				calls = append(calls, call)
			}
			cancel()
			for _, call := range calls {
				rig.WantIs(t, <-call, context.Canceled)
			}
			rig.End(t, holds)
			attempt := wantsFree(t, l)
			attempt.Pending(t, "the attempt")
			close(most)
			attempt.Pending(t, "the attempt, with one call left")
			close(last)
			rig.Must(t, <-attempt)
			rig.Must(t, l.Unlock())
		})
	}
}

// TestAnAttemptWaitsForRemainsNoLongerThanHalfItsTime has nothing removed at all.
func TestAnAttemptWaitsForRemainsNoLongerThanHalfItsTime(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		own := x.Actor()
		held := x.Take(x.Eye.NewLock("job"))
		gate := make(chan struct{})
		own.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "release") {
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		got, err := own.NewLock("job").TryLock(t.Context(), 50*time.Millisecond)
		if got || err != nil {
			t.Fatalf("TryLock returned %v, %v", got, err)
		}
		began := x.Now()
		got, err = own.NewLock("job").TryLock(t.Context(), 0)
		if took := x.Now() - began; got || err != nil || took != time.Second {
			t.Errorf("an attempt returned %v, %v after %v, want false, nil after 1s", got, err, took)
		}
		close(gate)
		rig.End(t, held)
	})
}

// TestAMultiWhoseLastLockComesTooLateHoldsNone has a hook of the first lock outlast the wait, and perhaps end the call's
// context first. The second lock is free.
func TestAMultiWhoseLastLockComesTooLateHoldsNone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		slow, end := true, func() {}
		c := x.Client(relock.Trace(relock.Hooks{Acquired: func(context.Context, relock.Event) {
			if slow {
				slow = false
				end()
				virtual.Sleep(20 * time.Millisecond)
			}
		}}))
		m := relock.NewMulti(c.NewLock("a"), c.NewLock("b"))
		if got, err := m.TryLock(t.Context(), 15*time.Millisecond); got || err != nil {
			t.Errorf("TryLock returned %v, %v, though its wait was over before it had both", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		slow, end = true, cancel
		_, err := m.TryLock(ctx, 15*time.Millisecond)
		rig.WantIs(t, err, context.Canceled)
		if got, err := m.TryLock(t.Context(), 0); !got || err != nil {
			t.Fatalf("a later TryLock returned %v, %v", got, err)
		}
		rig.Must(t, m.Unlock())
	})
}
