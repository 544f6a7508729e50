package relock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/replay"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// A releasing is a release under way.
type releasing struct {
	a    *acquisition
	note replay.Release
	also []*releasing // those who end with it
	call transport.Call
	// was: it was held until then, as far as can be known: what a second try finds
	// gone, an unanswered first one may have released.
	was  bool
	lost bool // an earlier try went unanswered
	// end is what comes of it, for others whose holds it ends; nil: there are none.
	end *outcome
}

// begin is releasing in a place that the caller has for it: for most holds, which nobody
// shares, that is its stack.
func (r *releasing) begin(a *acquisition) {
	r.a, r.note = a, a.note()
	var served []string
	for _, with := range a.Session.Served() {
		r.also = append(r.also, &releasing{a: acquired(with), note: acquired(with).note()})
		served = append(served, acquired(with).nonce.String())
	}
	s := wire.Session{Nonce: a.nonce.String(), Owner: r.note.Owner, Permits: a.Terms.Permits}
	r.call = a.keeper.c.wire.Release(r.note.Keys, s, r.note.Doubt, a.Lasts(), r.note.Undone, served...)
}

// soon releases for an Unlock, and returns its verdict: by then, or it goes on without
// anybody who waits.
func (r *releasing) soon(by time.Time) error {
	a, c := r.a, r.a.keeper.c
	first := c.ctx
	if c.transport.KeepsTime() {
		// The first try has nothing to watch but the time, and so needs no goroutine
		// but its caller's. A Close meanwhile does not cut it short.
		first = context.Background()
	}
	// A try may take two thirds longer where a connection has to be made first.
	done, err := r.try(first, max(min(trust.Attempt(a.Terms.TTL), time.Until(by)*3/5), 1))
	if !done {
		ctx, cancel := context.WithDeadline(c.ctx, by)
		defer cancel()
		err = r.run(ctx, err)
	}
	verdict := r.verdict(err)
	switch {
	case err == nil:
	case transport.Hopeless(err):
		r.forget(false)
	default:
		late := *r // r may be on the stack of its Unlock
		late.later()
		return verdict
	}
	r.settle(verdict)
	return verdict
}

// verdict is what an Unlock returns whose release has ended with err.
func (r *releasing) verdict(err error) error {
	switch {
	case err == nil && r.was:
		return nil
	case err == nil:
		return r.a.wasGone()
	case transport.Hopeless(err):
		return fmt.Errorf("%w, and will not be: %w; the lease ends it", ErrUnconfirmed, err)
	}
	return r.a.keeper.c.unconfirmed(err)
}

// later releases while nobody waits for it, except later attempts of this client.
// When it gives up the lease has ended, and Shutdown must not wait any longer: nor for a
// rest, which goes on without it.
func (r *releasing) later() {
	c := r.a.keeper.c
	left := c.leaving.Begin(r.a.keeper.hash)
	spawned := c.background(r.a.patience(), func(ctx context.Context) {
		defer left()
		err := r.run(ctx, nil)
		left()
		if err != nil {
			r.forget(false)
		}
		if r.end != nil {
			r.settle(r.verdict(err))
		}
		if err != nil && r.note.Undone {
			late, cancel := context.WithTimeout(c.open, r.a.Terms.Rest.For)
			defer cancel()
			_ = r.run(late, nil)
		}
	})
	if !spawned {
		left()
	}
}

// run tries until it is answered or ctx ends; err is how an earlier try ended, which
// counts as the first.
func (r *releasing) run(ctx context.Context, err error) error {
	tried, unsent := err != nil, false
	err = transport.Try(ctx, nil, func() (again bool, _ error) {
		if tried {
			tried = false
			return true, err
		}
		done, err := r.try(ctx, trust.Attempt(r.a.Terms.TTL))
		if !unsent && err != nil && transport.Classify(err) == transport.NotExecuted {
			unsent = true
			return true, nil // a call that was cut short has taken the connection with it: there is another
		}
		return !done, err
	})
	if err != nil && !transport.Hopeless(err) && ctx.Err() != nil {
		return errors.Join(ending.Of(ctx), err)
	}
	return err
}

// errAgain says that Redis wants to be asked again.
var errAgain = errors.New("redis asks for another form of the request")

// try makes one try. What is not done, without an error, is to be tried again at once.
func (r *releasing) try(ctx context.Context, timeout time.Duration) (done bool, err error) {
	a, c := r.a, r.a.keeper.c
	raw, err := c.transport.Do(ctx, timeout, r.call)
	if err != nil {
		switch transport.Classify(err) {
		case transport.Closed, transport.Refused:
			return true, err
		case transport.Unknown:
			r.lost = true
		}
		if transport.TryAgain(err) && len(r.call.Keys) > 1 {
			r.call.Keys = r.call.Keys[:1]
			return false, nil
		}
		r.call.Keys = []string{r.note.Keys.Hash, r.note.Keys.Queue}
		return false, err
	}
	state, now, more, err := wire.DecodeRelease(raw)
	if err != nil {
		return true, err
	}
	a.keeper.sample(now)
	if state != room.QueueKey && !more {
		r.forget(true)
		r.was = r.was || r.lost || state == wire.WasHeld
		return true, nil
	}
	// With more, the lock is released, and the queue needs further calls to move on.
	r.was = r.was || state == wire.WasHeld
	r.call.Keys = []string{r.note.Keys.Hash, r.note.Keys.Queue}
	if more {
		return false, nil
	}
	return false, errAgain
}

// forget has a release remembered that was sent, answered or not.
func (r *releasing) forget(answered bool) {
	for _, with := range r.also {
		with.forget(answered)
	}
	r.a.keeper.c.registry.released(r.a, r.note, answered)
}

// settle notes what has come of a release, for those who wait for that.
func (r *releasing) settle(verdict error) {
	if r.end == nil {
		return
	}
	r.end.err = verdict
	close(r.end.known)
}

// An outcome is what comes of a release by which a session ends.
type outcome struct {
	known chan struct{} // closed once err is the verdict
	err   error
}
