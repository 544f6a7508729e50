package contract_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// An observation is what Observe has told.
type observation struct {
	relock.Holder
	err error
}

// observe has the changes of an election told on the channel.
func observe(ctx context.Context, e *relock.Election) (told chan observation, ended rig.Going) {
	told = make(chan observation, 100)
	return told, rig.Beside(func() error {
		for h, err := range e.Observe(ctx) {
			told <- observation{h, err}
		}
		return nil
	})
}

// change returns the one change that is told in some time.
func change(t *testing.T, told chan observation) observation {
	t.Helper()
	virtual.Sleep(20*time.Second + 333*time.Millisecond) // no instant at which it asks
	if len(told) != 1 {
		t.Fatalf("%d changes told, want one", len(told))
	}
	got := <-told
	if got.err != nil && got.Holder != (relock.Holder{}) {
		t.Errorf("told the holder %+v with the error %v, want none", got.Holder, got.err)
	}
	return got
}

func TestElectionIsObserved(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ctx, cancel := context.WithCancel(t.Context())
		c, link := x.Linked()
		told, ended := observe(ctx, c.NewElection("e"))
		rig.WantIs(t, change(t, told).err, relock.ErrNotHeld)
		var last *candidate
		var term relock.Term
		for range 2 {
			if last != nil {
				last.step <- nil
				rig.Must(t, <-last.ended)
			}
			last = campaign(t.Context(), x.Client().NewElection("e"))
			term = last.leads(t)
			if got := change(t, told); got.err != nil || got.Token != term.Token {
				t.Errorf("told %+v, want the leader's term %d", got, term.Token)
			}
		}
		heal := link.Cut()
		if got := change(t, told); got.err == nil || errors.Is(got.err, relock.ErrNotHeld) {
			t.Errorf("told %v where redis cannot be reached", got.err)
		}
		heal()
		if got := change(t, told); got.err != nil || got.Token != term.Token {
			t.Errorf("told %+v, want the leader once more", got)
		}
		cancel()
		rig.Must(t, <-ended)
		rig.WantIs(t, (<-told).err, context.Canceled)
		for _, err := range x.Eye.NewElection("e").Observe(t.Context()) {
			rig.Must(t, err)
			break
		}
		last.step <- nil
		rig.Must(t, <-last.ended)
	})
}

// An after calls what it has when a command has been answered.
type after struct {
	passing
	atomic.Pointer[func()]
}

func (a *after) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if f := a.Load(); f != nil {
			(*f)()
		}
		return err
	}
}

// The context ends as Redis answers.
// Fails when the last that is told is not the context's error.
func TestAnElectionWhoseObserverEndsWithAnAnswerTellsTheEnd(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ctx, cancel := context.WithCancel(t.Context())
		rdb, end := x.Server.Client(t), &after{}
		rdb.AddHook(end)
		told, ended := observe(ctx, rig.Open(t, rdb).NewElection("e"))
		rig.WantIs(t, change(t, told).err, relock.ErrNotHeld)
		f := func() { cancel() }
		end.Store(&f)
		rig.Must(t, <-ended)
		rig.WantIs(t, (<-told).err, context.Canceled)
	})
}

// Fails when a new leader is seen later than the documentation says, or Redis is asked more often.
func TestElectionIsObservedAsOftenAsItsTTLAllows(t *testing.T) {
	for ttl, every := range map[time.Duration]time.Duration{
		30 * time.Second:        time.Second,
		1500 * time.Millisecond: 500 * time.Millisecond,
	} {
		t.Run(ttl.String(), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				rig.LoadScripts(t, x.Redis)
				c, link := x.Linked()
				asked := rig.Count(link, "info")
				ctx, cancel := context.WithCancel(t.Context())
				told, ended := observe(ctx, c.NewElection("e", relock.TTL(ttl)))
				rig.WantIs(t, change(t, told).err, relock.ErrNotHeld)
				synctest.Wait()
				if want := 1 + int(x.Now()/every); *asked != want {
					t.Errorf("asked %d times in %v, want %d", *asked, x.Now(), want)
				}
				cancel()
				rig.Must(t, <-ended)
			})
		})
	}
}

