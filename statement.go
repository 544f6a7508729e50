package relock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
)

// This file is how a session that is held tells Redis so: statements of its
// count, and the release. Renewals are in watchdog.go.

// reenter adds a hold to a session of the same owner; reserved: the session counts
// it already.
func (s *session) reenter(w *waiting, reserved bool) (h *Hold, err error) {
	r, mine := s.room, reserved
	defer func() {
		if mine && h == nil {
			s.giveUp()
		}
	}()
	select {
	case s.turn <- struct{}{}:
	case <-w.ctx.Done():
		return nil, w.overOr(errTurn)
	case <-r.c.ctx.Done():
		return nil, ErrClosed // whoever has the turn may never give it back
	}
	r.mu.Lock()
	tell := s.check(r.c.clock.Now())
	more := counts{writes: 1}
	switch {
	case reserved:
		more = counts{}
	case w.lock.read:
		more = counts{reads: 1}
	}
	n := s.claimsAnd(more)
	if reserved && s.phase == held && s.covers(n, w.lock, r.c.clock.Now()) {
		s.reserved--
		h = s.newHold(w.lock, r.c.clock.Now())
		r.mu.Unlock()
		<-s.turn
		return h, nil
	}
	// While the turn was waited for, the last write hold may have become a read
	// hold: others may read by now, and Redis has to be asked.
	gone := s.phase != held || !w.lock.read && s.intent.writes == 0
	if !gone && n.total() <= maxHolds {
		s.intent = n
		s.joining = w.lock.terms.replicas // from now on trust rests on no less
	}
	r.mu.Unlock()
	if gone || n.total() > maxHolds {
		<-s.turn
		run(tell)
		if gone {
			return nil, errGone
		}
		return nil, fmt.Errorf("%w: owner %q has %d", ErrTooManyHolds, s.owner(), maxHolds)
	}
	err = s.state(w.ctx, n, w.lock.terms.ttl, w.once)
	r.mu.Lock()
	if mine = false; reserved {
		s.reserved--
	}
	switch {
	case err == nil && s.phase == held:
		s.count = n
		h = s.newHold(w.lock, r.c.clock.Now())
	case err == nil:
		err = errGone
	}
	s.joining = replicas{}
	settled := s.phase != held || s.claims() == s.intent
	r.mu.Unlock()
	if settled {
		<-s.turn
	} else {
		// The statement may have arrived, or may yet: a later one overrides it.
		r.c.background(s.patience(), s.converge)
	}
	return h, err
}

// errTurn is why a re-entry has not asked Redis.
var errTurn = &requestError{errors.New("redis has not answered what another call of the same owner has told it")}

// state tells Redis that the session has n holds, and a lease of at least ttl
// (0: as it is), until it is answered. The caller has the turn. errGone: Redis
// says that the session is no longer held, and it is lost. A session that gives
// up its last write hold lets other readers in.
func (s *session) state(ctx context.Context, n counts, ttl time.Duration, once bool) error {
	r, c := s.room, s.room.c
	began := c.clock.Now()
	for try := 1; ; try++ {
		r.mu.Lock()
		sent := c.clock.Now()
		tell := s.check(sent)
		if s.phase != held {
			r.mu.Unlock()
			s.tellInTurn(tell)
			return errGone
		}
		s.op++
		if s.stating != nil { // else all of it is what the terms say
			s.longest = max(s.longest, ttl)
		}
		call := holdCall(c, s, s.op, n, ttl)
		if n.writes == 0 && s.count.writes > 0 {
			call = downgradeCall(c, s, s.op, n, ttl)
		}
		var need replicas // to give up holds needs nobody's acknowledgement
		if ttl > 0 {
			need = s.need()
		}
		r.mu.Unlock()
		raw, acks, err := c.do(ctx, s.within(need), need, call)
		more := false
		if err == nil {
			var tell func()
			more, tell, err = s.stated(raw, sent, acks)
			s.tellInTurn(tell)
		}
		if errors.Is(err, ErrReplicas) {
			if ttl > 0 {
				return err
			}
			err = nil
		}
		if more {
			continue
		}
		if err == nil || errors.Is(err, errGone) {
			return err
		}
		switch transport.Classify(err) {
		case transport.Refused, transport.Closed:
			return &requestError{err}
		}
		err = failed(ctx, err, c.clock.Now(), began)
		if once && ctx.Err() == nil {
			return err
		}
		if !pause(ctx, nil, backoff(try)) {
			return fmt.Errorf("%w; until then: %w", ended(ctx), err)
		}
	}
}

