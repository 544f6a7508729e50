package schedules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// TestRenewalsOfManyAreTrustedFromTheirSending: as for one, trust is the time of
// sending + the lease − (1 % + 2 ms), though the answer takes a second. Fails when
// many locks that are renewed together are held to less.
func TestRenewalsOfManyAreTrustedFromTheirSending(t *testing.T) { trustedFromTheirSending(t, 20) }

// TestRenewalsAreTrustedFromTheirSending: so is a renewal that is a statement of its own.
func TestRenewalsAreTrustedFromTheirSending(t *testing.T) { trustedFromTheirSending(t, 1) }

func trustedFromTheirSending(t *testing.T, locks int) {
	t.Helper()
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		const ttl = 30 * time.Second
		a := s.Actor()
		holds := takeMany(s, a, locks)
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
		virtual.Sleep(10*time.Second + time.Millisecond) // a renewal is under way
		virtual.Sleep(time.Second)
		longer := c.NewLock("a", relock.Owner("me"), relock.TTL(time.Minute))
		long := rig.MustAcquire(t, longer)
		before, longest := h.TrustedUntil(), long.TrustedUntil()
		if left := time.Until(before); !held || left < 29*time.Second || left > 30*time.Second {
			t.Fatalf("renewal under way: %v; trusted for %v after a nested Lock with a longer lease, want all of its own", held, left)
		}
		close(gate)
		virtual.Sleep(100 * time.Millisecond)
		if after := h.TrustedUntil(); after.Before(before) {
			t.Errorf("trust moved back by %v", before.Sub(after))
		}
		if after := long.TrustedUntil(); after.Before(longest) {
			t.Errorf("trust in the longer lease moved back by %v", longest.Sub(after))
		}
		rig.Must(t, long.Release())
		rig.Must(t, h.Release())
	})
}

// Others hold as well, so that each statement is answered with what is left of the lease: also
// one that leaves it as it is, as an unlock of a nested hold does.
// Fails when such an answer puts the renewal off, until it comes too late.
func TestNestedUnlocksPutNoRenewalOff(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		a := s.Actor()
		s.Take(s.Actor().NewRWLock("l").RLocker())
		l := a.NewRWLock("l", relock.Owner("me")).RLocker()
		outer := s.Take(l)
		for _, at := range []time.Duration{5 * time.Second, 13 * time.Second, 21 * time.Second} {
			nested := s.Take(l)
			s.Until(at)
			rig.End(t, nested)
		}
		s.Until(time.Minute)
		rig.End(t, outer)
	})
}

// The server does not hear of the waiter for 20 s, and grants it the lock meanwhile; or it
// does, and its answers are lost. What the call returns with at last has little left.
// Fails when it is not renewed, and lost on a server that has answered everything since.
func TestGrantThatIsToldLateIsRenewed(t *testing.T) {
	t.Run("message", func(t *testing.T) {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			b, looked := s.Actor(), make(chan struct{})
			b.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict { return renewalsWait(cmd, looked) })
			held := s.Take(s.Actor().NewLock("l"))
			s.Until(100 * time.Millisecond)
			waiter := s.Begin(b.NewLock("l"))
			s.Until(time.Second)
			heal := b.Link.Hole()
			s.Until(2 * time.Second)
			rig.End(t, held)
			s.Until(21 * time.Second)
			heal()
			keeps(t, s, waiter.Returns(), looked)
		})
	})
	t.Run("answer", func(t *testing.T) {
		rig.Play(t, func(t *testing.T, s *rig.Lab) {
			a, looked := s.Actor(), make(chan struct{})
			a.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if rig.ScriptSent(cmd.Args) == "acquire" && s.Now() < 21*time.Second {
					return redistest.SwallowReply
				}
				return renewalsWait(cmd, looked)
			})
			keeps(t, s, s.Begin(a.NewLock("l")).Returns(), looked)
		})
	})
}

// renewalsWait holds renewals back until the lease has been looked at: the first follows a
// late grant at once.
func renewalsWait(cmd redistest.Command, looked <-chan struct{}) redistest.Verdict {
	if rig.ScriptSent(cmd.Args) == "hold" {
		return redistest.Hold(looked)
	}
	return redistest.Pass
}

// keeps fails the test unless a hold is there a minute later that had little of its lease left.
func keeps(t *testing.T, s *rig.Lab, h *relock.Hold, looked chan struct{}) {
	t.Helper()
	if left := time.Until(h.TrustedUntil()); left > 10*time.Second {
		t.Errorf("%v of the lease are left: this shows nothing", left)
	}
	close(looked)
	s.Until(time.Minute)
	rig.End(t, h)
}
