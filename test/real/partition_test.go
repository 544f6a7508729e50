package real_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// breaks are the ways in which a link fails.
var breaks = map[string]func(*redistest.Link) (heal func()){
	"cut":  (*redistest.Link).Cut,
	"hole": (*redistest.Link).Hole,
}

// TestPartitionedHolderKnowsBeforeAnybodyElseHolds breaks the holder's link at
// each phase of its renewals, and records both instants on one clock.
func TestPartitionedHolderKnowsBeforeAnybodyElseHolds(t *testing.T) {
	for how, breakIt := range breaks {
		for phase := time.Duration(0); phase < 22*time.Second; phase += 997 * time.Millisecond {
			t.Run(fmt.Sprint(how, " after ", phase), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, s *rig.Lab) {
					c, link := s.Linked()
					link.Latency(400 * time.Millisecond) // more than the margin: trust counts from the sending
					h := rig.MustAcquire(t, c.NewLock("job"))
					var lostAt, gotAt time.Time
					aware := rig.Beside(func() error { <-h.Lost(); lostAt = time.Now(); return h.Err() })
					next := s.Eye.NewLock("job")
					got := rig.Beside(func() error { err := next.Lock(t.Context()); gotAt = time.Now(); return err })
					virtual.Sleep(phase)
					breakIt(link)
					rig.Must(t, <-got)
					synctest.Wait()
					if err := <-aware; !errors.Is(err, relock.ErrLost) || !lostAt.Before(gotAt) {
						t.Errorf("lost at %v, %v; somebody else held at %v", lostAt, err, gotAt)
					}
					// Renewals that Redis has carried out and whose replies the break took
					// lengthen the lease and not the trust: two thirds of the TTL at most.
					if early := gotAt.Sub(lostAt); early > 20*time.Second {
						t.Errorf("lost %v before anybody else held: trust ended early", early)
					}
					rig.Must(t, next.Unlock())
				})
			})
		}
	}
}

// TestPartitionedHolderKnowsOnARealServer asks at the instant at which another
// client holds: when the timer of the loss runs is the machine's affair.
func TestPartitionedHolderKnowsOnARealServer(t *testing.T) {
	srv := redistest.Real(t)
	var running sync.WaitGroup
	for i := range rig.Rounds(8, 200) {
		link := redistest.NewLink(t, srv.Dial)
		c := rig.Open(t, srv.Client(t, func(o *redis.Options) {
			// Close waits so long for a call into the hole.
			o.Dialer, o.DialTimeout, o.ReadTimeout = link.Dial, 300*time.Millisecond, 300*time.Millisecond
		}))
		name := fmt.Sprint("job ", i)
		h := rig.MustAcquire(t, c.NewLock(name, relock.TTL(600*time.Millisecond)))
		next := rig.Open(t, srv.Client(t)).NewLock(name)
		phase := time.NewTimer(time.Duration(i%20) * 20 * time.Millisecond)
		running.Go(func() {
			<-phase.C
			breaks[[]string{"cut", "hole"}[i%2]](link)
			if err := next.Lock(t.Context()); err != nil {
				t.Error(err)
			}
			if err := h.Err(); !errors.Is(err, relock.ErrLost) {
				t.Errorf("somebody else holds, and the holder behind the link says %v", err)
			}
		})
	}
	running.Wait()
}

// TestHealedLinkCostsNoWaiterItsPlace breaks all links of a queue for less than
// a lease, and lets it move on.
func TestHealedLinkCostsNoWaiterItsPlace(t *testing.T) {
	for how, breakIt := range breaks {
		for phase := time.Duration(0); phase < 10*time.Second; phase += 1777 * time.Millisecond {
			t.Run(fmt.Sprint(how, " after ", phase), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, s *rig.Lab) { breakQueue(t, s, phase, breakIt) })
			})
		}
	}
}

