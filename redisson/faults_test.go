package redisson_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
	"github.com/relock-go/relock/redisson/lua"
)

// linked returns a client with a network of its own.
func linked(t *testing.T, x *rig.Lab, opts ...redisson.Option) (*redisson.Client, *redistest.Link) {
	t.Helper()
	link := redistest.NewLink(t, x.Server.Dial)
	c, err := redisson.New(x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }), opts...)
	rig.Must(t, err)
	redisson.SetClock(c, clock.New(time.Now, nil))
	t.Cleanup(func() { rig.Must(t, c.Close()) })
	return c, link
}

// fate gives the nth run of a script a verdict.
func fate(link *redistest.Link, name string, nth int64, v redistest.Verdict) {
	sha := script.MustLoad(lua.FS, name).SHA
	var seen atomic.Int64
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if cmd.Is("evalsha") && cmd.Args[1] == sha && seen.Add(1) == nth {
			return v
		}
		return redistest.Pass
	})
}

// knows has a client know the server's time. Its first request does not, and takes nothing.
func knows(t *testing.T, c *redisson.Client) {
	t.Helper()
	other := c.NewLock("other")
	rig.Must(t, other.Lock(t.Context()))
	rig.Must(t, other.Unlock())
}

// loadAll makes the scripts known to the server: a verdict on EVALSHA is one on the script.
func loadAll(t *testing.T, x *rig.Lab) {
	t.Helper()
	for _, prefix := range []string{"", "fair_", "read_", "write_"} {
		for _, name := range []string{"acquire", "release"} {
			rig.Must(t, x.Redis.ScriptLoad(t.Context(), script.MustLoad(lua.FS, prefix+name).Source).Err())
		}
	}
	rig.Must(t, x.Redis.ScriptLoad(t.Context(), script.MustLoad(lua.FS, "renew").Source).Err())
}

// of returns a handle of the kind whose scripts begin with prefix.
func of(c *redisson.Client, prefix string) *redisson.Lock {
	switch prefix {
	case "fair_":
		return c.NewLock("a", redisson.Fair())
	case "read_":
		return c.NewRWLock("a").RLocker()
	case "write_":
		return c.NewRWLock("a").WLocker()
	}
	return c.NewLock("a")
}

// TestCountsAreExactWhateverAnswerIsLost of a lock, a nested lock and the unlocks of both.
func TestCountsAreExactWhateverAnswerIsLost(t *testing.T) {
	verdicts := map[string]redistest.Verdict{
		"swallowed": redistest.SwallowReply, "cut": redistest.CutReply, "lost": redistest.Lose, "cut before": redistest.CutBefore,
	}
	for _, prefix := range []string{"", "fair_", "read_", "write_"} {
		for what, verdict := range verdicts {
			for _, step := range []string{"acquire", "release"} {
				for nth := range int64(2) {
					t.Run(strings.Join([]string{prefix + step, what, string(rune('1' + nth))}, " "), func(t *testing.T) {
						rig.Run(t, func(t *testing.T, x *rig.Lab) {
							loadAll(t, x)
							c, link := linked(t, x)
							fate(link, prefix+step, nth+1, verdict)
							twice(t, x, of(c, prefix))
						})
					})
				}
			}
		}
	}
}

// twice locks and unlocks with a nested hold, and looks at the count at each step.
func twice(t *testing.T, x *rig.Lab, l *redisson.Lock) {
	t.Helper()
	me := x.By("me")
	holds := func(want int) {
		t.Helper()
		info, err := l.Info(me)
		rig.Must(t, err)
		if want == 0 && len(info.Holders) == 0 {
			return
		}
		if len(info.Holders) != 1 || info.Holders[0].Holds != want {
			t.Errorf("%+v, want %d holds", info.Holders, want)
		}
	}
	rig.Must(t, l.Lock(me))
	holds(1)
	rig.Must(t, l.Lock(me))
	holds(2)
	rig.Must(t, l.Unlock())
	holds(1)
	rig.Must(t, l.Unlock())
	holds(0)
	virtual.Sleep(10 * time.Second)
	bare(t, x)
}

