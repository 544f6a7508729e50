package redisson

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
)

// An owner is who holds, as Redisson writes it: our client's ID and a number that looks
// like a thread's. No number is used again, so what arrives late for one that has gone
// meets nobody. Who takes one name as two kinds of lock has two numbers: what it says of the
// one, as it unlocks what it has lost, is not believed of the other.
type owner struct {
	field string
	key   ownerKey // of a named one
	uses  int      // sessions
	past  map[kind]*succession
}

type ownerKey struct {
	lock, name string
	lockKind   kind
}

// A succession is the sessions of one owner in one mode, one after the other. They have one
// field in Redis: what is said late of one would be believed of the next.
type succession struct {
	now   *session      // nil: none
	turn  chan struct{} // room for one: who tells Redis of the count
	until clock.Instant // by then no unanswered copy of a request is answered any more
}

// A session is what one owner has of one lock, in one mode: its holds and its calls. The
// client's mu guards it.
type session struct {
	c     *Client
	kind  kind
	names names
	owner *owner
	named bool
	*succession
	task renewal.Task

	holds    []*Hold // not released
	calls    int     // that ask
	top      int     // the largest count that Redis was told
	gone     bool    // takes no more calls
	queued   bool    // may stand in a fair lock's queue
	doubt    bool    // may have what nobody was told of
	renewing bool
	retry    clock.Instant // not before that, after a renewal that failed
	token    int64
}

// takeTurn waits until the caller alone tells Redis of the count.
func (s *session) takeTurn(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ending.Of(ctx)
	}
}

func (s *session) giveTurn() { <-s.turn }

// forget takes a released hold out of its session, and says how many are left, and the
// most that there were.
func (s *session) forget(h *Hold) (left, top int) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	s.holds = slices.DeleteFunc(s.holds, func(other *Hold) bool { return other == h })
	if len(s.holds) == 0 {
		s.end()
	} else {
		s.arm(now)
	}
	return len(s.holds), s.top
}

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

// end takes no more calls. It needs the client's mu.
func (s *session) end() {
	if s.gone {
		return
	}
	s.gone = true
	s.c.watchdog.Drop(&s.task)
	delete(s.c.sessions, s)
	s.now = nil
	if s.owner.uses--; s.named && s.owner.uses == 0 {
		delete(s.c.owners, s.owner.key)
	}
	s.c.notify()
}

// busy says that a call asks, or that a hold is neither released nor lost. It needs the client's mu.
func (s *session) busy() bool {
	return s.calls > 0 || slices.ContainsFunc(s.holds, func(h *Hold) bool { return h.lost == nil })
}

// counted is how many holds Redis counts, as far as is known: one that was lost and has been
// unlocked it does not, though its end has yet to be told. It needs the client's mu.
func (s *session) counted(now clock.Instant) (n int) {
	for _, h := range s.holds {
		if !h.released || h.lost == nil && !h.trust.Over(now) {
			n++
		}
	}
	return n
}

// field is the owner's in the hash.
func (s *session) field() string {
	if s.kind == writing {
		return s.owner.field + ":write"
	}
	return s.owner.field
}

// keys are those of the lock, and of so many of a reader's holds.
func (s *session) keys(holds int) []string {
	switch s.kind {
	case fair:
		return []string{s.names.key, s.names.queue(), s.names.deadlines()}
	case fenced:
		return []string{s.names.key, s.names.token()}
	case reading:
		return append([]string{s.names.key}, s.names.read(s.owner.field, holds)...)
	}
	return []string{s.names.key}
}

// acquireCall asks for a hold more. after is server time in ms.
func (s *session) acquireCall(count int, lease time.Duration, after int64, wait time.Duration, queue bool) transport.Call {
	args := []any{s.field(), count, lease.Milliseconds(), after}
	switch s.kind {
	case fair:
		args = append(args, wait.Milliseconds(), map[bool]int{true: 1, false: 0}[queue], s.c.publish, s.names.channel(s.kind))
	case writing:
		args = append(args, s.owner.field)
	}
	return transport.Call{Script: acquireScripts[s.kind], Keys: s.keys(count), Args: args}
}

// releaseCall states how many holds are left of so many.
func (s *session) releaseCall(count, top int) transport.Call {
	args := []any{s.field(), count, s.c.publish, s.names.channel(s.kind)}
	switch s.kind {
	case fair:
		args = append(args, s.c.cfg.fairWait.Milliseconds())
	case reading, writing:
		args = append(args, s.names.tag)
	}
	return transport.Call{Script: releaseScripts[s.kind], Keys: s.keys(top), Args: args}
}

func (s *session) renewCall(lease time.Duration) transport.Call {
	keys := []string{s.names.key}
	if s.kind == reading {
		keys = s.keys(len(s.holds))
	}
	return transport.Call{Script: renewScript, Keys: keys, Args: []any{s.field(), lease.Milliseconds()}}
}

// arm sets when the session is looked at next: when a renewal is due, or a hold is lost.
// It needs the client's mu.
func (s *session) arm(now clock.Instant) {
	var next clock.Instant
	for _, h := range s.holds {
		if h.released || h.lost != nil {
			continue
		}
		at := h.trust.Until
		if h.renewable(now) && !s.renewing {
			due := h.trust.Due(h.terms.ttl)
			at = h.trust.Within(clock.Max(due, s.retry))
		}
		if next.IsZero() || next.Until(at) < 0 {
			next = at
		}
	}
	if next.IsZero() || s.gone {
		s.c.watchdog.Drop(&s.task)
		return
	}
	s.c.watchdog.Set(&s.task, next)
}

// lease is what the session is to be renewed for, and 0 where that is not due. It needs
// the client's mu.
func (s *session) lease(now clock.Instant) (lease time.Duration) {
	due := false
	for _, h := range s.holds {
		if !h.renewable(now) {
			continue
		}
		lease = max(lease, h.terms.ttl)
		at := h.trust.Due(h.terms.ttl)
		due = due || now.Reached(clock.Max(at, s.retry))
	}
	if !due || s.renewing || s.gone {
		return 0
	}
	return lease
}

// lose ends all holds of the session. It needs the client's mu.
func (s *session) lose(why error) (todo []func()) {
	for _, h := range s.holds {
		todo = append(todo, h.lose(why)...)
	}
	return todo
}

// mostHolds bounds the holds of one owner: a reader has a key for each.
const mostHolds = 1000

// succession needs the client's mu.
func (o *owner) succession(k kind) *succession {
	if o.past == nil {
		o.past = make(map[kind]*succession)
	}
	if o.past[k] == nil {
		o.past[k] = &succession{turn: make(chan struct{}, 1)}
	}
	return o.past[k]
}

// An answer is what an acquire came to.
type answer struct {
	code  int64
	rest  time.Duration // of the lease; or until asking again is of use, negative if unknown
	now   int64         // the server's clock, in ms
	token int64
}

func readAnswer(raw []any) (answer, error) {
	var n [4]int64
	if len(raw) != len(n) {
		return answer{}, fmt.Errorf("redisson: bug: an answer of %d values", len(raw))
	}
	for i, v := range raw {
		x, ok := v.(int64)
		if !ok {
			return answer{}, fmt.Errorf("redisson: bug: an answer with %v", v)
		}
		n[i] = x
	}
	return answer{n[0], time.Duration(n[1]) * time.Millisecond, n[2], n[3]}, nil
}
