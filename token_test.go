package relock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
)

func TestTokensGrowWithEveryGrant(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		locks := []*relock.Lock{x.lock("a"), x.lock("a", relock.Owner("me")), x.lock("a")}
		last := int64(0)
		for i := range 30 {
			if i%10 == 5 {
				time.Sleep(time.Duration(i) * time.Minute)
			}
			l := locks[i%len(locks)]
			noErr(t, l.Lock(t.Context()))
			if l.Token() <= last {
				t.Errorf("grant %d has token %d, the one before %d", i, l.Token(), last)
			}
			last = l.Token()
			noErr(t, l.Unlock())
		}
	})
}

// TestTokensGrowInTheProcessOwnLine: where the lock is passed on without asking Redis.
func TestTokensGrowInTheProcessOwnLine(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l, other := x.lock("a"), x.lock("a")
		noErr(t, other.Lock(t.Context()))
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
		noErr(t, other.Unlock())
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
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		first := acquire(t, c.NewLock("a"), x.by("me"))
		for _, l := range []*relock.Lock{c.NewLock("a"), x.lock("a"), x.lock("a")} {
			h := acquire(t, l, x.by("me"))
			if h.Token() != first.Token() {
				t.Errorf("re-entry has token %d, the grant %d", h.Token(), first.Token())
			}
			time.Sleep(time.Minute)
		}
		// The last to stay keeps it, though the first has left.
		noErr(t, first.Release())
		h := acquire(t, x.lock("a"), x.by("me"))
		if h.Token() != first.Token() {
			t.Errorf("re-entry has token %d, the grant %d", h.Token(), first.Token())
		}
	})
}

// TestTokensGrowThoughTheDataIsGone: after a restart without data, and with a
// clock that has stepped back.
func TestTokensGrowThoughTheDataIsGone(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a")
		last := int64(0)
		next := func(what string) {
			t.Helper()
			noErr(t, l.Lock(t.Context()))
			if l.Token() <= last {
				t.Errorf("%s: token %d after %d", what, l.Token(), last)
			}
			last = l.Token()
			noErr(t, l.Unlock())
			time.Sleep(time.Millisecond)
		}
		for range 3 {
			next("at first")
		}
		x.srv.FlushAll()
		next("without data")
		x.srv.FlushScripts()
		next("without scripts")
		x.srv.StepClock(-5 * time.Minute)
		for range 3 {
			next("after a step back")
		}
		x.srv.StepClock(time.Hour)
		next("after a step ahead")
	})
}

// TestTokenOutlivesItsHoldByTheKeepTime, and no longer.
func TestTokenOutlivesItsHoldByTheKeepTime(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.client(relock.TokenKeep(2*time.Minute)).NewLock("a", relock.TTL(time.Hour))
		noErr(t, l.Lock(t.Context()))
		if keys := x.srv.Direct().Keys(); len(keys) != 1 {
			t.Errorf("keys %v beside a lock in use, want one", keys)
		}
		noErr(t, l.Unlock())
		time.Sleep(2*time.Minute - time.Second)
		if keys := x.srv.Direct().Keys(); len(keys) != 1 {
			t.Errorf("keys %v within the keep time, want one", keys)
		}
		time.Sleep(2 * time.Second)
		if keys := x.srv.Direct().Keys(); len(keys) != 0 {
			t.Errorf("keys %v after the keep time, want none", keys)
		}
	})
}

func TestTokenOfTheHandleIsThatOfItsNewestHold(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		l := x.lock("a", relock.NoWatchdog())
		h := acquire(t, l, x.by("me"))
		time.Sleep(time.Minute)
		if l.Token() != h.Token() {
			t.Errorf("token %d of a lost hold that is not unlocked, want %d", l.Token(), h.Token())
		}
		wantIs(t, l.Unlock(), relock.ErrLost)
		if l.Token() != 0 {
			t.Errorf("token %d of no hold, want 0", l.Token())
		}
	})
}