// TestALateCopyOfARequestHoldsNothing, before its time is over or after.
func TestALateCopyOfARequestHoldsNothing(t *testing.T) {
	for _, prefix := range []string{"", "fair_", "read_", "write_"} {
		for _, late := range []time.Duration{0, time.Minute} {
			t.Run(prefix+late.String(), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					loadAll(t, x)
					c, link := linked(t, x)
					knows(t, c)
					l, gate := of(c, prefix), make(chan struct{})
					fate(link, prefix+"acquire", 1, redistest.Hold(gate))
					rig.Must(t, l.Lock(t.Context()))
					rig.Must(t, l.Unlock())
					virtual.Sleep(late)
					close(gate)
					virtual.Sleep(6 * time.Second)
					bare(t, x)
				})
			})
		}
	}
}

// TestACallThatEndsUnheardHoldsNothing: its request may have been served.
func TestACallThatEndsUnheardHoldsNothing(t *testing.T) {
	for _, prefix := range []string{"", "fair_", "read_", "write_"} {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				loadAll(t, x)
				c, link := linked(t, x)
				knows(t, c)
				fate(link, prefix+"acquire", 1, redistest.SwallowReply)
				if ok, err := of(c, prefix).TryLock(t.Context(), 100*time.Millisecond); ok || err == nil {
					t.Errorf("TryLock = %v, %v, want an error: nobody knows", ok, err)
				}
				virtual.Sleep(6 * time.Second)
				bare(t, x)
			})
		})
	}
}

// TestAHoldThatRedisHasLostIsFoundByTheNextRenewal.
func TestAHoldThatRedisHasLostIsFoundByTheNextRenewal(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h, err := client(t, x).NewLock("a").Acquire(t.Context())
		rig.Must(t, err)
		x.Redis.Del(t.Context(), "a")
		lost := h.Lost()
		if h.Lost() != lost {
			t.Error("Lost has another channel at the second call")
		}
		select {
		case <-lost:
		case <-time.After(11 * time.Second):
			t.Error("not told within a third of the TTL")
		}
		if h.Lost() != lost {
			t.Error("Lost has another channel after the loss")
		}
	})
}

// TestARenewalThatFailsIsTriedAgain until the trust ends.
func TestARenewalThatFailsIsTriedAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h, err := client(t, x).NewLock("a").Acquire(t.Context())
		rig.Must(t, err)
		virtual.Sleep(9 * time.Second)
		heal := x.Server.Partition()
		virtual.Sleep(15 * time.Second)
		heal()
		virtual.Sleep(time.Minute)
		rig.Must(t, h.Release())
	})
}

// TestAnExpiryThatNobodyPublishesIsFoundWithinAPulse, however long the lease was that the
// waiter has been told.
func TestAnExpiryThatNobodyPublishesIsFoundWithinAPulse(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		holder := client(t, x).NewLock("a")
		rig.Must(t, holder.Lock(t.Context()))
		c, _ := linked(t, x)
		got := rig.Beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		virtual.Sleep(time.Second)
		x.Redis.Del(t.Context(), "a")
		began := time.Now()
		rig.Must(t, <-got)
		if took := time.Since(began); took > 10*time.Second+time.Millisecond {
			t.Errorf("had after %v", took)
		}
		_ = holder.Unlock()
	})
}

