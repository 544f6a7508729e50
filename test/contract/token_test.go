package contract_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestTokensGrowWithEveryGrant(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		locks := []*relock.Lock{x.Lock("a"), x.Lock("a", relock.Owner("me")), x.Lock("a")}
		last := int64(0)
		for i := range 30 {
			if i%10 == 5 {
				virtual.Sleep(time.Duration(i) * time.Minute)
			}
			l := locks[i%len(locks)]
			rig.Must(t, l.Lock(t.Context()))
			if l.Token() <= last {
				t.Errorf("grant %d has token %d, the one before %d", i, l.Token(), last)
			}
			last = l.Token()
			rig.Must(t, l.Unlock())
		}
	})
}

// TestTokensGrowInTheProcessOwnLine: where the lock is passed on without asking Redis.
func TestTokensGrowInTheProcessOwnLine(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, other := x.Lock("a"), x.Lock("a")
		rig.Must(t, other.Lock(t.Context()))
		last := other.Token()
		const waiting = 100
		done := make(chan int64, waiting)
		for i := range waiting {
			at := l
			if i%9 == 3 {
				at = other
			}
			go func() {
				if err := at.Lock(t.Context()); err != nil {
					t.Error(err)
				}
				done <- at.Token()
				if err := at.Unlock(); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		rig.Must(t, other.Unlock())
		for range waiting {
			token := <-done
			if token <= last {
				t.Fatalf("token %d after %d", token, last)
			}
			last = token
		}
	})
}

func TestReentriesShareTheToken(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		first := acquire(t, c.NewLock("a"), x.By("me"))
		for _, l := range []*relock.Lock{c.NewLock("a"), x.Lock("a"), x.Lock("a")} {
			h := acquire(t, l, x.By("me"))
			if h.Token() != first.Token() {
				t.Errorf("re-entry has token %d, the grant %d", h.Token(), first.Token())
			}
			virtual.Sleep(time.Minute)
		}
		// The last to stay keeps it, though the first has left.
		rig.Must(t, first.Release())
		h := acquire(t, x.Lock("a"), x.By("me"))
		if h.Token() != first.Token() {
			t.Errorf("re-entry has token %d, the grant %d", h.Token(), first.Token())
		}
	})
}

// TestTokensGrowThoughTheDataIsGone: after a restart without data, and with a
// clock that has stepped back.
func TestTokensGrowThoughTheDataIsGone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a")
		last := int64(0)
		next := func(what string) {
			t.Helper()
			rig.Must(t, l.Lock(t.Context()))
			if l.Token() <= last {
				t.Errorf("%s: token %d after %d", what, l.Token(), last)
			}
			last = l.Token()
			rig.Must(t, l.Unlock())
			virtual.Sleep(time.Millisecond)
		}
		for range 3 {
			next("at first")
		}
		x.Server.FlushAll()
		next("without data")
		x.Server.FlushScripts()
		next("without scripts")
		x.Server.StepClock(-5 * time.Minute)
		for range 3 {
			next("after a step back")
		}
		x.Server.StepClock(time.Hour)
		next("after a step ahead")
	})
}

// TestTokenOutlivesItsHoldByTheKeepTime, and by no more than that again.
// Fails when a release leaves a hash to what is left of a lease that is longer.
func TestTokenOutlivesItsHoldByTheKeepTime(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Client(relock.TokenKeep(2*time.Minute)).NewLock("a", relock.TTL(time.Hour))
		rig.Must(t, l.Lock(t.Context()))
		if keys := x.Server.Direct().Keys(); len(keys) != 1 {
			t.Errorf("keys %v beside a lock in use, want one", keys)
		}
		rig.Must(t, l.Unlock())
		virtual.Sleep(2*time.Minute - time.Second)
		if keys := x.Server.Direct().Keys(); len(keys) != 1 {
			t.Errorf("keys %v within TokenKeep, want one", keys)
		}
		virtual.Sleep(2 * time.Second)
		if keys := x.Server.Direct().Keys(); len(keys) != 0 {
			t.Errorf("keys %v after TokenKeep, want none", keys)
		}
	})
}

func TestTokenOfTheHandleIsThatOfItsNewestHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l := x.Lock("a", relock.NoWatchdog())
		h := acquire(t, l, x.By("me"))
		virtual.Sleep(time.Minute)
		if l.Token() != h.Token() {
			t.Errorf("token %d of a lost hold that is not unlocked, want %d", l.Token(), h.Token())
		}
		rig.WantIs(t, l.Unlock(), relock.ErrLost)
		if l.Token() != 0 {
			t.Errorf("token %d of no hold, want 0", l.Token())
		}
	})
}

// Two primaries of a failover both serve, and grant each of many names at one instant of
// their clocks. Owners are told apart by three digits, so a pair in 488 is alike.
// Fails when a token is the instant alone.
func TestTokensOfTwoPrimariesDifferThoughTheirInstantsMeet(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		old := x.ClientOver(redistest.Start(t).Client(t))
		const names = 200
		alike := 0
		for i := range names {
			one, two := x.Take(x.Lock(fmt.Sprint(i))), x.Take(old.NewLock(fmt.Sprint(i)))
			if one.Token()/1000 != two.Token()/1000 {
				t.Fatalf("tokens %d and %d, want one instant", one.Token(), two.Token())
			}
			if one.Token() == two.Token() {
				alike++
			}
		}
		if alike > names/20 {
			t.Errorf("%d of %d names have one token at both", alike, names)
		}
	})
}

// Fails when Redis tells of another token than the hold does.
func TestTokenIsTheInstantOfTheGrantInNanoseconds(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		locks := []*relock.Lock{
			x.Lock("a"), x.Lock("b", relock.Fair(), relock.Owner("me")), x.Client().NewRWLock("c").RLocker(), x.Client().NewSemaphore("d", 3),
		}
		for _, l := range locks {
			h := x.Take(l)
			if since := time.Since(time.Unix(0, h.Token())); since.Abs() >= time.Microsecond {
				t.Errorf("%s has token %d, that is %v ago", h.Name(), h.Token(), since)
			}
			virtual.Sleep(time.Minute)
			if info := x.Info(l); len(info.Holders) != 1 || info.Holders[0].Token != h.Token() {
				t.Errorf("redis says %+v, want token %d", info.Holders, h.Token())
			}
		}
	})
}
