package contract_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// causes are errors that mean something to relock where Redis or go-redis says them, as a
// group of goroutines has them for the cause of its context.
var causes = map[string]error{
	"another's":       errors.New("no"),
	"an answer":       redis.Nil,
	"one, wrapped":    fmt.Errorf("job 7: %w", redis.Nil),
	"a dial":          &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")},
	"a closed client": redis.ErrClosed,
	"a full pool":     redis.ErrPoolTimeout,
	"sentinels":       errors.New("redis: all sentinels specified in configuration are unreachable"),
}

// The request is under way as the context ends, and Redis grants it then.
// Fails when the cause is taken for what has happened to the request: nobody releases it.
func TestGrantOfACallThatWasCutShortIsGivenBackWhateverTheCause(t *testing.T) {
	for name, cause := range causes {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				rig.Must(t, c.NewLock("other").Do(t.Context(), func(context.Context) error { return nil }))
				gate := make(chan struct{})
				link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					if rig.Runs(cmd, "acquire") {
						return redistest.Hold(gate)
					}
					return redistest.Pass
				})
				ctx, cancel := context.WithCancelCause(t.Context())
				call := rig.Beside(func() error { return c.NewLock("a").Lock(ctx) })
				synctest.Wait()
				cancel(cause)
				err := rig.Returned(t, call)
				rig.WantIs(t, err, context.Canceled)
				rig.WantIs(t, err, cause)
				close(gate)
				virtual.Sleep(time.Second)
				x.Frees("a")
			})
		})
	}
}

// Fails when Redis' silence is taken for an answer: nobody would go on telling it.
func TestDowngradeThatIsCutShortSaysSoWhateverTheCause(t *testing.T) {
	for name, cause := range map[string]error{"an answer": redis.Nil, "missing replicas": relock.ErrReplicas, "a hold that has gone": relock.ErrNotHeld} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				rw := c.NewRWLock("a")
				h, err := rw.WLocker().Acquire(t.Context())
				rig.Must(t, err)
				heal := link.Hole()
				ctx, cancel := context.WithCancelCause(t.Context())
				call := rig.Beside(func() error { return rw.Downgrade(ctx) })
				synctest.Wait()
				cancel(cause)
				err = rig.Returned(t, call)
				rig.WantIs(t, err, relock.ErrUnconfirmed)
				heal()
				virtual.Sleep(5 * time.Second)
				rig.Must(t, h.Err())
				other := x.Client().NewRWLock("a").RLocker() // it is told on
				rig.Must(t, other.Lock(t.Context()))
				rig.Must(t, other.Unlock())
				rig.Must(t, rw.RUnlock())
			})
		})
	}
}

// A group of goroutines ends with the error of one that found its lock taken.
// Fails when the others say so of theirs, which Redis was not asked about.
func TestCallUnderAContextThatATakenLockHasEndedIsNotTaken(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.Must(t, x.Lock("taken").Lock(t.Context()))
		c := x.Client()
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := c.NewLock("taken").TryAcquire(ctx, 0)
		cancel(err)
		q := newPrimaries(x, 3).lock("free")
		never := func(context.Context) error { t.Error("fn runs"); return nil }
		for what, call := range map[string]func() (bool, error){
			"TryLock":             func() (bool, error) { return c.NewLock("free").TryLock(ctx, time.Second) },
			"TryLock of 0":        func() (bool, error) { return c.NewLock("free").TryLock(ctx, 0) },
			"TryDo":               func() (bool, error) { return c.NewLock("free").TryDo(ctx, time.Second, never) },
			"Once":                func() (bool, error) { return c.Once(ctx, "free", time.Hour, never) },
			"TryLock of a Multi":  func() (bool, error) { return relock.NewMulti(c.NewLock("free"), c.NewLock("b")).TryLock(ctx, 0) },
			"TryLock of majority": func() (bool, error) { return q.TryLock(ctx, time.Second) },
		} {
			if got, err := call(); got || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, %v; want the end of the context", what, got, err)
			}
		}
	})
}

// Fails when the advice is to lock both under one owner, which is refused as well.
func TestAnotherKindUnderAHoldsContextIsToldAsThat(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		rig.Must(t, c.NewLock("a").Do(t.Context(), func(ctx context.Context) error {
			rig.WantIs(t, c.NewLock("a", relock.Fair()).Lock(ctx), relock.ErrKind)
			rig.WantIs(t, c.NewRWLock("a").Lock(ctx), relock.ErrKind)
			rig.WantIs(t, c.NewSemaphore("a", 2).Lock(ctx), relock.ErrKind)
			return nil
		}))
	})
}