func breakQueue(t *testing.T, s *rig.Lab, phase time.Duration, breakIt func(*redistest.Link) func()) {
	const waiters = 5
	h := rig.MustAcquire(t, s.Eye.NewLock("job"))
	order := make(chan int, waiters)
	var running sync.WaitGroup
	var links []*redistest.Link
	for i := range waiters {
		c, link := s.Linked()
		links = append(links, link)
		l := c.NewLock("job")
		running.Go(func() {
			err := l.Lock(t.Context())
			order <- i
			if err := errors.Join(err, l.Unlock()); err != nil {
				t.Error(err)
			}
		})
		virtual.Sleep(101 * time.Millisecond)
	}
	virtual.Sleep(phase)
	var heals []func()
	for _, link := range links {
		heals = append(heals, breakIt(link))
	}
	virtual.Sleep(13 * time.Second)
	for i := range heals {
		heals[len(heals)-1-i]() // the last in the queue comes back first
		virtual.Sleep(11 * time.Millisecond)
	}
	virtual.Sleep(5 * time.Second)
	rig.WantState(t, s.Eye.NewLock("job"), "after the fault", h.Owner()+" x1 waiting 5")
	rig.Must(t, h.Release())
	for want := range waiters {
		if got := <-order; got != want {
			t.Errorf("waiter %d came where waiter %d stood", got, want)
		}
	}
	running.Wait()
}

// TestHalfOpenInboxIsNoticed makes a waiter's inbox deaf, which Redis does not
// see, and grants the lock to it at that time.
func TestHalfOpenInboxIsNoticed(t *testing.T) {
	const ttl = 30 * time.Second
	for phase := time.Duration(0); phase < ttl/3; phase += 1333 * time.Millisecond {
		t.Run(fmt.Sprint("after ", phase), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, s *rig.Lab) {
				c, link := s.Linked()
				h := rig.MustAcquire(t, s.Eye.NewLock("job"))
				l := c.NewLock("job")
				got := rig.Beside(func() error { return l.Lock(t.Context()) })
				other := c.NewLock("other")
				rig.Must(t, s.Eye.NewLock("other").Lock(t.Context()))
				ctx, cancel := context.WithCancel(t.Context())
				waits := rig.Beside(func() error { return other.Lock(ctx) }) // keeps heartbeats going
				virtual.Sleep(ttl + phase)
				subscribed := link.Commands()["subscribe"]
				link.HoleSubscribers()
				virtual.Sleep(7 * time.Millisecond)
				released := time.Now()
				rig.Must(t, h.Release())
				rig.Must(t, <-got)
				if late := time.Since(released); late > ttl/3+time.Second {
					t.Errorf("the grant came to light after %v, want at most a heartbeat", late)
				}
				virtual.Sleep(ttl - time.Since(released))
				if link.Commands()["subscribe"] == subscribed {
					t.Error("not subscribed again within three heartbeats")
				}
				rig.Must(t, l.Unlock())
				cancel()
				if err := <-waits; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		})
	}
}

// TestWaiterAsksAtOnceWhenItsLinkIsBack releases the lock while nobody can be
// told, which the waiter is to learn before its next heartbeat.
func TestWaiterAsksAtOnceWhenItsLinkIsBack(t *testing.T) {
	for how, breakIt := range map[string]func(s *rig.Lab, link *redistest.Link){
		"cut": func(_ *rig.Lab, link *redistest.Link) {
			heal := link.Cut()
			time.AfterFunc(500*time.Millisecond, heal)
		},
		"inbox killed": func(s *rig.Lab, _ *redistest.Link) { s.Server.KillSubscribers() },
	} {
		t.Run(how, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, s *rig.Lab) {
				h := rig.MustAcquire(t, s.Eye.NewLock("job"))
				c, link := s.Linked(relock.Defaults(relock.TTL(5 * time.Minute)))
				l := c.NewLock("job")
				got := rig.Beside(func() error { return l.Lock(t.Context()) })
				virtual.Sleep(11 * time.Second)
				breakIt(s, link)
				rig.Must(t, h.Release())
				broken := time.Now()
				rig.Must(t, <-got)
				if late := time.Since(broken); late > 10*time.Second {
					t.Errorf("the free lock was noticed %v after the link had broken", late)
				}
				rig.Must(t, l.Unlock())
			})
		})
	}
}
