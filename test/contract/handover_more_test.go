package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// A ticket of a fixed lease, whose resumption is not answered at first: asked again, Redis
// has less left of the lease than it promises.
func TestAFixedLeaseIsResumedThoughTheReplyIsLost(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		a, b := x.Actor(), x.Actor()
		h := x.Take(a.NewLock("l", relock.NoWatchdog(), relock.TTL(10*time.Second)))
		b.Fate("resume", 1, redistest.SwallowReply)
		began := x.Now()
		again := resume(t, b.Client, detach(t, h, time.Minute))
		if again.Token() != h.Token() {
			t.Errorf("resumed with token %d, want %d", again.Token(), h.Token())
		}
		if x.Now() == began {
			t.Fatal("it was answered at once")
		}
		resumed := x.Now()
		x.Until(resumed + 9500*time.Millisecond) // the full lease
		rig.Must(t, again.Err())
		rig.End(t, again)
		x.Frees("l")
		rig.WantGone(t, a.Client, b.Client)
	})
}

// Fails when the made name that it keeps is taken for a given one.
func TestAnAnonymousHoldIsAnonymousOnceItIsResumed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		again := resume(t, c, detach(t, x.Take(x.Lock("l")), time.Minute))
		l := c.NewLock("l")
		err := l.Lock(again.Context(t.Context()))
		rig.WantIs(t, err, relock.ErrDeadlock)
		if !strings.Contains(err.Error(), "an anonymous owner") {
			t.Errorf("the error is %v, want it to name nobody", err)
		}
		rig.WantIs(t, l.Lock(relock.WithOwner(t.Context(), again.Owner())), relock.ErrInvalidOption)
		rig.End(t, again)
	})
}
