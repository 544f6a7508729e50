package contract_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// The name that an anonymous hold has was taken for one to re-enter by: who gave it to
// WithOwner held beside the goroutine that the lock was passed on to.
// Fails without the fix: no call takes a name that relock has made.
func TestNameThatRelockMadeIsEnteredByNobody(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("a")
		first := acquire(t, l, t.Context())
		var second *relock.Hold
		waiter := rig.Beside(func() (err error) { second, err = l.Acquire(t.Context()); return err })
		synctest.Wait()
		made := first.Owner()
		for _, stranger := range []*relock.Lock{c.NewLock("a"), x.Lock("a"), x.Client().NewRWLock("b").RLocker()} {
			for way, call := range everyWay(stranger) {
				err := call(x.By(made))
				rig.WantIs(t, err, relock.ErrInvalidOption)
				if err == nil || !strings.Contains(err.Error(), made) || !strings.Contains(err.Error(), "WithOwner") {
					t.Errorf("%s: %v, want it to name the owner and what to do", way, err)
				}
			}
		}
		rig.WantIs(t, x.Lock("a", relock.Owner(made)).Lock(t.Context()), relock.ErrInvalidOption)
		rig.Must(t, first.Release())
		rig.Must(t, rig.Returned(t, waiter))
		x.Holders(l, second.Owner(), 1)
		rig.Must(t, second.Release())
		x.Frees("a")
	})
}

// Whatever sends such a request: the script lets nobody join an anonymous grant.
// Fails when a request with a name that relock makes is taken for a named one.
func TestNameThatRelockMadeEntersNothingInTheScript(t *testing.T) {
	for kind, handle := range map[string]func(c *relock.Client) *relock.Lock{
		"plain": func(c *relock.Client) *relock.Lock { return c.NewLock("l") },
		"rw":    func(c *relock.Client) *relock.Lock { return c.NewRWLock("l").RLocker() },
	} {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				h := acquire(t, handle(x.Client()), t.Context())
				r := rig.Raw{T: t, Redis: x.Redis, ID: rig.NonceOf('c')}
				ask := func(owner string) string {
					keys := key.For("relock", "l")
					reply, err := x.Redis.Eval(t.Context(), script.MustLoad(lua.FS, "acquire").Source, []string{keys.Hash, keys.Queue},
						r.Request(kind, rig.NonceOf('n'), owner, "w", 30*time.Second, 1, 1, -1)...).Slice()
					rig.Must(t, err)
					return fmt.Sprint(reply[2])
				}
				if code := ask(h.Owner()); code != "-4" {
					t.Errorf("answered %s to one that takes the name of an anonymous hold, want -4: ended", code)
				}
				x.Holders(handle(x.Client()), h.Owner(), 1)
				if kind == "rw" {
					beside := acquire(t, handle(x.Client()), t.Context())
					if code := ask(h.Owner()); code != "-4" {
						t.Errorf("answered %s where the hold is one of several, want -4: ended", code)
					}
					rig.Must(t, beside.Release())
				}
				rig.Must(t, h.Release())
			})
		})
	}
}

// Fails without the fix: who is told of a deadlock is not offered the name that
// relock made for the hold in the way.
func TestDeadlockBehindAnAnonymousHoldOffersNoName(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rw := x.Client().NewRWLock("a")
		read := acquire(t, rw.RLocker(), t.Context())
		for want, l := range map[error]*relock.Lock{relock.ErrUpgrade: rw.WLocker(), relock.ErrDeadlock: rw.RLocker()} {
			err := l.Lock(read.Context(t.Context()))
			if rig.WantIs(t, err, want); err == nil || strings.Contains(err.Error(), read.Owner()) || !strings.Contains(err.Error(), "anonymous") {
				t.Errorf("%v, want it to speak of an anonymous hold", err)
			}
		}
		rig.Must(t, read.Release())
	})
}
