package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A candidate is one Run.
type candidate struct {
	*relock.Election
	terms chan relock.Term     // as it comes to lead
	ctxs  chan context.Context // of the same
	step  chan error           // what its lead is to return
	ended rig.Going
}

// campaign runs for an election, with a lead that returns when it is told to, or when
// its term ends.
func campaign(ctx context.Context, e *relock.Election) *candidate {
	c := &candidate{Election: e, terms: make(chan relock.Term, 10), ctxs: make(chan context.Context, 10), step: make(chan error)}
	c.ended = rig.Beside(func() error {
		return e.Run(ctx, func(ctx context.Context, term relock.Term) error {
			c.terms <- term
			c.ctxs <- ctx
			select {
			case err := <-c.step:
				return err
			case <-ctx.Done():
				return nil // as many do: the end of a term is no error
			}
		})
	})
	synctest.Wait()
	return c
}

// leads fails the test unless c leads now, and nobody else.
func (c *candidate) leads(t *testing.T, others ...*candidate) relock.Term {
	t.Helper()
	synctest.Wait()
	for _, other := range others {
		if other.IsLeader() {
			t.Error("another says that it leads")
		}
	}
	if !c.IsLeader() || len(c.terms) != 1 {
		t.Fatalf("IsLeader %v, %d terms, want that it leads its first", c.IsLeader(), len(c.terms))
	}
	return <-c.terms
}

func TestElectionHasOneLeaderUntilItGivesUp(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		_, err := x.Eye.NewElection("e").Leader(t.Context())
		rig.WantIs(t, err, relock.ErrNotHeld)
		a := campaign(t.Context(), x.Client().NewElection("e", relock.Owner("a")))
		b := campaign(t.Context(), x.Client().NewElection("e", relock.Owner("b")))
		first := a.leads(t, b)
		got, err := x.Eye.NewElection("e").Leader(t.Context())
		rig.Must(t, err)
		if info := x.Info(x.Eye.NewLock("e")); info.Kind != "fair" || info.Waiters != 1 {
			t.Errorf("redis has %+v, want a fair lock with one in line", info)
		}
		if got.Owner != "a" || got.Token != first.Token {
			t.Errorf("leader %+v, want a with token %d", got, first.Token)
		}
		if h, ok := relock.FromContext(<-a.ctxs, "e"); !ok || h.Token() != first.Token {
			t.Error("the context of a term does not know its hold")
		}
		a.step <- errWork
		rig.WantIs(t, rig.Returned(t, a.ended), errWork)
		second := b.leads(t, a)
		rig.WantLater(t, first.Token, second.Token)
		b.step <- nil
		rig.Must(t, rig.Returned(t, b.ended))
		x.Frees("other")
		x.Free(x.Eye.NewLock("e", relock.Fair()))
	})
}

// The leader is cut off, and gives up its term.
// Fails when Run returns what lead did, and drops that Redis has not confirmed the release.
func TestElectionSaysThatTheEndOfItsTermIsNotConfirmed(t *testing.T) {
	for _, work := range []error{nil, errWork} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := x.Linked(relock.ReleaseTimeout(time.Second))
			a := campaign(t.Context(), c.NewElection("e"))
			a.leads(t)
			link.Cut()
			a.step <- work
			err := <-a.ended
			rig.WantIs(t, err, relock.ErrUnconfirmed)
			if work != nil {
				rig.WantIs(t, err, work)
			}
		})
	}
}

// What lead returns after a loss is the end of the term, not of the Run.
func TestElectionIsRunAgainAfterALoss(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a := campaign(t.Context(), x.Client().NewElection("e"))
		first := a.leads(t)
		_, err := x.Eye.NewLock("e").ForceUnlock(t.Context())
		rig.Must(t, err)
		synctest.Wait()
		ctx := <-a.ctxs
		rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
		rig.WantLater(t, first.Token, a.leads(t).Token)
		a.step <- nil
		rig.Must(t, rig.Returned(t, a.ended))
	})
}

