package shutdown_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/shutdown"
	"github.com/relock-go/relock/internal/virtual"
)

// An owner has things that are to end before its goroutines do.
type owner struct {
	*shutdown.Tracker
	mu   sync.Mutex
	left int
}

func newOwner(left int) *owner {
	o := &owner{left: left}
	o.Tracker = shutdown.New(&o.mu, func() int { return o.left })
	return o
}

func (o *owner) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left--
	o.Ended()
}

func (o *owner) tasks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Tasks()
}

// quiet waits for o on a goroutine of its own, and says when it has ended.
func quiet(ctx context.Context, o *owner) (was <-chan bool) {
	answer := make(chan bool, 1)
	go func() { answer <- o.Await(ctx, true) }()
	return answer
}

func TestDrainEndsWhatWaitsAndNothingThatRuns(t *testing.T) {
	o := newOwner(1)
	if o.Draining() || o.Open.Err() != nil {
		t.Error("it drains from the beginning")
	}
	o.Drain()
	o.Drain()
	if !o.Draining() || o.Open.Err() == nil {
		t.Error("it does not drain")
	}
	if o.Running.Err() != nil {
		t.Error("what runs was cancelled")
	}
	if !o.Go(func(context.Context) {}) {
		t.Error("what is left has no goroutine for its end")
	}
	o.Wait()
	o.Cancel()
	if o.Running.Err() == nil {
		t.Error("what runs was not cancelled")
	}
}

func TestAwaitWaitsForWhatIsLeftAndForGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(2)
		hold := make(chan struct{})
		o.Go(func(context.Context) { <-hold })
		o.Drain()
		was := quiet(t.Context(), o)
		for range 2 {
			o.end()
			synctest.Wait()
		}
		select {
		case <-was:
			t.Fatal("it is quiet while a goroutine runs")
		default:
		}
		close(hold)
		if !<-was {
			t.Error("not quiet, though nothing is left")
		}
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(1)
		o.Drain()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if o.Await(ctx, true) {
			t.Error("quiet, though something is left")
		}
		o.end()
		if !o.Await(t.Context(), true) {
			t.Error("not quiet, though nothing is left")
		}
	})
}

func TestCloseEndsAnAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(1)
		o.Drain()
		was := quiet(t.Context(), o)
		synctest.Wait()
		o.Close()
		if !<-was {
			t.Error("what has been cut short is waited for")
		}
	})
}

func TestAwaitOfWhatIsLeftWaitsForNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(1)
		hold := make(chan struct{})
		defer close(hold)
		o.Go(func(context.Context) { <-hold })
		o.Drain()
		began := time.Now()
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if o.Await(limited, false) {
			t.Error("nothing is waited for, though something is left")
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("waited for %v, want the limit of 1s", took)
		}
		go func() {
			virtual.Sleep(time.Second)
			o.end()
		}()
		if !o.Await(t.Context(), false) {
			t.Error("it is still waited for, though nothing is left")
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("waited until %v, want until the last has ended", took)
		}
	})
}

func TestAClosedTrackerBeginsNothing(t *testing.T) {
	o := newOwner(0)
	o.Close()
	if o.Go(func(context.Context) { t.Error("it runs") }) {
		t.Error("a goroutine was begun")
	}
	o.Wait()
}

func TestGoroutinesAreCountedHoweverTheyEnd(t *testing.T) {
	o := newOwner(0)
	hold := make(chan struct{})
	o.Go(func(context.Context) { <-hold })
	o.Go(func(context.Context) {
		<-hold
		runtime.Goexit()
	})
	if n := o.tasks(); n != 2 {
		t.Errorf("%d run, want 2", n)
	}
	close(hold)
	o.Wait()
	if n := o.tasks(); n != 0 {
		t.Errorf("%d run, want none", n)
	}
}
