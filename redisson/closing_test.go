package redisson_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
	"github.com/relock-go/relock/redisson/lua"
)

// TestReleaseOfRedissonThatCloseInterruptsIsUnconfirmed asks every call that releases. Redis may
// or may not have executed the release.
func TestReleaseOfRedissonThatCloseInterruptsIsUnconfirmed(t *testing.T) {
	for name, take := range map[string]func(ctx context.Context, c *redisson.Client) (end func() error, err error){
		"Lock.Unlock": func(ctx context.Context, c *redisson.Client) (func() error, error) {
			l := c.NewLock("a")
			return l.Unlock, l.Lock(ctx)
		},
		"Hold.Release": func(ctx context.Context, c *redisson.Client) (func() error, error) {
			h, err := c.NewLock("a", redisson.Fair()).Acquire(ctx)
			return h.Release, err
		},
		"RWLock.Unlock": func(ctx context.Context, c *redisson.Client) (func() error, error) {
			rw := c.NewRWLock("a")
			return rw.Unlock, rw.Lock(ctx)
		},
		"RWLock.RUnlock": func(ctx context.Context, c *redisson.Client) (func() error, error) {
			rw := c.NewRWLock("a")
			return rw.RUnlock, rw.RLock(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := linked(t, x)
				end, err := take(t.Context(), c)
				rig.Must(t, err)
				link.Hole()
				var ended time.Duration
				release := rig.Beside(func() error { err := end(); ended = x.Now(); return err })
				release.Pending(t, name)
				began := x.Now()
				rig.Must(t, c.Close())
				rig.WantIs(t, <-release, relock.ErrUnconfirmed, relock.ErrClosed)
				if took := ended - began; took != 250*time.Millisecond {
					t.Errorf("Close let it tell Redis for %v, want a quarter of a second", took)
				}
				rig.WantIs(t, end(), relock.ErrNotHeld)
			})
		})
	}
}

// TestAnUnlockThatRedisRefusesIsEndedByTheLease: it is told at once, and another gets the lock when the lease is over.
// Fails when the client renews what it could not release.
func TestAnUnlockThatRedisRefusesIsEndedByTheLease(t *testing.T) {
	for _, prefix := range everyLayout {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				loadAll(t, x)
				l, next := of(client(t, x), prefix), of(client(t, x), prefix)
				if prefix == "read_" {
					next = of(client(t, x), "write_") // another reader would not have to wait
				}
				rig.Must(t, l.Lock(t.Context()))
				granted := x.Now()
				virtual.Sleep(4 * time.Second)
				sha := script.MustLoad(lua.FS, prefix+"release").SHA
				var allowed atomic.Bool
				x.Server.FailNext(1_000_000, "NOPERM this user has no permissions to run the 'evalsha' command", func(args []string) bool {
					return args[0] == "evalsha" && args[1] == sha && !allowed.Load()
				})
				rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
				if took := x.Now() - granted; took != 4*time.Second {
					t.Errorf("told %v later, want at once", took-4*time.Second)
				}
				if got, err := next.TryLock(t.Context(), 2*time.Minute); !got || err != nil {
					t.Fatalf("TryLock = %v, %v, want true", got, err)
				}
				if held := x.Now() - granted; held < 30*time.Second || held > 31*time.Second {
					t.Errorf("another got the lock %v after the grant, want as its lease of 30 s ends", held)
				}
				allowed.Store(true)
				rig.Must(t, next.Unlock())
				bare(t, x)
			})
		})
	}
}

// TestDowngradeThatCloseInterruptsIsUnconfirmed leaves no write hold, and a lost read hold.
func TestDowngradeThatCloseInterruptsIsUnconfirmed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, c, link := writtenBy(t, x)
		fate(link, "write_release", 1, redistest.SwallowReply)
		down := rig.Beside(func() error { return rw.Downgrade(t.Context()) })
		down.Pending(t, "Downgrade")
		rig.Must(t, c.Close())
		rig.WantIs(t, <-down, relock.ErrUnconfirmed, relock.ErrClosed)
		rig.WantIs(t, rw.RUnlock(), relock.ErrLost, relock.ErrClosed)
		rig.WantIs(t, rw.RUnlock(), relock.ErrNotHeld)
		err := rw.Unlock()
		rig.WantIs(t, err, relock.ErrNotHeld)
		rig.WantNot(t, err, relock.ErrLost)
	})
}

