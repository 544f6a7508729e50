package explore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock"
)

// begin starts a call that wants a lock.
func (w *world) begin(n int) bool {
	p, ok := pick(w.alive(), n)
	if !ok {
		return false
	}
	n /= 8
	open, begun := 0, 0
	for _, a := range w.calls {
		if a.crowd {
			continue
		}
		begun++
		if a.by == p && !a.ended {
			open++
		}
	}
	if open >= 3 || begun > 30 {
		return false
	}
	w.start(w.draw(p, n))
	return true
}

// draw decides what a call asks for.
func (w *world) draw(p *process, n int) *wish {
	a := &wish{by: p, name: w.names[n/64%len(w.names)], ttl: w.setup.ttl, wait: -1}
	switch n / 4 % 8 {
	case 5:
		a.fixed, a.what = true, " without watchdog"
	case 6:
		a.ttl, a.what = 2*a.ttl, " for twice as long"
	case 7:
		a.tries = true
		if n%2 == 1 {
			a.wait = w.setup.ttl/7 + 11*time.Microsecond
		}
	}
	if n/32%4 == 3 {
		a.owner = fmt.Sprintf("owner%d", n/128%2)
	}
	if w.setup.branches && n/32%16 < len(family) {
		a.owner = family[n/32%16]
	}
	a.read = w.setup.shared() && n%4 < 2
	w.trouble(a, n/256)
	return a
}

// start makes the call. What it comes to is in a when a.done is closed.
func (w *world) start(a *wish) {
	a.done, a.began = make(chan struct{}), w.now()
	w.calls = append(w.calls, a)
	l := w.handle(a)
	ctx, stop := context.WithCancel(context.WithValue(context.Background(), upsetKey{}, a.upset))
	a.stop = stop
	w.say("p%d begins call %d: %s", a.by.index, len(w.calls)-1, a)
	go func() {
		a.err = errUpset // where a hook ends this goroutine
		defer close(a.done)
		defer func() {
			a.at = w.now()
			if r := recover(); r != nil && r != any(errUpset) {
				panic(r)
			}
		}()
		var err error
		if a.tries {
			a.hold, err = l.TryAcquire(ctx, a.wait)
		} else {
			a.hold, err = l.Acquire(ctx)
		}
		if a.err = err; err == nil {
			a.first = a.hold.Err()
		}
	}()
}

// handle returns the one that the call is made through.
func (w *world) handle(a *wish) *relock.Lock {
	as := fmt.Sprint(a.name, a.owner, a.ttl, a.fixed)
	l, rw := a.by.locks[as], a.by.rwlocks[as]
	switch {
	case a.shares && rw != nil:
		a.rw = rw
		return a.side()
	case a.shares && l != nil:
		return l
	}
	opts := []relock.LockOption{relock.TTL(a.ttl)}
	if a.fixed {
		opts = append(opts, relock.NoWatchdog())
	}
	if a.owner != "" {
		opts = append(opts, relock.Owner(a.owner))
	}
	if w.setup.ordered() {
		opts = append(opts, relock.Fair())
	}
	if w.setup.shared() {
		a.rw = a.by.client.NewRWLock(a.name, opts...)
		l = a.side()
	} else {
		l = a.by.client.NewLock(a.name, opts...)
	}
	if a.shares {
		a.by.locks[as], a.by.rwlocks[as] = l, a.rw
	}
	return l
}

func (a *wish) side() *relock.Lock {
	if a.read {
		return a.rw.RLocker()
	}
	return a.rw.WLocker()
}

func (a *wish) String() string {
	verb, mode, owner := "lock", "", "anonymous"
	if a.tries {
		verb = "try"
	}
	if a.rw != nil {
		mode = " for writing"
		if a.read {
			mode = " for reading"
		}
	}
	if a.owner != "" {
		owner = a.owner
	}
	if a.shares {
		owner += " by a shared handle"
	}
	return verb + " " + a.name + mode + " as " + owner + a.what
}

// expected reports whether a call may end with err.
func (a *wish) expected(err error) bool {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, relock.ErrUpgrade) && a.rw != nil && a.owner != "":
		return true
	case errors.Is(err, errUpset):
		return a.upset != ""
	case errors.Is(err, relock.ErrInvalidOption):
		return a.lent
	case errors.Is(err, relock.ErrLost):
		return a.shares || a.owner != "" // what was lost is yet to be unlocked, through this handle or by this owner
	case errors.Is(err, relock.ErrNotAcquired):
		return a.tries
	case errors.Is(err, relock.ErrClosed):
		return a.by.dead
	}
	return a.tries && a.by.world.setup.risk > 0
}
