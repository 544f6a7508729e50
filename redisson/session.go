package redisson

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
)

// An owner is a holder as Redisson names it: the client's ID and a number that looks like a thread's. Numbers are not
// used again, so a late request of an owner that has ended affects nobody. An owner name that is used for two kinds of
// lock has two numbers. Otherwise a late release of a lost hold of one kind could end a hold of the other kind.
type owner struct {
	field        string
	key          ownerKey // its key in Client.owners, if it is named
	sessionCount int      // its sessions that have not ended
	successions  map[kind]*succession
}

type ownerKey struct {
	lock, name string
	lockKind   kind
}

// A succession is the sessions of one owner in one mode, one after the other. They share one field in Redis, so a late
// release of one session would end the holds of the next.
type succession struct {
	now    *session      // the session that has not ended; nil: there is none
	turn   chan struct{} // capacity one; the call that has it may tell Redis the count
	until  clock.Instant // from then on no unanswered copy of a request can be executed
	untold *session      // has ended, and Redis has not confirmed that; nil: there is none
}

// A session is one owner's share of one lock in one mode: its holds and its calls. The client's mu guards it.
type session struct {
	c     *Client
	kind  kind
	names names
	owner *owner
	named bool
	*succession
	task renewal.Task

	holds    []*Hold       // including a released one until Redis is told of it
	calls    int           // that are asking
	top      int           // the largest count that Redis was told
	longest  time.Duration // the longest lease that Redis was asked for
	lasts    clock.Instant // when the lease ends, as Redis has answered
	gone     bool          // takes no more calls
	queued   bool          // may be in a fair lock's queue
	doubt    bool          // Redis may have a grant that no call knows of
	renewing bool
	retry    clock.Instant // after a failed renewal: the next one is not before this
	token    int64
}

// refused returns why the session does not ask for its count-th hold, or nil. An ended session changes no more: it is
// read without the mutex then. refused needs the client's mu.
func (s *session) refused(count int) error {
	switch {
	case s.gone:
		return errSessionEnded
	case count > mostHolds:
		return fmt.Errorf("%w: the owner has %d", relock.ErrTooManyHolds, mostHolds)
	}
	return nil
}

// takeTurn waits until no other call is telling Redis how many holds the owner has.
func (s *session) takeTurn(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ending.Of(ctx)
	}
}

func (s *session) giveTurn() { <-s.turn }

// forget removes a released hold from its session. It returns how many holds are left, and the largest count
// that Redis was told.
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

// tellFewer tells Redis that a hold of the session has ended, until Redis has answered or ctx ends. Without an answer,
// the client goes on in the background while the lease may last. It returns whether Redis knew the hold.
func (s *session) tellFewer(ctx context.Context, h *Hold) (held bool, err error) {
	if err = s.takeTurn(ctx); err != nil {
		s.tellFewerInBackground(h) // h counts until then: the call with the turn may be telling Redis of a nested hold
		return false, err
	}
	held, left, call, err := s.sendFewer(ctx, h)
	s.c.mu.Lock()
	doubt, limit := s.doubt, s.patience(h)
	s.c.mu.Unlock()
	switch {
	case left > 0 && err != nil:
		s.c.spawn(limit, s.restate)
	case left > 0:
	case err != nil:
		s.inBackground(limit, func(ctx context.Context, left func()) {
			s.clear(ctx, call)
			left()
			s.sweep(ctx)
		})
	case doubt:
		s.c.spawn(time.Minute, s.sweep)
	}
	return held, err
}

// restate tells Redis how many holds are left, after a release that was not answered. If the session has ended by then,
// its last release has told Redis.
func (s *session) restate(ctx context.Context) {
	_ = transport.Try(ctx, s.c.ctx.Done(), func() (again bool, err error) {
		if err = s.takeTurn(ctx); err != nil {
			return false, err
		}
		defer s.giveTurn() // between two tries the owner's other calls go on
		s.c.mu.Lock()
		left, top := len(s.holds), s.top
		s.c.mu.Unlock()
		if left > 0 {
			_, err = s.c.transport.Do(ctx, 2*time.Second, s.releaseCall(left, top))
		}
		return err != nil, err
	})
}