// TestAWakingThatItsReceiverLeavesGoesToTheNext: a client is told once of each unlock,
// however many of its calls wait. The first is told, and leaves before it is answered.
func TestAWakingThatItsReceiverLeavesGoesToTheNext(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := linked(t, x)
		h, err := client(t, x).NewLock("a").Acquire(t.Context())
		rig.Must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		first := rig.Beside(func() error { return c.NewLock("a").Lock(ctx) })
		synctest.Wait()
		l := c.NewLock("a")
		second := rig.Beside(func() error { return l.Lock(t.Context()) })
		synctest.Wait()
		fate(link, "acquire", 1, redistest.Lose)
		x.Redis.Del(t.Context(), "a")
		x.Redis.Publish(t.Context(), "redisson_lock__channel:{a}", "0")
		synctest.Wait()
		began := time.Now()
		stop()
		rig.WantIs(t, <-first, context.Canceled)
		rig.Must(t, <-second)
		if took := time.Since(began); took > time.Second {
			t.Errorf("the second call had the lock after %v", took)
		}
		rig.Must(t, l.Unlock())
		_ = h.Release() // somebody has removed it
	})
}

// TestTrustOfASharedLockCountsFromTheSending: the answer may have taken any time.
func TestTrustOfASharedLockCountsFromTheSending(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := linked(t, x)
		rig.Must(t, c.NewLock("a").Do(t.Context(), func(context.Context) error { return nil })) // the link is up
		link.Latency(100 * time.Millisecond)
		h, err := c.NewLock("a", redisson.TTL(time.Second), redisson.NoWatchdog()).Acquire(t.Context())
		rig.Must(t, err)
		ends := time.Now().Add(x.Redis.PTTL(t.Context(), "a").Val())
		if until := h.TrustedUntil(); !until.Before(ends) {
			t.Errorf("trusted until %v, and the lease ends %v", until, ends)
		}
		rig.Must(t, h.Release())
	})
}

// The server's clock is a minute behind, and the first request of a client arrives when its call has long ended.
// Fails when it takes the lock: nobody would release it.
func TestALateFirstRequestTakesNothingThoughTheServersClockIsBehind(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		x.Server.StepClock(-time.Minute)
		link := redistest.NewLink(t, x.Server.Dial)
		rdb := x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial })
		l, other := clientOver(t, rdb).NewLock("job"), clientOver(t, x.Redis).NewLock("job")
		gate := make(chan struct{})
		held := 0
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("eval", "evalsha") && held < 2 { // by its digest, and with its text
				held++
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
		virtual.Sleep(10 * time.Second)
		close(gate)
		rig.Must(t, link.Settle(t.Context()))
		if got, err := other.TryLock(t.Context(), 0); !got || err != nil {
			t.Errorf("TryLock = %v, %v; want that it is free", got, err)
		}
	})
}

// One primary of a Cluster has a clock that is ahead. A request to the other arrives when its call has long ended.
// Fails when it takes the lock, because the client takes the clock that it heard of last for that of all primaries.
func TestALateRequestTakesNothingThoughAnotherPrimarysClockIsAhead(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		far, link := redistest.Start(t), redistest.NewLink(t, x.Server.Dial)
		far.StepClock(10 * time.Second)
		const nearAddr, farAddr = "192.0.2.1:6379", "192.0.2.2:6379"
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == farAddr {
					return far.Dial(ctx, network, addr)
				}
				return link.Dial(ctx, network, addr)
			},
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{
					{End: 8191, Nodes: []redis.ClusterNode{{Addr: nearAddr}}},
					{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: farAddr}}},
				}, nil
			},
		})
		t.Cleanup(func() { _ = rdb.Close() })
		c := clientOver(t, rdb, redisson.ShardedPubSub(false))
		l, other := c.NewLock("b"), clientOver(t, x.Redis).NewLock("b")
		for _, known := range []*redisson.Lock{l, c.NewLock("a")} { // the slot of "a" is far
			rig.Must(t, known.Lock(t.Context()))
			rig.Must(t, known.Unlock())
		}
		gate := make(chan struct{})
		fate(link, "acquire", 1, redistest.Hold(gate))
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
		virtual.Sleep(5 * time.Second)
		close(gate)
		rig.Must(t, link.Settle(t.Context()))
		if got, err := other.TryLock(t.Context(), 0); !got || err != nil {
			t.Errorf("TryLock = %v, %v; want that it is free", got, err)
		}
	})
}

