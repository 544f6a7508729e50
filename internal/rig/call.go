package rig

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
)

// A Call is a Lock that may have to wait.
type Call struct {
	Stop context.CancelFunc
	Done chan struct{} // closed when the fields below are set
	Hold *relock.Hold
	Err  error
	At   time.Duration
	t    *testing.T
}

// Begin locks l on a goroutine of its own, and returns when that waits or is done.
func (x *Lab) Begin(l *relock.Lock) *Call { x.T.Helper(); return x.BeginAs("", l) }

// BeginAs is Begin for a named owner.
func (x *Lab) BeginAs(owner string, l *relock.Lock) *Call {
	x.T.Helper()
	// Long enough for every schedule, and short enough for a broken one.
	ctx, stop := context.WithTimeout(x.T.Context(), time.Hour)
	x.T.Cleanup(stop)
	if owner != "" {
		ctx = relock.WithOwner(ctx, owner)
	}
	c := &Call{t: x.T, Stop: stop, Done: make(chan struct{})}
	go func() {
		defer close(c.Done)
		c.Hold, c.Err = l.Acquire(ctx)
		c.At = x.Now()
	}()
	synctest.Wait()
	return c
}

// Take holds l at once, or the test fails.
func (x *Lab) Take(l *relock.Lock) *relock.Hold { x.T.Helper(); return x.Begin(l).Holds() }

// WaitOnce makes each process wait once. After that its inbox has answered, and it asks for no echo, like a
// process that has lived for long.
func (x *Lab) WaitOnce(procs ...*Actor) {
	x.T.Helper()
	for _, a := range procs {
		name := fmt.Sprintf("wait %p", a)
		held := x.Take(x.Eye.NewLock(name))
		call := x.Begin(a.NewLock(name))
		call.Waits()
		End(x.T, held)
		End(x.T, call.Holds())
	}
}

// Waits fails the test if the call has returned.
func (c *Call) Waits() {
	c.t.Helper()
	synctest.Wait()
	if c.Settled() {
		c.t.Fatalf("the call returned at %v with error %v, want it to wait", c.At, c.Err)
	}
}

// Holds fails the test unless the call has succeeded by now.
func (c *Call) Holds() *relock.Hold {
	c.t.Helper()
	synctest.Wait()
	if !c.Settled() {
		c.t.Fatal("the call still waits, want it to hold")
	}
	return c.Returns()
}

// Returns waits for the call to succeed.
func (c *Call) Returns() *relock.Hold {
	c.t.Helper()
	<-c.Done
	if c.Err != nil {
		c.t.Fatalf("lock: %v", c.Err)
	}
	return c.Hold
}

// Settled reports whether the call has returned.
func (c *Call) Settled() bool { return IsShut(c.Done) }

// Going is a call that runs on a goroutine of its own, and what comes of it.
type Going chan error

// Beside runs f on its own goroutine.
func Beside(f func() error) Going {
	g := make(Going, 1)
	go func() { g <- f() }()
	return g
}

// Pending fails unless the call is still going on when all is quiet.
func (g Going) Pending(t testing.TB, what string) { t.Helper(); pending(t, g, what) }

// StillWaits asserts that a call has not returned, with everything at rest.
func StillWaits(t testing.TB, result <-chan error) { t.Helper(); pending(t, result, "the call") }

func pending(t testing.TB, result <-chan error, what string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-result:
		t.Fatalf("%s has returned already: %v", what, err)
	default:
	}
}

// Returned asserts that a call has returned without any time passing, and with what.
func Returned(t testing.TB, result <-chan error) error {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-result:
		return err
	default:
		t.Fatal("still waits")
		return nil
	}
}
