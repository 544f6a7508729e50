package contract_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// from fails the test unless FromContext returns want; nil: none.
func from(t *testing.T, ctx context.Context, name string, want *relock.Hold) { //nolint:revive // t first, as everywhere
	t.Helper()
	got, ok := relock.FromContext(ctx, name)
	if ok != (want != nil) || got != want {
		t.Errorf("FromContext of %q: token %d, %v, want %d", name, got.Token(), ok, want.Token())
	}
}

func TestContextKnowsTheHoldsItDescendsFrom(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		a, b := c.NewLock("a"), c.NewRWLock("b").RLocker()
		ha, hb := rig.MustAcquire(t, a), rig.MustAcquire(t, b)
		ctx := ha.Context(t.Context())
		from(t, ctx, "a", ha)
		from(t, ctx, "b", nil)
		timed, cancel := context.WithTimeout(hb.Context(ctx), time.Second)
		defer cancel()
		from(t, timed, "a", ha)
		from(t, context.WithoutCancel(timed), "b", hb)
		from(t, t.Context(), "a", nil)
		from(t, nil, "a", nil)
		rig.Must(t, ha.Release())
		from(t, ctx, "a", ha) // its Err says that it has ended
		rig.End(t, hb)
		rig.Must(t, relock.NewMulti(a, b).Do(t.Context(), func(ctx context.Context) error {
			for _, name := range []string{"a", "b"} {
				if h, ok := relock.FromContext(ctx, name); !ok || h.Err() != nil {
					t.Errorf("%s under a Multi: token %d, %v", name, h.Token(), ok)
				}
			}
			return nil
		}))
	})
}

// A nested hold is of its own step, and of two clients' locks of one name the inner is meant.
func TestContextKnowsTheInnermostHoldOfAName(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		outer := rig.MustAcquire(t, x.Client(relock.KeyPrefix("outer")).NewLock("a"))
		inner := rig.MustAcquire(t, x.Lock("a"))
		from(t, inner.Context(outer.Context(t.Context())), "a", inner)
		rig.End(t, inner)
		rig.End(t, outer)
	})
}

// A hold that FromContext does not return lies between.
// Fails when the search ends there.
func TestContextKnowsTheHoldsOutsideOneOfAQuorum(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := rig.MustAcquire(t, x.Lock("a"))
		rig.Must(t, newPrimaries(x, 2).lock("q").Do(h.Context(t.Context()), func(ctx context.Context) error {
			from(t, ctx, "a", h)
			from(t, ctx, "q", nil)
			return nil
		}))
		rig.End(t, h)
	})
}