// Fails when a hold with its own Release is refused because of another owner's RLock on the same handle, or a second
// RLock is granted: an owner without a name is another owner too.
func TestAReadHoldOfItsOwnIsGrantedBesideAnotherOwnersRLock(t *testing.T) {
	for name, owners := range map[string][2]string{
		"named": {"a", "b"}, "the first is anonymous": {"", "b"}, "the second is anonymous": {"a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				by := func(owner string) context.Context {
					if owner == "" {
						return t.Context()
					}
					return x.By(owner)
				}
				rw := clientOver(t, x.Redis).NewRWLock("job")
				rig.Must(t, rw.RLock(by(owners[0])))
				rig.Must(t, rw.RLocker().Do(by(owners[1]), func(context.Context) error { return nil }))
				rig.WantIs(t, rw.RLock(by(owners[1])), relock.ErrOwnerMismatch)
				rig.Must(t, rw.RUnlock())
				own, err := rw.RLocker().Acquire(by(owners[1])) // the other way round: Unlock does not end it
				rig.Must(t, err)
				rig.Must(t, rw.RLock(by(owners[0])))
				rig.Must(t, rw.RUnlock())
				rig.Must(t, own.Release())
				bare(t, x)
			})
		})
	}
}

// Both wait behind a writer, when the handle is empty.
// Fails when a call looks at its handle before it asks and not again: an RUnlock could end the hold of the other owner.
func TestOfTwoOwnersThatWaitToReadByOneHandleOneIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		writer, rw := clientOver(t, x.Redis).NewRWLock("job"), clientOver(t, x.Redis).NewRWLock("job")
		rig.Must(t, writer.Lock(t.Context()))
		var calls []rig.Going
		for _, owner := range []string{"a", "b"} {
			calls = append(calls, rig.Beside(func() error { return rw.RLock(x.By(owner)) }))
			synctest.Wait()
		}
		rig.Must(t, writer.Unlock())
		first, second := rig.Returned(t, calls[0]), rig.Returned(t, calls[1])
		if first == nil {
			first, second = second, first
		}
		rig.WantIs(t, first, relock.ErrOwnerMismatch)
		rig.Must(t, second)
		rig.Must(t, rw.RUnlock())
		rig.WantIs(t, rw.RUnlock(), relock.ErrNotHeld)
		bare(t, x)
	})
}

// Two calls of one owner go unanswered, by handles of different TTLs. The request of the longer one counts for longer,
// and arrives when that of the shorter one counts no more.
// Fails when the later request decides until when the client ends what either has taken.
func TestALateRequestIsUndoneThoughAShorterOneWentUnansweredAfterIt(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := linked(t, x)
		me := redisson.Owner("me")
		long, short := c.NewLock("a", me, redisson.TTL(10*time.Second)), c.NewLock("a", me, redisson.TTL(time.Second))
		rig.Must(t, long.Lock(t.Context()))
		rig.Must(t, long.Unlock())
		gate, sent, sha := make(chan struct{}), 0, script.MustLoad(lua.FS, "acquire").SHA
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if !cmd.Is("evalsha") || cmd.Args[1] != sha {
				return redistest.Pass
			}
			if sent++; sent == 1 {
				return redistest.Hold(gate)
			}
			return redistest.Lose
		})
		within := func(l *redisson.Lock, d time.Duration) rig.Going {
			return rig.Beside(func() error {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				return l.Lock(ctx)
			})
		}
		first := within(long, 50*time.Millisecond)
		synctest.Wait()
		second := within(short, 100*time.Millisecond)
		rig.WantIs(t, <-first, context.DeadlineExceeded)
		rig.WantIs(t, <-second, context.DeadlineExceeded)
		virtual.Sleep(2600 * time.Millisecond)
		close(gate)
		virtual.Sleep(3 * time.Second)
		if got, err := clientOver(t, x.Redis).NewLock("a").TryLock(t.Context(), 0); !got || err != nil {
			t.Errorf("TryLock = %v, %v; want that it is free", got, err)
		}
	})
}
