package contract_test

import (
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