// sendFewer sends the release for tellFewer, which has the turn, and gives the turn back.
func (s *session) sendFewer(ctx context.Context, h *Hold) (held bool, left int, call transport.Call, err error) {
	var todo []func()
	defer func() { run(todo) }()
	defer s.giveTurn() // deferred, because a hook of the redis client may panic or end the goroutine
	left, top := s.forget(h)
	call = s.releaseCall(left, top)
	held, err = s.send(ctx, call)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	switch {
	case err != nil && left == 0:
		s.untold = s
	case err == nil && !held:
		todo = s.lose(errMissing) // with the turn: Redis has none of the owner's holds, and no grant is under way
	}
	return held, left, call, err
}

// tellFewerInBackground is tellFewer in the background.
func (s *session) tellFewerInBackground(h *Hold) {
	s.c.mu.Lock()
	limit := s.patience(h)
	s.c.mu.Unlock()
	if !s.inBackground(limit, func(ctx context.Context, _ func()) { _, _ = s.tellFewer(ctx, h) }) {
		s.forget(h)
	}
}

// inBackground runs fn, which removes something of the session from Redis. Single attempts, and calls such as Info,
// wait until fn returns or calls left.
func (s *session) inBackground(limit time.Duration, fn func(ctx context.Context, left func())) (spawned bool) {
	left := s.c.leaving.Begin(s.names.key)
	spawned = s.c.spawn(limit, func(ctx context.Context) {
		defer left()
		fn(ctx, left)
	})
	if !spawned {
		left()
	}
	return spawned
}

// send sends a release until it is answered. If a second try finds nothing, the first one may have released the hold.
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

// clear sends the release of an ended session. If its owner has a later session by now, the release would end that
// session's holds. Then the later session takes over the doubt, and clears up for both when it ends.
func (s *session) clear(ctx context.Context, call transport.Call) {
	if s.takeTurn(ctx) != nil {
		return
	}
	defer s.giveTurn()
	s.c.mu.Lock()
	next := s.now
	followed := next != nil
	if followed {
		next.doubt, s.untold = true, nil
	}
	s.c.mu.Unlock()
	if followed {
		return
	}
	if _, err := s.send(ctx, call); err == nil {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		s.untold = nil
	}
}

// sweep repeats the release a few times, at last when Redis can no longer execute an unanswered copy of an acquire.
// Each pause is four times the one before. So what a late copy takes is released after about four times its delay.
func (s *session) sweep(ctx context.Context) {
	s.c.mu.Lock()
	until := s.until
	s.c.mu.Unlock()
	for pause, last := sweepFirst, false; !last; pause *= 4 {
		left := s.c.clock.Now().Until(until)
		last = left <= pause
		if left > 0 && !ending.Pause(ctx, nil, min(left, pause)) {
			return
		}
		s.clear(ctx, s.releaseCall(0, max(s.top, 1)))
	}
}

// sweepFirst is the first pause of a sweep. An acquire whose goroutine gets no processor may be written even later.
const sweepFirst = 20 * time.Millisecond

// undo ends what a session without holds may have in Redis: a grant that no call knows of, or a place in the queue.
func (s *session) undo() {
	s.c.mu.Lock()
	doubt, limit := s.doubt, s.patience(nil)
	s.c.mu.Unlock()
	s.inBackground(limit, func(ctx context.Context, left func()) {
		s.clear(ctx, s.releaseCall(0, max(s.top, 1)))
		if doubt {
			// Redis may read an acquire on another connection after this release. If the acquire was written before, Redis has
			// read it by the time of the answer. So a second release ends that grant too.
			s.clear(ctx, s.releaseCall(0, max(s.top, 1)))
		}
		left()
		if doubt {
			s.sweep(ctx)
		}
	})
}

// end makes the session take no more calls. It needs the client's mu.
func (s *session) end() {
	if s.gone {
		return
	}
	s.gone = true
	s.c.watchdog.Drop(&s.task)
	delete(s.c.sessions, s)
	s.now = nil
	s.wakeOthers(0)
	if s.owner.sessionCount--; s.owner.sessionCount == 0 && s.c.owners[s.owner.key] == s.owner {
		delete(s.c.owners, s.owner.key)
	}
	s.c.tracker.Ended()
}

// held reports whether Redis has a hold that is not lost. It needs the client's mu.
func (s *session) held() bool {
	return slices.ContainsFunc(s.holds, func(h *Hold) bool { return h.lost == nil })
}

// counted returns how many holds Redis counts, as far as the client knows. It leaves out a lost hold that was
// unlocked, even if Redis has not been told yet. It needs the client's mu.
func (s *session) counted(now clock.Instant) (n int) {
	for _, h := range s.holds {
		if !h.released || h.lost == nil && !now.Reached(h.trust) {
			n++
		}
	}
	return n
}

