package relock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// The name that an anonymous hold has was taken for one to re-enter by: who gave it to
// WithOwner held beside the goroutine that the lock was passed on to.
// Fails without the fix: no call takes a name that relock has made.
func TestNameThatRelockMadeIsEnteredByNobody(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		c := x.client()
		l := c.NewLock("a")
		first := acquire(t, l, t.Context())
		var second *relock.Hold
		waiter := beside(func() (err error) { second, err = l.Acquire(t.Context()); return err })
		synctest.Wait()
		made := first.Owner()
		for _, stranger := range []*relock.Lock{c.NewLock("a"), x.lock("a"), x.client().NewRWLock("b").RLocker()} {
			for way, call := range everyWay(stranger) {
				err := call(x.by(made))
				wantIs(t, err, relock.ErrInvalidOption)
				if err == nil || !strings.Contains(err.Error(), made) || !strings.Contains(err.Error(), "WithOwner") {
					t.Errorf("%s: %v, want it to name the owner and what to do", way, err)
				}
			}
		}
		wantIs(t, x.lock("a", relock.Owner(made)).Lock(t.Context()), relock.ErrInvalidOption)
		noErr(t, first.Release())
		noErr(t, hasReturned(t, waiter))
		x.holders(l, second.Owner(), 1)
		noErr(t, second.Release())
		x.frees("a")
	})
}

// Whatever sends such a request: the script lets nobody join an anonymous grant.
// Fails without the fix: a named request with a name that relock makes is refused.
func TestNameThatRelockMadeIsRefusedByTheScript(t *testing.T) {
	for kind, handle := range map[string]func(c *relock.Client) *relock.Lock{
		"plain": func(c *relock.Client) *relock.Lock { return c.NewLock("l") },
		"rw":    func(c *relock.Client) *relock.Lock { return c.NewRWLock("l").RLocker() },
	} {
		t.Run(kind, func(t *testing.T) {
			inLab(t, func(t *testing.T, x *lab) {
				h := acquire(t, handle(x.client()), t.Context())
				ask := func(owner string) error {
					keys := key.For("relock", "l")
					mode := map[string]string{"plain": "w", "rw": "r"}[kind]
					return x.rdb.Eval(t.Context(), script.MustLoad(lua.FS, "acquire").Source, []string{keys.Hash, keys.Queue},
						key.Inbox("relock", ""), kind, nonce('c'), time.Now().Add(10*time.Second).UnixMilli(), 600_000, 0,
						nonce('n'), 1, owner, 1, mode, 30_000, 1, -1).Err()
				}
				if err := ask(h.Owner()); err == nil || !strings.Contains(err.Error(), "anonymous") {
					t.Errorf("error %v, want one that says whose name it is", err)
				}
				x.holders(handle(x.client()), h.Owner(), 1)
				noErr(t, h.Release())
				if err := ask(h.Owner()); err == nil {
					t.Error("the name was taken while the lock was free")
				}
				x.holders(handle(x.client()), "", 0)
			})
		})
	}
}

// Fails without the fix: who is told of a deadlock is not offered the name that
// relock made for the hold in the way.
func TestDeadlockBehindAnAnonymousHoldOffersNoName(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		rw := x.client().NewRWLock("a")
		read := acquire(t, rw.RLocker(), t.Context())
		for want, l := range map[error]*relock.Lock{relock.ErrUpgrade: rw.WLocker(), relock.ErrDeadlock: rw.RLocker()} {
			err := l.Lock(read.Context(t.Context()))
			if wantIs(t, err, want); err == nil || strings.Contains(err.Error(), read.Owner()) || !strings.Contains(err.Error(), "anonymous") {
				t.Errorf("%v, want it to speak of an anonymous hold", err)
			}
		}
		noErr(t, read.Release())
	})
}
