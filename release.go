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

// A releasing is a release in progress.
type releasing struct {
	a    *acquisition
	note replay.Release
	also []*releasing // served acquisitions, which end with it
	call transport.Call
	// was says that the lock was held until the release, as far as can be known. If a first try was
	// unanswered and a second one finds nothing, the first one may have released the lock.
	was        bool
	unanswered bool // an earlier try went unanswered
	// end is the outcome for other calls whose holds this release ends; nil if there cannot be any.
	end *outcome
}

// prepare fills r, which the caller allocates: most Unlocks have it on their stack. It needs the keeper's mu.
func (r *releasing) prepare(a *acquisition) {
	r.a, r.note = a, a.note()
	var served []string
	for _, with := range a.Session.Served() {
		r.also = append(r.also, &releasing{a: acquired(with), note: acquired(with).note()})
		served = append(served, acquired(with).nonce.String())
	}
	s := wire.Session{Nonce: a.nonce.String(), Owner: r.note.Owner, Permits: a.Terms.Permits}
	r.call = a.keeper.c.wire.Release(r.note.Keys, s, r.note.Doubt, a.Lasts(), r.note.Undone, served...)
}

// soon releases for an Unlock and returns its result. If Redis has not answered at the instant by, the
// release goes on in the background.
func (r *releasing) soon(by time.Time) error {
	a, c := r.a, r.a.keeper.c
	first := c.ctx
	if c.transport.KeepsTime() {
		// The first try is bounded by its timeout alone, so it needs no goroutine to watch a context. A Close
		// in the meantime does not interrupt it.
		first = context.Background()
	}
	// A try may take two thirds longer if a connection must be made first, so it gets 3/5 of the time that is left.
	done, err := r.try(first, max(min(trust.Attempt(a.Terms.TTL), time.Until(by)*3/5), 1))
	if !done {
		ctx, cancel := context.WithDeadline(c.ctx, by)
		defer cancel()
		err = r.run(ctx, err)
	}
	result := r.result(err)
	switch {
	case err == nil:
	case transport.Hopeless(err):
		r.forget(false)
	default:
		late := *r // a copy, because r may be on the stack of the Unlock
		late.later()
		return result
	}
	r.settle(result)
	return result
}

// result returns what Unlock returns if its release ended with err.
func (r *releasing) result(err error) error {
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

// later releases in the background. When it gives up, the lease has ended, and Shutdown waits no longer. Only a name
// that must not rest would still be taken: its release is tried for as long as it would rest, or until Shutdown.
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
			r.settle(r.result(err))
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

// run tries until Redis has answered or ctx ends. err is the result of an earlier try, which counts as the first.
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
			return true, nil // an interrupted call has closed its connection; a new one is tried at once
		}
		return !done, err
	})
	if err != nil && !transport.Hopeless(err) && ctx.Err() != nil {
		return ending.Join(ending.Of(ctx), err)
	}
	return err
}

// errAgain says that the release must be sent again, with all its keys.
var errAgain = errors.New("redis asks for another form of the request")

// try sends the release once. If done is false, the caller must try again: at once if err is nil.
func (r *releasing) try(ctx context.Context, timeout time.Duration) (done bool, err error) {
	a, c := r.a, r.a.keeper.c
	raw, err := c.transport.Do(ctx, timeout, r.call)
	if err != nil {
		switch transport.Classify(err) {
		case transport.Closed, transport.Refused:
			return true, err
		case transport.Unknown:
			r.unanswered = true
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
		r.was = r.was || r.unanswered || state == wire.WasHeld
		return true, nil
	}
	// If more is set, the lock is released, but the queue needs further calls to move on.
	r.was = r.was || state == wire.WasHeld
	r.call.Keys = []string{r.note.Keys.Hash, r.note.Keys.Queue}
	if more {
		return false, nil
	}
	return false, errAgain
}

// forget moves what was released from the registry to the journal. answered says whether Redis has answered.
func (r *releasing) forget(answered bool) {
	for _, with := range r.also {
		with.forget(answered)
	}
	r.a.keeper.c.registry.released(r.a, r.note, answered)
}

// settle publishes the result of the release to the calls that wait for it.
func (r *releasing) settle(verdict error) {
	if r.end == nil {
		return
	}
	r.end.err = verdict
	close(r.end.known)
}

// An outcome is the result of a release that ends a session.
type outcome struct {
	known chan struct{} // closed once err is set
	err   error
}
