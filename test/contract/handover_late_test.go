package contract_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// The first request is late, and the second one is answered. Fails when detach.lua does not keep the nonce of a request
// that may still arrive.
func TestALateCopyOfAnAcquireGetsNothingOfATicket(t *testing.T) {
	for kind, lock := range handedOver {
		t.Run(kind, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				a, b, arrive := x.Actor(), x.Actor(), make(chan struct{})
				a.Fate("acquire", 1, redistest.Hold(arrive))
				h := x.Begin(lock(a.Client)).Returns()
				ticket := detach(t, h, time.Minute)
				close(arrive)
				rig.Must(t, a.Link.Settle(t.Context()))
				if n := x.HoldsOf(x.Lock("l")); n != 1 {
					t.Errorf("%d holds after the late copy, want that of the ticket", n)
				}
				again := resume(t, b.Client, ticket)
				rig.End(t, again)
				x.Free(x.Lock("l"))
			})
		})
	}
}

// Something on the way copies a request that was answered. Another holder keeps the name in use.
// Fails when the copy is counted with what the ticket has: nothing takes it off again, and a semaphore is short of its
// permits for as long as anybody holds.
func TestACopyOfAnAnsweredAcquireIsNoPartOfWhatATicketHas(t *testing.T) {
	for _, kind := range []string{"reading", "semaphore"} {
		t.Run(kind, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				one := map[string]func(c *relock.Client) *relock.Lock{
					"reading":   func(c *relock.Client) *relock.Lock { return c.NewRWLock("l").RLocker() },
					"semaphore": func(c *relock.Client) *relock.Lock { return c.NewSemaphore("l", 3) },
				}[kind]
				a, b, late := x.Actor(), x.Actor(), make(chan struct{})
				a.Fate("acquire", 1, redistest.Duplicate(late))
				ticket := detach(t, x.Take(one(a.Client)), time.Minute)
				other := x.Take(one(x.Client()))
				close(late)
				rig.Must(t, a.Link.Settle(t.Context()))
				again := resume(t, b.Client, ticket)
				if n := x.HoldsOf(x.Lock("l")); n != 2 {
					t.Errorf("%d holds after the late copy, want those of the ticket and of the other", n)
				}
				rig.End(t, again)
				x.Until(x.Now() + 2*time.Minute) // longer than the lease of the copy
				if info := x.Info(x.Lock("l")); len(info.Holders) != 1 || kind == "semaphore" && info.Permits != 1 {
					t.Errorf("redis has %+v, want the other holder alone", info)
				}
				if kind == "semaphore" {
					rest := x.Client().NewSemaphore("l", 3, relock.Weight(2))
					if got, err := rest.TryLock(t.Context(), 0); !got || err != nil {
						t.Fatalf("TryLock for the other permits: %v, %v", got, err)
					}
					rig.Must(t, rest.Unlock())
				}
				rig.End(t, other)
				rig.WantBare(t, x.Redis, "l")
			})
		})
	}
}

// The context of a Detach ends as its answer is on the way: the client releases the session, and then the ticket.
func TestAnAttemptFindsFreeWhatADetachThatFailedHasLeft(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		link.Latency(50 * time.Millisecond)
		for i := range 16 { // whether the release or the attempt begins first is chance
			l := c.NewLock(fmt.Sprint("l", i))
			h := rig.MustAcquire(t, l)
			ctx, cancel := context.WithTimeout(t.Context(), 75*time.Millisecond)
			_, err := h.Detach(ctx, time.Hour)
			cancel()
			rig.WantIs(t, err, relock.ErrUnconfirmed)
			if got, err := l.TryLock(t.Context(), 0); !got || err != nil {
				t.Fatalf("TryLock = %v, %v, want true, nil", got, err)
			}
			rig.Must(t, l.Unlock())
		}
	})
}

// Fails when the holder cannot tell that its hold has ended.
func TestADetachThatIsRefusedByRedisReleases(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		h := x.Take(x.Lock("l"))
		refuseNext(x, "detach")
		_, err := h.Detach(t.Context(), time.Hour)
		rig.WantIs(t, err, relock.ErrUnconfirmed)
		wantSays(t, "Detach", err, "NOPERM")
		rig.WantIs(t, h.Err(), relock.ErrNotHeld)
		x.Until(x.Now() + time.Second)
		x.Frees("l")
	})
}