// TestReadingCallsOfRedissonTellAnOutageAndAClose by errors that code can test for. They asked
// Redis until ctx ended, and returned the error of the network.
func TestReadingCallsOfRedissonTellAnOutageAndAClose(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, l *redisson.Lock) error{
		"Info": func(ctx context.Context, l *redisson.Lock) error {
			_, err := l.Info(ctx)
			return err
		},
		"ForceUnlock": func(ctx context.Context, l *redisson.Lock) error {
			_, err := l.ForceUnlock(ctx)
			return err
		},
		"ForceUnlockHolder": func(ctx context.Context, l *redisson.Lock) error {
			_, err := l.ForceUnlockHolder(ctx, relock.Holder{Owner: "gone"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				link := redistest.NewLink(t, x.Server.Dial)
				c, err := redisson.New(x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }))
				rig.Must(t, err)
				l := c.NewLock("a")
				rig.Must(t, call(t.Context(), l))
				for what, begin := range map[string]func() (heal func()){"silent": link.Hole, "refused": link.Cut} {
					heal := begin()
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					err := call(ctx, l)
					cancel()
					if rig.WantIs(t, err, context.DeadlineExceeded, relock.ErrUnavailable); t.Failed() {
						t.Fatalf("Redis is %s", what)
					}
					heal()
					virtual.Sleep(10 * time.Second)
				}
				heal := link.Cut()
				asks := rig.Beside(func() error { return call(t.Context(), l) })
				asks.Pending(t, name)
				rig.Must(t, c.Close())
				rig.WantIs(t, <-asks, relock.ErrClosed)
				heal()
				rig.WantIs(t, call(t.Context(), l), relock.ErrClosed)
			})
		})
	}
}

// Fails when the end of its context makes Shutdown a Close: the hold would be lost, though its lease is renewed.
func TestAShutdownOfRedissonThatRunsOutOfTimeLeavesTheClientOpen(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		l, me := c.NewLock("a"), x.By("me")
		h := acquired(me, t, l)
		err := c.Shutdown(canceledSoon(t))
		rig.WantIs(t, err, context.DeadlineExceeded)
		rig.WantNot(t, err, relock.ErrClosed)
		virtual.Sleep(time.Minute) // beyond some renewals
		rig.Must(t, h.Err())
		rig.Must(t, l.Do(me, func(ctx context.Context) error { return ctx.Err() }))
		rig.WantIs(t, c.NewLock("b").Lock(me), relock.ErrClosed)
		rig.Must(t, c.Close())
		rig.WantIs(t, h.Release(), relock.ErrLost, relock.ErrClosed)
	})
}

// Shutdown waits for the writer, which goes on as it would have. Fails when its Downgrade, or its own read, is taken
// for a new call.
func TestAWriterDowngradesAndReadsDuringShutdown(t *testing.T) {
	for name, reads := range map[string]bool{"downgrade": false, "read": true} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c := client(t, x)
				rw, ctx := c.NewRWLock("a"), relock.WithNewOwner(t.Context())
				rig.Must(t, rw.Lock(ctx))
				done := rig.Beside(func() error { return c.Shutdown(t.Context()) })
				virtual.Sleep(time.Minute)
				done.Pending(t, "Shutdown with a writer")
				if reads {
					rig.Must(t, rw.RLock(ctx))
					rig.Must(t, rw.Unlock())
				} else {
					rig.Must(t, rw.Downgrade(ctx))
				}
				rig.Must(t, rw.RUnlock())
				rig.Must(t, <-done)
				bare(t, x)
			})
		})
	}
}

// Fails when a hold that Shutdown does not wait for opens the client again.
func TestAWriterThatHasLostTheLockReadsNoMoreDuringShutdown(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		rw, other, ctx := c.NewRWLock("a"), c.NewLock("b"), relock.WithNewOwner(t.Context())
		rig.Must(t, rw.Lock(ctx))
		rig.Must(t, other.Lock(t.Context()))
		done := rig.Beside(func() error { return c.Shutdown(t.Context()) })
		rig.Must(t, x.Redis.Del(t.Context(), "a").Err())
		virtual.Sleep(time.Minute)
		done.Pending(t, "Shutdown with a hold")
		if rig.WantIs(t, rw.RLock(ctx), relock.ErrClosed); t.Failed() {
			t.FailNow() // Shutdown would wait for that hold
		}
		rig.WantIs(t, rw.Unlock(), relock.ErrLost)
		rig.Must(t, other.Unlock())
		rig.Must(t, <-done)
		bare(t, x)
	})
}