// stated takes the answer to a statement sent at the given time, which so many
// replicas have acknowledged; more: it is to be made again. With ErrReplicas
// Redis has it, and no trust rests on it. tell is to be run, by who has nothing else to do.
func (s *session) stated(raw []any, sent instant, acks int) (more bool, tell func(), err error) {
	r, c := s.room, s.room.c
	reply, err := decodeHold(raw)
	if err != nil {
		return false, nil, err
	}
	r.sample(reply.now)
	r.mu.Lock()
	now := c.clock.Now()
	tell = s.check(now)
	switch {
	case s.phase != held:
		err = errGone
	case !reply.held:
		tell = s.gone(fmt.Errorf("%w: redis no longer has it", ErrLost), now)
		err = errGone
	default:
		if !s.extend(sent, s.trusted(sent, reply.remaining), acks) {
			err = s.need().short(acks)
			break
		}
		s.fails = 0
		s.schedule(now)
	}
	r.mu.Unlock()
	return reply.more, tell, err
}

// tellInTurn runs tell, and gives the turn back where a hook that it calls never returns:
// nobody else would.
func (s *session) tellInTurn(tell func()) {
	returned := false
	defer func() {
		if !returned && s.turn != nil {
			<-s.turn
		}
	}()
	run(tell)
	returned = true
}

// lower tells Redis that a session has fewer holds now, or none.
func (s *session) lower() error {
	c := s.room.c
	by := time.Now().Add(c.cfg.releaseTimeout)
	if !s.takeTurn(by) {
		c.background(s.patience(), func(ctx context.Context) {
			select {
			case s.turn <- struct{}{}:
				s.converge(ctx)
			case <-ctx.Done():
			}
		})
		return s.unconfirmed(nil)
	}
	n, until, over := s.reckon()
	switch {
	case over:
		<-s.turn
		return s.fate()
	case n.total() == 0:
		<-s.turn
		return s.releaseSoon(until, by)
	}
	err := s.stateFewer(n, by)
	switch {
	case err == nil:
		s.confirmed(n)
		<-s.turn
	case errors.Is(err, errGone):
		<-s.turn
		err = s.fate()
	case hopeless(err):
		<-s.turn
		err = fmt.Errorf("%w, and will not be: %w; the next renewal says what is left, or the lease ends it", ErrUnconfirmed, err)
	default:
		c.background(s.patience(), s.converge)
		err = s.unconfirmed(err)
	}
	return err
}

// takeTurn waits for the turn until some time, or the client is closed.
func (s *session) takeTurn(by time.Time) bool {
	select {
	case s.turn <- struct{}{}:
		return true
	default:
	}
	ctx, cancel := context.WithDeadline(s.room.c.ctx, by)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// stateFewer states what is left until some time. The first try is made as that of
// a release is: on its caller's goroutine, if nothing but the time is to be watched.
func (s *session) stateFewer(n counts, by time.Time) error {
	c := s.room.c
	if c.transport.KeepsTime() && s.attempt() <= time.Until(by) {
		err := s.state(context.Background(), n, 0, true)
		if err == nil || errors.Is(err, errGone) || hopeless(err) {
			return err
		}
	}
	ctx, cancel := context.WithDeadline(c.ctx, by)
	defer cancel()
	return s.state(ctx, n, 0, false)
}

// reckon decides what has to be said: n holds, or that none is left, for which
// it ends the session; over: nothing. The caller has the turn.
func (s *session) reckon() (n counts, until int64, over bool) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	n = s.claims()
	if s.phase != held || n == s.count && n == s.intent {
		return n, 0, true
	}
	s.intent = n
	if n.total() == 0 {
		until = s.doubt
		s.end()
	}
	return n, until, false
}

// fate is why the session is over, or nil where a release ended it or it is not.
func (s *session) fate() error {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.phase != over {
		return nil // another's statement has said it all
	}
	return s.lost
}

func (s *session) confirmed(n counts) {
	s.room.mu.Lock()
	s.count = n
	s.room.mu.Unlock()
}

// converge repeats what the session holds until Redis has confirmed it. It has
// the turn, and gives it back.
func (s *session) converge(ctx context.Context) {
	n, until, over := s.reckon()
	switch {
	case over:
	case n.total() == 0:
		<-s.turn
		s.releaseLater(until)
		return
	case s.state(ctx, n, 0, false) == nil:
		s.confirmed(n)
	}
	<-s.turn
}