// channel returns the channel on which calls of the session hear of the lock.
func (s *session) channel() string {
	name := s.names.channel(s.kind)
	if s.kind == fair {
		return name + ":" + s.owner.field
	}
	return name
}

// wakeOthers tells the owner's waiting calls to ask again, because Redis does not tell them. If the owner holds now,
// they re-enter. If its session has ended, they queue again. know is how many of its calls know that already. It needs
// the client's mu.
func (s *session) wakeOthers(know int) {
	if all := s.c.waiters[s.channel()]; all != nil && s.named && s.calls > know {
		all.wake(true)
	}
}

// patience returns for how long Redis may have something of the session, which a call or h has left there. h is nil for
// a call. For a lost h, the lease bounds it, as far as it is known. patience needs the client's mu.
func (s *session) patience(h *Hold) time.Duration {
	if h != nil && h.lost != nil {
		ends := s.lasts
		if s.doubt {
			ends = clock.Max(ends, s.until.Add(s.longest))
		}
		return max(s.c.clock.Now().Until(ends.Add(lostPatience)), slack)
	}
	limit := max(s.longest, time.Minute)
	if s.queued {
		limit = max(limit, s.c.cfg.fairWait)
	}
	return limit + slack
}

// lostPatience is for how long after its lease Redis is told that a lost hold has ended. An unanswered renewal may have
// made the lease longer.
const lostPatience = 10 * time.Second

// field returns the owner's field in the hash.
func (s *session) field() string {
	if s.kind == writing {
		return s.owner.field + ":write"
	}
	return s.owner.field
}

// keys returns the keys of the lock. For a reader it adds the keys of that many holds.
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

// acquireCall returns the command that asks for one more hold: the count-th. after is a server time in ms: the request
// is refused after it. With queue it joins a fair lock's queue, whose head may be silent for wait.
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

// releaseCall returns the command that states how many holds are left. top is the largest count that Redis was told.
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

// arm schedules the session for its next renewal or the end of a hold's trust. It needs the client's mu.
func (s *session) arm(now clock.Instant) {
	var next clock.Instant
	for _, h := range s.holds {
		if h.released || h.lost != nil {
			continue
		}
		at := h.trust
		if h.renewable(now) && !s.renewing {
			due := trust.Due(h.trust, h.terms.ttl)
			at = clock.Min(h.trust, clock.Max(due, s.retry))
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

// lease returns the lease of the renewal that is due, or 0 if none is due. It needs the client's mu.
func (s *session) lease(now clock.Instant) (lease time.Duration) {
	due := false
	for _, h := range s.holds {
		if !h.renewable(now) {
			continue
		}
		lease = max(lease, h.terms.ttl)
		at := trust.Due(h.trust, h.terms.ttl)
		due = due || now.Reached(clock.Max(at, s.retry))
	}
	if !due || s.renewing || s.gone {
		return 0
	}
	return lease
}

// lose marks all holds of the session as lost. It needs the client's mu.
func (s *session) lose(why error) (todo []func()) {
	for _, h := range s.holds {
		todo = append(todo, h.lose(why)...)
	}
	return todo
}

// mostHolds bounds the holds of one owner, because each hold of a reader has its own key.
const mostHolds = 1000

// succession returns the owner's succession in that mode. It needs the client's mu.
func (o *owner) succession(k kind) *succession {
	if o.successions == nil {
		o.successions = make(map[kind]*succession)
	}
	if o.successions[k] == nil {
		o.successions[k] = &succession{turn: make(chan struct{}, 1)}
	}
	return o.successions[k]
}

// untold returns the owner's sessions whose end Redis has not confirmed. Each renewal of the owner keeps the hash, so
// what is left of them there does not end with their leases. untold needs the client's mu.
func (o *owner) untold() (all []*session) {
	for _, of := range o.successions {
		if of.untold != nil {
			all = append(all, of.untold)
		}
	}
	return all
}

// holds reports whether the owner has a live hold in any mode. It needs the client's mu.
func (o *owner) holds() bool {
	for _, of := range o.successions {
		if of.now != nil && slices.ContainsFunc(of.now.holds, func(h *Hold) bool { return h.lost == nil && !h.released }) {
			return true
		}
	}
	return false
}

// An answer is the reply to an acquire.
type answer struct {
	code  int64
	rest  time.Duration // of the lease, or until another try makes sense; negative: unknown
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
