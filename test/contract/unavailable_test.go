package contract_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// everyWait is everyTry, and the calls that are bounded by their context alone.
func everyWait(c *relock.Client) map[string]func(context.Context, time.Duration) (bool, error) {
	calls := everyTry(c)
	lock := func(l interface{ Lock(context.Context) error }) func(context.Context, time.Duration) (bool, error) {
		return func(ctx context.Context, _ time.Duration) (bool, error) {
			err := l.Lock(ctx)
			return err == nil, err
		}
	}
	rw := c.NewRWLock("rw")
	calls["Lock"] = lock(c.NewLock("a"))
	calls["Lock, fair"] = lock(c.NewLock("fair", relock.Fair()))
	calls["Lock, write"] = lock(rw)
	calls["Lock, multi"] = lock(relock.NewMulti(c.NewLock("a")))
	calls["RLock"] = lock(rw.RLocker())
	calls["Do"] = func(ctx context.Context, _ time.Duration) (bool, error) {
		err := c.NewLock("a").Do(ctx, func(context.Context) error { return nil })
		return err == nil, err
	}
	return calls
}

// The deadline of the context comes before the end of the wait. Fails when code cannot tell a lock that was taken until
// then from a Redis that was silent until then.
func TestDeadlineOfAContextTellsAnOutageFromATakenLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, name := range []string{"a", "named"} {
			x.Take(x.Client().NewLock(name))
		}
		x.Take(x.Client().NewLock("fair", relock.Fair()))
		x.Take(x.Client().NewRWLock("rw").WLocker())
		c, link := pooled(x)
		heal := func() {}
		for _, silent := range []bool{false, true} {
			if silent {
				heal = link.Hole()
			}
			for way, call := range everyWait(c) {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				got, err := call(ctx, time.Minute)
				cancel()
				if got || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, relock.ErrUnavailable) != silent {
					t.Errorf("%s, redis silent %v: %v, %v; is ErrUnavailable %v", way, silent, got, err, errors.Is(err, relock.ErrUnavailable))
				}
			}
		}
		heal()
	})
}

// A read waits until what this client has released of the lock is released. In an outage the context may end it then.
// Fails when the error is that of the context alone, as of a Redis that answers.
func TestAReadThatWaitsForAReleaseTellsAnOutage(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := pooled(x)
		l := c.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		heal := link.Hole()
		rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := l.Info(ctx)
		rig.WantIs(t, err, context.DeadlineExceeded)
		rig.WantIs(t, err, relock.ErrUnavailable)
		heal()
	})
}

// What is read is asked for three times, for 5 s each.
// Fails when a third question is not asked, or a fourth is.
func TestWhatIsReadIsAskedForThreeTimes(t *testing.T) {
	for what, read := range map[string]func(ctx context.Context, l *relock.Lock) error{
		"Info":         func(ctx context.Context, l *relock.Lock) error { return second(l.Info(ctx)) },
		"Waiters":      func(ctx context.Context, l *relock.Lock) error { return second(l.Waiters(ctx)) },
		"Cond.Waiters": func(ctx context.Context, l *relock.Lock) error { return second(l.NewCond("c").Waiters(ctx)) },
	} {
		for lost := 2; lost <= 3; lost++ {
			t.Run(fmt.Sprint(what, " ", lost), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					rig.LoadScripts(t, x.Redis)
					c, link := x.Linked()
					asked := 0
					link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
						if rig.Runs(cmd, "info", "waiters", "awaiting") {
							if asked++; asked <= lost {
								return redistest.Lose
							}
						}
						return redistest.Pass
					})
					err := read(t.Context(), c.NewLock("a"))
					synctest.Wait() // the link has seen the last question
					silent := time.Duration(lost) * 5 * time.Second
					if took := x.Now(); asked != 3 || took < silent || took > silent+time.Second {
						t.Errorf("asked %d times in %v, want three times in about %v", asked, took, silent)
					}
					if lost < 3 {
						rig.Must(t, err)
					} else {
						rig.WantIs(t, err, relock.ErrUnavailable)
					}
				})
			})
		}
	}
}
