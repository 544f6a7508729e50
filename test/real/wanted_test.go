package real_test

import (
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestHolderIsWantedWithinARoundTrip counts and does not time: a renewal would come after ten seconds, and the message
// needs no command of the holder. The log shows how long the message took from the waiter's request.
func TestHolderIsWantedWithinARoundTrip(t *testing.T) {
	srv := redistest.Real(t)
	holder, waiter := rig.RealActor(t, srv), rig.RealActor(t, srv)
	var took []time.Duration
	for range rig.Rounds(200, 2000) {
		h := rig.MustAcquire(t, holder.NewLock("l"))
		wanted := h.Wanted()
		before, began := len(holder.Link.Log()), time.Now()
		waits := rig.Beside(func() error {
			l := waiter.NewLock("l")
			if err := l.Lock(t.Context()); err != nil {
				return err
			}
			return l.Unlock()
		})
		<-wanted
		took = append(took, time.Since(began))
		for _, args := range holder.Link.Log()[before:] {
			if slices.Contains(args, key.For("relock", "l").Hash) { // and not the check of an inbox
				t.Fatalf("the holder sent a command before it was wanted: %q", args)
			}
		}
		rig.End(t, h)
		rig.Must(t, <-waits)
	}
	slices.Sort(took)
	t.Logf("wanted after %v in the median, %v at p99, %v at most", took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}

// TestHandOverOfALockThatIsWanted shows the gap between the old holder's work and the new one's, of holders that give
// way when they are wanted.
func TestHandOverOfALockThatIsWanted(t *testing.T) {
	srv := redistest.Real(t)
	var gaps []time.Duration
	var ended time.Time
	h := rig.MustAcquire(t, rig.RealActor(t, srv).NewLock("l"))
	for range rig.Rounds(20, 200) {
		next := rig.RealActor(t, srv).NewLock("l")
		got := make(chan error, 1)
		go func() {
			_, err := next.TryLock(t.Context(), time.Minute)
			got <- err
		}()
		<-h.Wanted()
		ended = time.Now()
		rig.End(t, h)
		rig.Must(t, <-got)
		gaps = append(gaps, time.Since(ended))
		rig.Must(t, next.Unlock())
		h = rig.MustAcquire(t, next)
	}
	rig.End(t, h)
	slices.Sort(gaps)
	t.Logf("handed over within %v in the median, %v at most", gaps[len(gaps)/2], gaps[len(gaps)-1])
}
