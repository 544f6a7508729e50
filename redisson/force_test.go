package redisson_test

import (
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
	"github.com/relock-go/relock/redisson/lua"
)

// loadForce makes the scripts of a ForceUnlock known to the server, as loadAll does others.
func loadForce(t *testing.T, x *rig.Lab) {
	t.Helper()
	for _, name := range []string{"force", "info"} {
		rig.Must(t, x.Redis.ScriptLoad(t.Context(), script.MustLoad(lua.FS, name).Source).Err())
	}
}

// TestAForceUnlockSentAgainSaysThatItTookTheLock: its second request finds nothing.
func TestAForceUnlockSentAgainSaysThatItTookTheLock(t *testing.T) {
	for _, prefix := range []string{"", "fair_", "read_", "write_"} {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				loadForce(t, x)
				held := of(client(t, x), prefix)
				rig.Must(t, held.Lock(t.Context()))
				operator, link := linked(t, x)
				fate(link, "force", 1, redistest.CutReply)
				if ok, err := of(operator, prefix).ForceUnlock(t.Context()); !ok || err != nil {
					t.Errorf("ForceUnlock = %v, %v, want true", ok, err)
				}
				rig.WantIs(t, held.Unlock(), relock.ErrLost)
				fate(link, "force", 1, redistest.CutReply)
				if ok, err := of(operator, prefix).ForceUnlock(t.Context()); ok || err != nil {
					t.Errorf("ForceUnlock of a free lock = %v, %v", ok, err)
				}
				virtual.Sleep(30 * time.Second) // a reader's own key ends with its lease
				bare(t, x)
			})
		})
	}
}

// TestAForceUnlockSentAgainLeavesTheSuccessor that has got the lock by the first request.
func TestAForceUnlockSentAgainLeavesTheSuccessor(t *testing.T) {
	for _, prefix := range []string{"", "fair_", "write_"} {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				loadForce(t, x)
				held, next := of(client(t, x), prefix), of(client(t, x), prefix)
				rig.Must(t, held.Lock(t.Context()))
				got := rig.Beside(func() error { return next.Lock(t.Context()) })
				virtual.Sleep(time.Second)
				got.Pending(t, "a second Lock")
				operator, link := linked(t, x)
				fate(link, "force", 1, redistest.CutReply)
				if ok, err := of(operator, prefix).ForceUnlock(t.Context()); !ok || err != nil {
					t.Errorf("ForceUnlock = %v, %v, want true", ok, err)
				}
				rig.Must(t, rig.Returned(t, got))
				rig.WantIs(t, held.Unlock(), relock.ErrLost)
				virtual.Sleep(time.Minute) // beyond a renewal
				rig.Must(t, next.Unlock())
				bare(t, x)
			})
		})
	}
}

// TestALockWithThousandsOfReadersIsSeenAndForced: Lua unpacks no more than 8000 values.
func TestALockWithThousandsOfReadersIsSeenAndForced(t *testing.T) {
	srv := redistest.Real(t)
	rdb := srv.Client(t)
	fields := []any{"mode", "read"}
	for i := range 5000 {
		fields = append(fields, "java:"+string(rune(0x4e00+i)), "1")
	}
	rig.Must(t, rdb.HSet(t.Context(), "a", fields...).Err())
	rig.Must(t, rdb.PExpire(t.Context(), "a", time.Minute).Err())
	c, err := redisson.New(rdb)
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, c.Close()) })
	l := of(c, "read_")
	info, err := l.Info(t.Context())
	rig.Must(t, err)
	if n := len(info.Holders); n != 5000 {
		t.Errorf("%d holders", n)
	}
	if ok, err := l.ForceUnlock(t.Context()); !ok || err != nil {
		t.Errorf("ForceUnlock = %v, %v", ok, err)
	}
}

// The first request is executed and its answer is lost, or the request is lost and the holder unlocks meanwhile. Either
// way the second request finds nothing.
// Fails when that is told as a holder that nobody had to remove.
func TestTheEndOfOneHolderThatIsSentAgainIsTold(t *testing.T) {
	for _, prefix := range everyLayout {
		for name, verdict := range map[string]redistest.Verdict{"executed": redistest.SwallowReply, "lost": redistest.Lose} {
			t.Run(prefix+name, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					loadAll(t, x)
					loadForce(t, x)
					held := of(client(t, x), prefix)
					h := acquired(t.Context(), t, held)
					operator, link := linked(t, x)
					script := "force"
					if prefix == "read_" {
						script = "read_release"
					}
					fate(link, script, 1, verdict)
					ends := rig.Beside(func() error {
						ok, err := of(operator, prefix).ForceUnlockHolder(t.Context(), relock.Holder{Owner: h.Owner()})
						if err == nil && !ok {
							err = errors.New("it says that there was no such holder")
						}
						return err
					})
					ends.Pending(t, "ForceUnlockHolder")
					if name == "lost" {
						rig.Must(t, h.Release())
					} else {
						rig.WantIs(t, h.Release(), relock.ErrLost)
					}
					rig.Must(t, <-ends)
					virtual.Sleep(30 * time.Second) // a reader's own key ends with its lease
					bare(t, x)
				})
			})
		}
	}
}