// An owner writes and reads, and Redis refuses the end of its writing for a while.
// Fails when Redis is not told again: the owner's renewals would keep other readers out for as long as it reads.
func TestAWriterWhoseEndIsRefusedKeepsReadersOutNoLongerThanThat(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, rw *redisson.RWLock) error{
		"Unlock":    func(ctx context.Context, rw *redisson.RWLock) error { return joined(rw.RLock(ctx), rw.Unlock()) },
		"Downgrade": func(ctx context.Context, rw *redisson.RWLock) error { return rw.Downgrade(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				loadAll(t, x)
				rw, other, me := client(t, x).NewRWLock("a"), client(t, x).NewRWLock("a"), x.By("me")
				rig.Must(t, rw.Lock(me))
				sha := script.MustLoad(lua.FS, "write_release").SHA
				var allowed atomic.Bool
				x.Server.FailNext(1_000_000, "NOPERM this user has no permissions to run the 'evalsha' command", func(args []string) bool {
					return args[0] == "evalsha" && args[1] == sha && !allowed.Load()
				})
				rig.WantIs(t, end(me, rw), relock.ErrUnconfirmed)
				virtual.Sleep(time.Minute) // beyond the lease
				allowed.Store(true)
				if ok, err := other.TryRLock(t.Context(), 11*time.Second); !ok || err != nil {
					t.Fatalf("another reader, after the owner's next renewal: %v, %v", ok, err)
				}
				rig.Must(t, rw.RUnlock())
				rig.Must(t, other.RUnlock())
				bare(t, x)
			})
		})
	}
}

// Fails when one lost answer is enough to refuse a call of an owner for whose hold Shutdown waits.
func TestAReentryDuringShutdownIsSentAgain(t *testing.T) {
	for name, enters := range map[string]struct {
		script string
		call   func(rw *redisson.RWLock, ctx context.Context) error
		ends   []func(*redisson.RWLock) error
	}{
		"Lock":      {"write_acquire", (*redisson.RWLock).Lock, []func(*redisson.RWLock) error{(*redisson.RWLock).Unlock, (*redisson.RWLock).Unlock}},
		"RLock":     {"read_acquire", (*redisson.RWLock).RLock, []func(*redisson.RWLock) error{(*redisson.RWLock).RUnlock, (*redisson.RWLock).Unlock}},
		"Downgrade": {"read_acquire", (*redisson.RWLock).Downgrade, []func(*redisson.RWLock) error{(*redisson.RWLock).RUnlock}},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				loadAll(t, x)
				c, link := linked(t, x)
				rw, me := c.NewRWLock("a"), x.By("me")
				rig.Must(t, rw.Lock(me))
				done := rig.Beside(func() error { return c.Shutdown(t.Context()) })
				done.Pending(t, "Shutdown with a writer")
				fate(link, enters.script, 1, redistest.CutReply)
				rig.Must(t, enters.call(rw, me))
				for _, end := range enters.ends {
					rig.Must(t, end(rw))
				}
				rig.Must(t, <-done)
				bare(t, x)
			})
		})
	}
}

// Fails when a re-entry that finds its owner's hold gone is told that the client is closed.
func TestAReentryDuringShutdownIsToldOfItsLoss(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		l, me := c.NewLock("a"), x.By("me")
		rig.Must(t, l.Lock(me))
		done := rig.Beside(func() error { return c.Shutdown(t.Context()) })
		done.Pending(t, "Shutdown with a hold")
		x.Redis.Del(t.Context(), "a")
		rig.WantIs(t, l.Lock(me), relock.ErrLost)
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		rig.Must(t, <-done)
		bare(t, x)
	})
}

// Its holder is cut off, so nobody answers the release of the lost hold either.
// Fails when Redis is told of it for minutes, and Shutdown waits for that.
func TestShutdownGivesUpTheReleaseOfALostHold(t *testing.T) {
	for _, prefix := range everyLayout {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := linked(t, x)
				l := of(c, prefix)
				rig.Must(t, l.Lock(t.Context()))
				link.Hole()
				<-l.Lost()
				rig.WantIs(t, l.Unlock(), relock.ErrLost)
				rig.Must(t, c.Shutdown(t.Context()))
				if at := x.Now(); at < 40*time.Second || at > 50*time.Second {
					t.Errorf("Shutdown returned %v after the grant, want some 10 s after the lease of 30 s", at)
				}
			})
		})
	}
}