// A lead that does not look at its context is a leader no more when its trust ends, and
// another leads within what is left of its lease.
// Fails when IsLeader does not ask the clock.
func TestElectionHasOneLeaderThoughTheLastOneIsCutOff(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		far, stop := c.NewElection("e"), make(chan struct{})
		deaf := rig.Beside(func() error {
			return far.Run(t.Context(), func(context.Context, relock.Term) error { <-stop; return errWork })
		})
		synctest.Wait()
		b := campaign(t.Context(), x.Client().NewElection("e"))
		virtual.Sleep(7 * time.Second)
		heal := link.Hole()
		leader, err := x.Eye.NewElection("e").Leader(t.Context())
		rig.Must(t, err)
		x.Until(x.Now() + leader.TTL - time.Second) // less than the margin of 1 %
		if !far.IsLeader() || b.IsLeader() {
			t.Error("the lease runs, and the one that is cut off leads no more")
		}
		for end := time.Now().Add(time.Second + 250*time.Millisecond); !b.IsLeader(); virtual.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nobody leads 250 ms after the lease")
			}
		}
		if far.IsLeader() {
			t.Error("two lead")
		}
		heal()
		b.leads(t)
		close(stop)
		rig.StillWaits(t, deaf) // it was lost, so it campaigns again
		b.step <- nil
		rig.Must(t, <-b.ended)
		rig.WantIs(t, <-deaf, errWork) // by its second term
	})
}

// Fails when the clock is not asked: no timer notices that the machine has slept.
func TestElectionKnowsNoLeaderAfterAPause(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a := campaign(t.Context(), x.Client().NewElection("e"))
		a.leads(t)
		x.Suspend(30 * time.Second)
		leads := a.IsLeader()
		synctest.Wait()
		if leads && len(a.terms) == 0 { // the question itself ends the first term: a second may begin before the answer
			t.Error("a leader by a lease that has ended")
		}
		virtual.Sleep(31 * time.Second)
		if !a.IsLeader() {
			t.Error("does not lead again")
		}
		a.step <- nil
		rig.Must(t, <-a.ended)
	})
}

// Fails when a Run's handle is another's: a lost hold that is not given up occupies it.
func TestElectionIsRunBesideALeadThatHangs(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		e, stop := x.Client().NewElection("e"), make(chan struct{})
		hangs := rig.Beside(func() error {
			return e.Run(t.Context(), func(context.Context, relock.Term) error { <-stop; return nil })
		})
		synctest.Wait()
		b := campaign(t.Context(), e)
		_, err := x.Eye.NewLock("e").ForceUnlock(t.Context())
		rig.Must(t, err)
		b.leads(t)
		close(stop)
		rig.StillWaits(t, hangs)
		b.step <- errWork
		rig.WantIs(t, <-b.ended, errWork)
		rig.Must(t, <-hangs)
		if e.IsLeader() {
			t.Error("leads, though every Run has returned")
		}
	})
}

func TestElectionEndsWithItsContextAndWithAPanic(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ctx, cancel := context.WithCancel(t.Context())
		a := campaign(ctx, x.Client().NewElection("e"))
		b := campaign(ctx, x.Client().NewElection("e"))
		a.leads(t, b)
		cancel()
		rig.Must(t, <-a.ended) // as its lead has returned
		rig.WantIs(t, <-b.ended, context.Canceled)
		func() {
			defer func() {
				if p := recover(); p != "lead" {
					t.Errorf("recovered %v", p)
				}
			}()
			_ = a.Run(t.Context(), func(context.Context, relock.Term) error { panic("lead") })
		}()
		rig.Must(t, b.Run(t.Context(), func(ctx context.Context, _ relock.Term) error { return ctx.Err() }))
	})
}

func TestElectionWaitsForMissingReplicas(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client(relock.Defaults(relock.Replicas(1, 100*time.Millisecond))).NewElection("e")
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := x.Now()
		rig.WantIs(t, c.Run(short, nobody(t)), relock.ErrReplicas)
		if took := x.Now() - began; took != time.Minute {
			t.Errorf("campaigned for %v where replicas are missing, want as long as its context lasts", took)
		}
	})
}

// nobody is a lead that must not be called.
func nobody(t *testing.T) func(context.Context, relock.Term) error {
	return func(context.Context, relock.Term) error { t.Error("leads"); return nil }
}
