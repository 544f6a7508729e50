package schedules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestRenewalsOfManyAreTrustedFromTheirSending: as for one, trust is the time of
// sending + the lease − (1 % + 2 ms), though the answer takes a second. Fails when
// many locks that are renewed together are held to less.
func TestRenewalsOfManyAreTrustedFromTheirSending(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		const ttl = 30 * time.Second
		a := s.Actor()
		holds := takeMany(s, a, 20)
		s.Until(5 * time.Second)
		var sent time.Time
		a.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if sent.IsZero() && slices.Contains(cmd.Args, key.Hash("relock", "l0")) {
				sent = time.Now()
				a.Link.Latency(500 * time.Millisecond) // from now on: no dial takes it
			}
			return redistest.Pass
		})
		s.Until(12 * time.Second)
		a.Link.OnCommand(nil)
		a.Link.Latency(0)
		if sent.IsZero() {
			t.Fatal("nothing was renewed within 12 s of a lease of 30 s")
		}
		for _, h := range holds {
			most := sent.Add(ttl - ttl/100 - 2*time.Millisecond)
			if until := h.TrustedUntil(); until.After(most) || until.Before(most.Add(-time.Second)) {
				t.Errorf("%s is trusted until %v, want %v: the lease from the sending of its renewal, less the margin",
					h.Name(), until.Sub(s.Began), most.Sub(s.Began))
			}
		}
	})
}

// TestTrustNeverMovesBack: a renewal is answered when a later statement about the
// same hold has been. Fails when the older answer counts.
func TestTrustNeverMovesBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a", relock.Owner("me"))
		h := rig.MustAcquire(t, l)
		gate, held := make(chan struct{}), false
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if !held && rig.Runs(cmd, "hold") {
				held = true
				return redistest.Hold(gate)
			}
			return redistest.Pass
		})
		time.Sleep(10*time.Second + time.Millisecond) // a renewal is under way
		time.Sleep(time.Second)
		longer := c.NewLock("a", relock.Owner("me"), relock.TTL(time.Minute))
		rig.Must(t, longer.Lock(t.Context()))
		before := h.TrustedUntil()
		if left := time.Until(before); !held || left < 59*time.Second {
			t.Fatalf("renewal under way: %v; trusted for %v after a nested Lock with a longer lease, want all of that", held, left)
		}
		close(gate)
		time.Sleep(100 * time.Millisecond)
		if after := h.TrustedUntil(); after.Before(before) {
			t.Errorf("trust moved back by %v", before.Sub(after))
		}
		rig.Must(t, longer.Unlock())
		rig.Must(t, h.Release())
	})
}