// A client that shuts down is open for as long as it has holds, and its observers go on.
// Fails when an observation ends as Shutdown begins, or outlives the client.
func TestElectionIsObservedUntilItsClientHasEnded(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		drained, closed := x.Client(), x.Client()
		h := rig.MustAcquire(t, drained.NewLock("a"))
		told, ended := observe(t.Context(), drained.NewElection("e"))
		rig.WantIs(t, change(t, told).err, relock.ErrNotHeld)
		shutdown := rig.Beside(func() error { return drained.Shutdown(t.Context()) })
		rig.StillWaits(t, shutdown)
		leader := campaign(t.Context(), x.Client().NewElection("e"))
		if got, term := change(t, told), leader.leads(t); got.err != nil || got.Token != term.Token {
			t.Errorf("told %+v as the client shuts down, want the leader's term %d", got, term.Token)
		}
		leader.step <- nil
		rig.Must(t, <-leader.ended)
		rig.WantIs(t, change(t, told).err, relock.ErrNotHeld)
		rig.Must(t, h.Release())
		rig.Must(t, rig.Returned(t, shutdown))
		rig.WantIs(t, change(t, told).err, relock.ErrClosed)
		rig.Must(t, <-ended)

		rig.Must(t, closed.NewLock("b").Lock(t.Context()))
		told, ended = observe(t.Context(), closed.NewElection("e"))
		rig.WantIs(t, change(t, told).err, relock.ErrNotHeld)
		rig.Must(t, closed.Close())
		rig.WantIs(t, change(t, told).err, relock.ErrClosed)
		rig.Must(t, <-ended)
	})
}

func TestElectionLeavesNothingOfItsTerms(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		e := x.Client().NewElection("e")
		var hold weak.Pointer[relock.Hold]
		rig.Must(t, e.Run(t.Context(), func(ctx context.Context, _ relock.Term) error {
			h, _ := relock.FromContext(ctx, "e")
			hold = weak.Make(h)
			return nil
		}))
		for range 3 {
			virtual.Sleep(time.Minute)
			runtime.GC()
		}
		if hold.Value() != nil {
			t.Error("an Election keeps the hold of a term that is over")
		}
		runtime.KeepAlive(e)
	})
}

// Replicas are missing, and the candidate pauses between two attempts.
func TestElectionThatEndsInAPauseSaysWhy(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		missing := relock.Defaults(relock.Replicas(1, 100*time.Millisecond))
		e := x.Client(missing).NewElection("e")
		closed := x.Client(missing)
		for i := range 10 { // what ends within an attempt says so anyway
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second+time.Duration(i)*37*time.Millisecond, cancel)
			err := e.Run(ctx, nobody(t))
			if !errors.Is(err, context.Canceled) || strings.Count(err.Error(), "relock:") != 1 {
				t.Errorf("Run = %v, want the end of its context, and the lock once", err)
			}
		}
		run := rig.Beside(func() error { return closed.NewElection("f").Run(t.Context(), nobody(t)) })
		virtual.Sleep(10*time.Second + 50*time.Millisecond)
		rig.Must(t, closed.Close())
		rig.WantIs(t, rig.Returned(t, run), relock.ErrClosed)
	})
}

func TestElectionThatCannotBeIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var none *relock.Client
		for what, e := range map[string]*relock.Election{
			"a zero value": {}, "nil": nil, "of no client": none.NewElection("e"),
			"a bad option": x.Eye.NewElection("e", relock.TTL(-1)), "a nil option": x.Eye.NewElection("e", nil),
		} {
			_, leader := e.Leader(t.Context())
			errs := map[string]error{"Run": e.Run(t.Context(), nobody(t)), "Leader": leader}
			n := 0
			for _, err := range e.Observe(t.Context()) {
				errs["Observe"] = err
				n++
			}
			for call, err := range errs {
				if !errors.Is(err, relock.ErrInvalidOption) {
					t.Errorf("%s of %s: %v, want ErrInvalidOption", call, what, err)
				}
			}
			if e.IsLeader() || n != 1 {
				t.Errorf("%s: IsLeader %v, observed %d times", what, e.IsLeader(), n)
			}
		}
		e := x.Eye.NewElection("e")
		rig.WantIs(t, e.Run(t.Context(), nil), relock.ErrInvalidOption)
		rig.WantIs(t, e.Run(nil, nobody(t)), relock.ErrInvalidOption) //nolint:staticcheck // nil is what is tested
		for _, err := range e.Observe(nil) {                          //nolint:staticcheck // as above
			rig.WantIs(t, err, relock.ErrInvalidOption)
		}
		bad := x.Eye.NewElection("a\nb")
		rig.WantIs(t, bad.Run(t.Context(), nobody(t)), relock.ErrInvalidName)
		_, err := bad.Leader(t.Context())
		rig.WantIs(t, err, relock.ErrInvalidName)
		plain := x.Take(x.Lock("plain"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := x.Eye.NewElection("plain").Run(ctx, nobody(t)); !errors.Is(err, relock.ErrKind) || ctx.Err() != nil {
			t.Errorf("Run = %v with a context that has %v, want ErrKind at once", err, ctx.Err())
		}
		rig.End(t, plain)
		rig.Must(t, x.Eye.NewLock("e", relock.Fair()).Do(t.Context(), func(ctx context.Context) error {
			rig.WantIs(t, e.Run(ctx, nobody(t)), relock.ErrDeadlock)
			return nil
		}))
	})
}
