package contract_test

import (
	"testing"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/redisson"
)

// Fails when the lock is taken for a function that is nil: its call would panic while the lock is held.
func TestDoOfNoFunctionIsRefusedAndLeavesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		l := c.NewLock("l")
		rig.WantIs(t, l.Do(t.Context(), nil), relock.ErrInvalidOption)
		ran, err := l.TryDo(t.Context(), 0, nil)
		rig.WantIs(t, err, relock.ErrInvalidOption)
		if ran {
			t.Error("a function that is nil ran")
		}
		m := relock.NewMulti(l, c.NewLock("m"))
		rig.WantIs(t, m.Do(t.Context(), nil), relock.ErrInvalidOption)
		_, err = m.TryDo(t.Context(), 0, nil)
		rig.WantIs(t, err, relock.ErrInvalidOption)
		q, err := relock.NewQuorum(x.Client(), x.Client())
		rig.Must(t, err)
		rig.WantIs(t, q.NewLock("q").Do(t.Context(), nil), relock.ErrInvalidOption)
		r, err := redisson.New(x.Server.Client(t))
		rig.Must(t, err)
		defer func() { rig.Must(t, r.Close()) }()
		rig.WantIs(t, r.NewLock("r").Do(t.Context(), nil), relock.ErrInvalidOption)
		x.Free(l)
	})
}
