package real_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// fleet is one client that holds many locks, all due for renewal at once.
func fleet(t *testing.T, s *rig.Lab, n int) (locks []*relock.Lock, holds []*relock.Hold, link *redistest.Link) {
	t.Helper()
	c, link := s.Linked()
	for i := range n {
		l := c.NewLock(fmt.Sprint("job ", i))
		locks = append(locks, l)
		holds = append(holds, rig.MustAcquire(t, l))
	}
	return locks, holds, link
}

// renews says that a script of that name may be a renewal.
func renews(script string) bool { return script == "hold" || script == "renew" }

// overdue returns how many of the locks have less than the given lease left.
func overdue(t *testing.T, s *rig.Lab, locks []*relock.Lock, lease time.Duration) (n int) {
	t.Helper()
	for _, l := range locks {
		info, err := s.Eye.NewLock(l.Name()).Info(t.Context())
		rig.Must(t, err)
		if len(info.Holders) != 1 || info.Holders[0].TTL < lease {
			n++
		}
	}
	return n
}

// allHeld fails unless every hold outlives some leases, and then ends in order.
func allHeld(t *testing.T, holds []*relock.Hold) {
	t.Helper()
	virtual.Sleep(time.Minute)
	for _, h := range holds {
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
	}
}

// TestOneErrorInARenewalBatchDelaysNoOther answers the command that renews many
// locks with an error, and then one of the statements that take its place.
// Fails when the locks of a command that was refused are left to the next try, and
// when the error of one statement is taken for that of its pipeline.
func TestOneErrorInARenewalBatchDelaysNoOther(t *testing.T) {
	for _, text := range []string{"LOADING Redis is loading the dataset in memory", "ERR something else", "NOSCRIPT No matching script"} {
		t.Run(text, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, s *rig.Lab) {
				locks, holds, _ := fleet(t, s, 150)
				s.Server.FailNext(2, text, func(args []string) bool {
					return renews(rig.ScriptSent(args)) && slices.Contains(args, "relock:h:{job 77}")
				})
				virtual.Sleep(10*time.Second + 7*time.Millisecond)
				synctest.Wait()
				if n := overdue(t, s, locks, 29*time.Second); n > 1 {
					t.Errorf("%d renewals are overdue, want no more than the one that failed", n)
				}
				virtual.Sleep(2 * time.Second)
				if n := overdue(t, s, locks, 27*time.Second); n > 0 {
					t.Errorf("%d renewals are overdue, also the one that failed ought to have been tried again", n)
				}
				allHeld(t, holds)
			})
		})
	}
}

// TestOneUnansweredRenewalBatchDelaysNoOther loses one batch of two, with its
// replies or before them.
func TestOneUnansweredRenewalBatchDelaysNoOther(t *testing.T) {
	for name, fate := range map[string]redistest.Verdict{
		"lost": redistest.Lose, "cut before": redistest.CutBefore,
		"reply swallowed": redistest.SwallowReply, "reply cut": redistest.CutReply,
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, s *rig.Lab) {
				locks, holds, link := fleet(t, s, 150)
				struck := false
				link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					if !struck && renews(rig.ScriptOf(cmd)) {
						struck = true
						return fate
					}
					return redistest.Pass
				})
				virtual.Sleep(10*time.Second + 7*time.Millisecond)
				synctest.Wait()
				if n := overdue(t, s, locks, 29*time.Second); n > 128 {
					t.Errorf("%d renewals are overdue, want no more than the batch that got no answer", n)
				}
				virtual.Sleep(4 * time.Second)
				if n := overdue(t, s, locks, 25*time.Second); n > 0 || !struck {
					t.Errorf("%d renewals are overdue, want none: they are tried again after the attempt", n)
				}
				allHeld(t, holds)
			})
		})
	}
}

// TestHeldLockSurvivesAScriptFlushAndAStall empties the script cache, and stops
// the server for half a lease.
func TestHeldLockSurvivesAScriptFlushAndAStall(t *testing.T) {
	t.Parallel()
	srv := redistest.Real(t)
	rdb := srv.Client(t)
	c := rig.Open(t, srv.Client(t), relock.Defaults(relock.TTL(12*time.Second)))
	l := c.NewLock("job")
	h := rig.MustAcquire(t, l)
	other := rig.Open(t, rdb).NewLock("job")
	waiting := rig.Beside(func() error { return other.Lock(t.Context()) })
	rig.Queued(t, l, 1)
	rig.Must(t, rdb.ScriptFlush(t.Context()).Err())
	renewedPast(t, h, h.TrustedUntil())
	stall := time.NewTimer(5 * time.Second)
	srv.Pause()
	<-stall.C
	srv.Resume()
	renewedPast(t, h, h.TrustedUntil())
	rig.Must(t, h.Err())
	if ok, err := c.NewLock("job").TryLock(t.Context(), 0); ok || err != nil {
		t.Errorf("TryLock beside the holder = %v, %v, want false", ok, err)
	}
	rig.WantState(t, l, "after the stall", h.Owner()+" x1 waiting 1")
	rig.Must(t, h.Release())
	rig.Must(t, <-waiting)
	rig.Must(t, other.Unlock())
}

// renewedPast waits for a renewal that moves trust past the given time.
func renewedPast(t *testing.T, h *relock.Hold, past time.Time) {
	t.Helper()
	rig.Soon(t, func() string {
		rig.Must(t, h.Err())
		if until := h.TrustedUntil(); !until.After(past) {
			return fmt.Sprint("not renewed: trusted until ", until)
		}
		return ""
	})
}

// TestHolderLearnsOfLostDataAtItsNextRenewal empties Redis, or has it start
// anew, under a holder and a waiter.
func TestHolderLearnsOfLostDataAtItsNextRenewal(t *testing.T) {
	for name, lose := range map[string]func(*redistest.RealServer, *redis.Client) error{
		"FLUSHALL": func(_ *redistest.RealServer, rdb *redis.Client) error {
			return rdb.FlushAll(context.Background()).Err()
		},
		"restart": func(srv *redistest.RealServer, _ *redis.Client) error { srv.Restart(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Real(t)
			rdb := srv.Client(t)
			const ttl = 9 * time.Second
			c := rig.Open(t, srv.Client(t), relock.Defaults(relock.TTL(ttl)))
			l := c.NewLock("job")
			h := rig.MustAcquire(t, l)
			rig.Must(t, h.Release())
			h = rig.MustAcquire(t, l)
			waiter := rig.Open(t, rdb).NewLock("job")
			waiting := rig.Beside(func() error { return waiter.Lock(t.Context()) })
			rig.Queued(t, l, 1)
			meter := measureStalls(t, srv)
			rig.Must(t, lose(srv, rdb))
			lost := time.Now()
			<-h.Lost()
			if took, most := time.Since(lost), ttl/3+time.Second; took > most+meter() {
				t.Errorf("the holder learned of it after %v, want at most %v", took, most)
			}
			if err := h.Release(); !errors.Is(err, relock.ErrLost) {
				t.Errorf("Release = %v, want ErrLost", err)
			}
			rig.Must(t, <-waiting)
			rig.WantLater(t, h.Token(), waiter.Token())
			rig.Must(t, waiter.Unlock())
			next := rig.MustAcquire(t, l)
			rig.WantLater(t, h.Token(), next.Token())
			rig.Must(t, next.Release())
		})
	}
}
