package contract_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Fails when the lock goes to calls of the run that have had it, which nobody ends: their
// client does not hear.
func TestForceUnlockInARunGivesTheLockToTheNextProcess(t *testing.T) {
	for name, cut := range map[string]func(a *rig.Actor){
		"nothing arrives":     func(a *rig.Actor) { a.Link.Hole() },
		"no message arrives":  func(a *rig.Actor) { a.Link.HoleSubscribers() },
		"everything arrives":  func(*rig.Actor) {},
		"its process is dead": func(a *rig.Actor) { a.Link.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				q := wait(x, "aaaaab")
				rig.Must(t, q.first.Release())
				for range 4 {
					rig.Must(t, q.next().Release())
				}
				q.next() // the fifth, by the grant of the first
				cut(q.a)
				_, err := x.Eye.NewLock("l", relock.Fair()).ForceUnlock(t.Context())
				rig.Must(t, err)
				x.Until(x.Now() + 50*time.Millisecond)
				rig.End(t, q.calls[5].Holds())
			})
		})
	}
}

// The terms of two candidates of one process follow each other. Fails when the second leads
// by the grant of the first: whoever watches takes them for one term.
func TestTermsOfOneProcessAreToldApart(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		eye := x.Eye.NewElection("e")
		told, _ := observe(ctx, eye)
		far := campaign(t.Context(), x.Client().NewElection("e"))
		a := x.Actor()
		near := []*candidate{campaign(t.Context(), a.NewElection("e")), campaign(t.Context(), a.NewElection("e"))}
		far.leads(t)
		virtual.Sleep(time.Second) // else there is but one token
		far.step <- nil
		rig.Must(t, <-far.ended)
		for _, c := range near {
			virtual.Sleep(20*time.Second + 333*time.Millisecond)
			term := c.leads(t)
			for len(told) > 1 {
				<-told
			}
			leader, err := eye.Leader(t.Context())
			rig.Must(t, err)
			if len(told) == 0 {
				t.Fatal("the term is not told")
			}
			if seen := <-told; leader.Token != term.Token || seen.Holder.Token != term.Token {
				t.Errorf("token %d leads, %d and %d are told", term.Token, leader.Token, seen.Holder.Token)
			}
			c.step <- nil
			rig.Must(t, <-c.ended)
		}
	})
}

// A call waits on a condition by a hold that is unlocked meanwhile, and its session is the next
// call's. Fails when that one's hold is given up: it works under the lock, and so does a third.
func TestAWaitGivesUpNoOtherCallsHold(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}} {
		t.Run(name, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) {
				soon := func() { x.Until(x.Now() + time.Millisecond) }
				a, first := x.Actor(), x.Take(x.Lock("l", opts...))
				l := a.NewLock("l", opts...)
				waits := x.Begin(l)
				soon()
				second := x.Begin(a.NewLock("l", opts...))
				soon()
				rig.Must(t, first.Release())
				soon()
				h := waits.Holds()
				gate := make(chan struct{})
				a.Fate("signal", 1, redistest.Hold(gate))
				rig.Beside(func() error { return l.NewCond("c").Signal(t.Context()) })
				soon()
				wait := rig.Beside(func() error {
					_, err := l.NewCond("c").WaitFor(t.Context(), time.Minute)
					return err
				})
				soon()
				rig.Must(t, h.Release())
				soon()
				next := second.Holds()
				close(gate)
				soon()
				rig.Must(t, next.Err())
				rig.WantIs(t, <-wait, relock.ErrNotHeld)
				rig.Must(t, next.Release())
			})
		})
	}
}