// releaseSoon releases a session that is over, and returns Unlock's verdict, by then.
func (s *session) releaseSoon(until int64, by time.Time) error {
	c := s.room.c
	r := s.releasing(until)
	first := c.ctx
	if c.transport.KeepsTime() {
		// The first try has nothing to watch but the time, and so needs no goroutine
		// but its caller's. A Close meanwhile does not cut it short.
		first = context.Background()
	}
	done, err := r.try(first, max(min(s.attempt(), time.Until(by)), 1))
	if !done {
		ctx, cancel := context.WithDeadline(c.ctx, by)
		defer cancel()
		err = r.run(ctx, err)
	}
	switch {
	case err == nil:
	case hopeless(err):
		c.unregister(s)
		return fmt.Errorf("%w, and will not be: %w; the lease ends it", ErrUnconfirmed, err)
	default:
		s.releaseLater(until)
		return s.unconfirmed(err)
	}
	if !r.was {
		return s.wasGone()
	}
	return nil
}

// wasGone says why a release found nothing: the hold may have been trusted when it
// was ended, and its lease have run out on the way.
func (s *session) wasGone() error {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.room.c.clock.Now().Reached(s.trust) {
		return fmt.Errorf("%w: its lease ended before the release reached redis", ErrLost)
	}
	return fmt.Errorf("%w: redis no longer had it", ErrLost)
}

// releaseLater releases a session that is over, without anybody waiting for it.
// When it gives up the lease has ended, and Shutdown must not wait any longer.
func (s *session) releaseLater(until int64) {
	s.room.c.background(s.patience(), func(ctx context.Context) {
		_ = s.release(ctx, until)
		s.room.c.unregister(s)
	})
}

// release ends the session's nonce in Redis, whatever it has come to there.
func (s *session) release(ctx context.Context, until int64) error {
	r := s.releasing(until)
	return r.run(ctx, nil)
}

// A releasing is a release under way.
type releasing struct {
	s    *session
	keys key.Keys
	call transport.Call
	// was: it was held until then, as far as can be known: what a second try finds
	// gone, an unanswered first one may have released.
	was   bool
	lost  bool // an earlier try went unanswered
	tries int
}

func (s *session) releasing(until int64) releasing {
	keys, owner := s.room.keys(), s.owner()
	s.room.mu.Lock()
	s.room.c.remember(s, keys, owner, until)
	s.room.mu.Unlock()
	return releasing{s: s, keys: keys, call: releaseCall(s.room.c, keys, s.nonce.String(), owner, until)}
}

func (r *releasing) both() []string { return []string{r.keys.Hash, r.keys.Queue} }

// run tries until it is answered or ctx ends; err is how an earlier try ended.
func (r *releasing) run(ctx context.Context, err error) error {
	for {
		if r.tries > 0 && err != nil && !pause(ctx, nil, backoff(r.tries)) {
			return errors.Join(ended(ctx), err)
		}
		var done bool
		if done, err = r.try(ctx, r.s.attempt()); done {
			return err
		}
	}
}

// errAgain says that Redis wants to be asked again.
var errAgain = errors.New("redis asks for another form of the request")

// try makes one try. What is not done, without an error, is to be tried again at once.
func (r *releasing) try(ctx context.Context, timeout time.Duration) (done bool, err error) {
	s, c := r.s, r.s.room.c
	r.tries++
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
		r.call.Keys = r.both()
		return false, err
	}
	state, now, more, err := decodeRelease(raw)
	if err != nil {
		return true, err
	}
	s.room.sample(now)
	if state != answerQueueKey && !more {
		c.answered(s)
		r.was = r.was || r.lost || state == wasHeld
		return true, nil
	}
	// With more, the lock is released, and the queue needs further calls to move on.
	r.was = r.was || state == wasHeld
	r.call.Keys = r.both()
	if more {
		return false, nil
	}
	return false, errAgain
}

// patience is how long the client goes on telling Redis what it has not
// confirmed: by then the lease has ended, and what was asked for with it.
func (s *session) patience() time.Duration {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.lasts() + lateAfter
}

func (s *session) unconfirmed(err error) error {
	base := fmt.Errorf("%w within %v; the client goes on trying, and the lease ends it at the latest", ErrUnconfirmed, s.room.c.cfg.releaseTimeout)
	if s.room.c.ctx.Err() != nil {
		base = fmt.Errorf("%w: %w before redis answered; the lease ends it", ErrUnconfirmed, ErrClosed)
	}
	if err == nil {
		return base
	}
	return fmt.Errorf("%w: %w", base, err)
}
