package redisson

import (
	"context"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/transport"
)

// less tells Redis that a hold of the session has gone, until it is answered or ctx ends;
// then the client goes on beside the caller for as long as the lease may last. It returns whether Redis knew the hold.
func (s *session) less(ctx context.Context, h *Hold) (held bool, err error) {
	if err = s.takeTurn(ctx); err != nil {
		s.lessBeside(h) // it counts until then: who has the turn may be told of a nested hold
		return false, err
	}
	left, top := s.forget(h)
	call := s.releaseCall(left, top)
	held, err = s.send(ctx, call)
	s.giveTurn()
	s.c.mu.Lock()
	doubt := s.doubt
	s.c.mu.Unlock()
	switch {
	case left > 0:
	case err != nil:
		s.c.spawn(h.terms.ttl, func(ctx context.Context) {
			s.clear(ctx, call)
			s.sweep(ctx)
		})
	case doubt:
		s.c.spawn(time.Minute, s.sweep)
	}
	return held, err
}

// lessBeside is less without a caller who waits for it.
func (s *session) lessBeside(h *Hold) {
	if !s.c.spawn(h.terms.ttl, func(ctx context.Context) { _, _ = s.less(ctx, h) }) {
		s.forget(h)
	}
}

// send sends a release until it is answered. Sent again, one that finds nothing may
// have done it the first time.
func (s *session) send(ctx context.Context, call transport.Call) (held bool, err error) {
	again := false
	err = transport.Try(ctx, s.c.ctx.Done(), func() (bool, error) {
		raw, err := s.c.transport.Do(ctx, 2*time.Second, call)
		if err != nil {
			again = again || transport.Classify(err) == transport.Unknown
			return true, err
		}
		held = again || len(raw) == 1 && raw[0] == int64(1)
		return false, nil
	})
	return held, err
}

// clear sends the release of a session that is over. Where its owner has another by now
// it would end that one's holds: that one clears up behind both.
func (s *session) clear(ctx context.Context, call transport.Call) {
	if s.takeTurn(ctx) != nil {
		return
	}
	defer s.giveTurn()
	s.c.mu.Lock()
	next := s.now
	followed := next != nil
	if followed {
		next.doubt = true
	}
	s.c.mu.Unlock()
	if !followed {
		_, _ = s.send(ctx, call)
	}
}

// sweep releases once more when no unanswered copy of a request for the lock can come
// true any more.
func (s *session) sweep(ctx context.Context) {
	s.c.mu.Lock()
	until := s.until
	s.c.mu.Unlock()
	if d := s.c.clock.Now().Until(until); d > 0 && !transport.Pause(ctx, nil, d) {
		return
	}
	s.clear(ctx, s.releaseCall(0, max(s.top, 1)))
}

// undo ends what a session without holds may have in Redis: a grant that nobody heard of,
// or a place in the queue.
func (s *session) undo() {
	s.c.mu.Lock()
	doubt := s.doubt
	s.c.mu.Unlock()
	left := s.c.leaving.Begin(s.names.key)
	spawned := s.c.spawn(time.Minute, func(ctx context.Context) {
		defer left()
		s.clear(ctx, s.releaseCall(0, max(s.top, 1)))
		if doubt {
			// A request for the lock that was under way, on another connection, is read
			// after the release at times. It has been read by the time of the answer.
			s.clear(ctx, s.releaseCall(0, max(s.top, 1)))
		}
		left()
		if doubt {
			s.sweep(ctx)
		}
	})
	if !spawned {
		left()
	}
}

// giveBack ends a hold that its call will not return, and waits for nobody.
func (h *Hold) giveBack() {
	c, s := h.lock.c, h.s
	c.mu.Lock()
	if h.released {
		c.mu.Unlock()
		return
	}
	h.released, h.told = true, true
	todo := h.cancel(relock.ErrNotHeld)
	h.lock.drop(h)
	c.mu.Unlock()
	run(todo)
	left := c.leaving.Begin(s.names.key)
	spawned := c.spawn(h.terms.ttl, func(ctx context.Context) {
		defer left()
		_, _ = s.less(ctx, h)
	})
	if !spawned {
		left()
		s.forget(h)
	}
}
