package rig

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
)

// A Sleep is a wait on a condition.
type Sleep struct {
	Stop      context.CancelFunc
	Done      chan struct{} // closed when the fields below are set
	Signalled bool
	Err       error
	t         testing.TB
}

// Sleeps waits on a condition, on a goroutine of its own. A limit of 0 is none.
func Sleeps(t testing.TB, ctx context.Context, c *relock.Cond, limit time.Duration) *Sleep { //nolint:revive // t first, as everywhere
	ctx, stop := context.WithCancel(ctx)
	t.Cleanup(stop)
	s := &Sleep{t: t, Stop: stop, Done: make(chan struct{})}
	go func() {
		defer close(s.Done)
		if limit == 0 {
			s.Err = c.Wait(ctx)
			s.Signalled = s.Err == nil
			return
		}
		s.Signalled, s.Err = c.WaitFor(ctx, limit)
	}()
	return s
}

// Sleeps is Sleeps that returns when everything has come to rest.
func (x *Lab) Sleeps(ctx context.Context, c *relock.Cond, limit time.Duration) *Sleep {
	x.T.Helper()
	s := Sleeps(x.T, ctx, c, limit)
	synctest.Wait()
	return s
}

// Waits fails the test if the wait is over, with everything at rest.
func (s *Sleep) Waits() {
	s.t.Helper()
	synctest.Wait()
	if IsShut(s.Done) {
		s.t.Fatalf("the wait is over: signalled %v, error %v", s.Signalled, s.Err)
	}
}

// Woken fails the test unless the wait ends with a signal.
func (s *Sleep) Woken() {
	s.t.Helper()
	s.over()
	if !s.Signalled || s.Err != nil {
		s.t.Fatalf("signalled %v, error %v, want a signal", s.Signalled, s.Err)
	}
}

// Ended fails the test unless the wait ends without a signal, with that error.
func (s *Sleep) Ended(want error) {
	s.t.Helper()
	s.over()
	if s.Signalled {
		s.t.Errorf("the wait ended with a signal, error %v", s.Err)
	}
	if want == nil && s.Err != nil {
		s.t.Errorf("error %v, want none", s.Err)
	} else if want != nil {
		WantIs(s.t, s.Err, want)
	}
}

// over waits for the end of the wait, longer than any test needs.
func (s *Sleep) over() {
	s.t.Helper()
	limit := time.NewTimer(10 * time.Minute)
	defer limit.Stop()
	select {
	case <-s.Done:
	case <-limit.C:
		s.t.Fatal("the wait does not end")
	}
}