// Fails when its reads keep the next writer out.
func TestAWriterThatIsRemovedLosesItsReadHoldsToo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw, other, me := client(t, x).NewRWLock("a"), client(t, x).NewRWLock("a"), x.By("me")
		h := acquired(me, t, rw.WLocker())
		rig.Must(t, rw.RLock(me))
		if ok, err := other.WLocker().ForceUnlockHolder(t.Context(), relock.Holder{Owner: h.Owner()}); !ok || err != nil {
			t.Fatalf("ForceUnlockHolder = %v, %v", ok, err)
		}
		if ok, err := other.TryLock(t.Context(), 0); !ok || err != nil {
			t.Fatalf("TryLock of another writer = %v, %v, want true", ok, err)
		}
		virtual.Sleep(11 * time.Second) // beyond a renewal
		wantHolds(t, rw, 0, 0)
		rig.WantIs(t, rw.RUnlock(), relock.ErrLost)
		rig.WantIs(t, h.Release(), relock.ErrLost)
		rig.Must(t, other.Unlock())
	})
}

// TestForceUnlockHolderTakesTheLockFromThatHolderAlone: of two readers the other goes on, and a
// holder that came later keeps the lock.
func TestForceUnlockHolderTakesTheLockFromThatHolderAlone(t *testing.T) {
	for _, prefix := range []string{"", "fair_", "read_", "write_", "fenced"} {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				lock := func(c *redisson.Client) *redisson.Lock {
					if prefix == "fenced" {
						return c.NewLock("a", redisson.Fenced())
					}
					return of(c, prefix)
				}
				victim, eye := lock(client(t, x)), lock(client(t, x))
				rig.Must(t, victim.Lock(t.Context()))
				info, err := eye.Info(t.Context())
				rig.Must(t, err)
				seen := info.Holders[0]
				other := lock(client(t, x))
				if prefix == "read_" {
					rig.Must(t, other.Lock(t.Context()))
				}
				force := func(h relock.Holder, want bool) {
					t.Helper()
					if removed, err := eye.ForceUnlockHolder(t.Context(), h); removed != want || err != nil {
						t.Errorf("ForceUnlockHolder(%+v) = %v, %v, want %v", h, removed, err, want)
					}
				}
				force(relock.Holder{Owner: "nobody"}, false)
				force(relock.Holder{Owner: seen.Owner, Token: seen.Token + 1}, false)
				if prefix == "fenced" {
					force(relock.Holder{Token: seen.Token}, true)
				} else {
					force(relock.Holder{Token: 1}, false) // only a fenced lock has tokens
					force(seen, true)
				}
				force(seen, false)
				if prefix != "read_" {
					rig.Must(t, other.Lock(t.Context()))
				}
				force(seen, false)
				virtual.Sleep(time.Minute) // beyond some renewals
				rig.WantIs(t, victim.Unlock(), relock.ErrLost)
				rig.Must(t, other.Unlock())
				_, err = eye.ForceUnlockHolder(t.Context(), relock.Holder{})
				rig.WantIs(t, err, relock.ErrInvalidOption)
				rig.Must(t, x.Redis.Del(t.Context(), "redisson_lock_token:{a}").Err()) // it has no TTL, as in Java
			})
		})
	}
}

// TestForceUnlockHolderOfOneSideLeavesTheOther: what the writing side takes away is a writer, and
// a writer's own reads are no reader.
func TestForceUnlockHolderOfOneSideLeavesTheOther(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, me := client(t, x).NewRWLock("a"), x.By("me")
		eye := client(t, x).NewRWLock("a")
		force := func(side *redisson.Lock, want bool) {
			t.Helper()
			info, err := eye.WLocker().Info(t.Context())
			rig.Must(t, err)
			for _, h := range info.Holders {
				if removed, err := side.ForceUnlockHolder(t.Context(), relock.Holder{Owner: h.Owner}); removed != want || err != nil {
					t.Errorf("%+v: %v, %v, want %v", h, removed, err, want)
				}
			}
		}
		rig.Must(t, l.RLock(me))
		force(eye.WLocker(), false)
		rig.Must(t, l.RUnlock())
		rig.Must(t, l.Lock(me))
		rig.Must(t, l.RLock(me))
		force(eye.RLocker(), false)
		rig.Must(t, l.RUnlock())
		rig.Must(t, l.Unlock())
	})
}
