package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/ending"
)

// A Majority is one acquisition of a Lock. It is held as long as the holds on a majority of the primaries can be
// trusted. After that it is lost. Its methods may be called from any goroutine.
type Majority struct {
	lock       *Lock
	until      time.Time       // when the last lease that MaxHold allows ends; zero: no limit. Set before a caller has it
	granted    time.Time       // set before a caller has it
	end        context.Context // has the values of the call's context; ends with the hold, and its cause says why
	stop       context.CancelCauseFunc
	votes      chan struct{} // a primary has answered, or a member has changed; capacity one
	gone       chan struct{} // a hold on a primary has ended, so the pause of keep must end; capacity one
	lost       chan struct{}
	asked      sync.Once     // for the first call of Awaited: it has each hold call tellWanted (WhenWanted)
	wanted     chan struct{} // closed by tellWanted
	tellWanted func()        // may be called more than once

	mu       sync.Mutex // guards the following fields; no primary and no hold is called under it
	token    int64      // 0 until elect has chosen it
	owner    string     // the owner that the token belongs to
	err      error      // why the Majority has ended
	returned bool       // the caller has it: see MarkReturned
	awaited  bool       // Awaited was called
	members  []member   // by primary
}

// A member is the state of one primary in a Majority.
type member struct {
	hold     Hold
	token    int64 // of this hold, as is owner: the majority's may differ
	owner    string
	raised   bool      // the primary's counter has reached the majority's token, so the hold counts
	busy     bool      // a request is in flight
	leaving  bool      // its hold is being given back
	since    time.Time // when the request or the giving back began
	answered bool      // the latest answer was a hold, or that the lock is taken
	forced   bool      // an operator has ended its hold, so the primary is not asked again
	err      error     // of the latest failed request, or why its hold was lost
}

// gatherAndCheck calls gather, and then checks that the primaries that answered are different servers.
func (h *Majority) gatherAndCheck(ctx context.Context, wait time.Duration) error {
	err := h.gather(ctx, wait)
	if err != nil && !errors.Is(err, h.lock.Errors.Taken) {
		return err
	}
	held, refused := make([]Hold, len(h.members)), []int(nil)
	for i, m := range h.snapshot() {
		switch {
		case m.hold != nil:
			held[i] = m.hold
		case m.answered:
			refused = append(refused, i)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, h.lock.patience())
	defer cancel()
	if same := h.lock.Check(ctx, held, refused); same != nil {
		return same
	}
	return err
}

// gather asks the primaries that are not held. It returns when a majority is held, when all primaries have answered, or
// when the time is over. Its result is that of tally.
func (h *Majority) gather(ctx context.Context, wait time.Duration) error {
	unlink := h.linkTo(ctx)
	defer unlink()
	for i, m := range h.snapshot() {
		if m.hold == nil {
			h.seek(i, wait, false)
		}
	}
	// A primary may answer as late as at the end of wait, and its answer takes time to arrive.
	h.await(ctx, wait+h.lock.patience(), func(m member) (counts, open bool) { return m.hold != nil, m.busy })
	return h.tally()
}

// linkTo makes requests in flight end with ctx, until unlink is called.
func (h *Majority) linkTo(ctx context.Context) (unlink func() bool) {
	return context.AfterFunc(ctx, func() { h.stop(context.Cause(ctx)) })
}

// await returns when a majority of the members counts, when no member is open any more, after limit, or when ctx ends.
// judge says whether a member counts, and whether it is open, that is, may still come to count.
func (h *Majority) await(ctx context.Context, limit time.Duration, judge func(m member) (counts, open bool)) {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		held, more := 0, false
		for _, m := range h.snapshot() {
			counts, open := judge(m)
			more = more || open
			if counts {
				held++
			}
		}
		if held >= h.lock.need() || !more {
			return
		}
		select {
		case <-h.votes:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tally returns nil if a majority is held and Taken if a majority has answered. Otherwise it returns what went wrong.
func (h *Majority) tally() error {
	var held, answered, final int
	var last, why error
	for i, m := range h.snapshot() {
		switch {
		case m.hold != nil:
			held++
			answered++
		case m.answered:
			answered++
		case m.err != nil && h.lock.Errors.Final(m.err):
			final++
			why = m.err
		case m.err != nil:
			last = fmt.Errorf("primary %d: %w", i, m.err)
		}
	}
	n, need := len(h.members), h.lock.need()
	switch {
	case held >= need:
		return nil
	case final > n-need:
		return why
	case answered >= need:
		return h.lock.Errors.Taken
	case last == nil:
		last = fmt.Errorf("%w: no reply in time", h.lock.Errors.Silent)
	}
	return fmt.Errorf("%w: %d of %d, and %d are needed: %w", ErrFewAnswer, answered, n, need, last)
}

// first returns the first primary, in their order, that has answered, and whether it is held.
func (h *Majority) first() (primary int, held bool) {
	for i, m := range h.snapshot() {
		if m.hold != nil || m.answered {
			return i, m.hold != nil
		}
	}
	return 0, false
}

// queue waits in the queue of one primary for as long as that primary answers.
func (h *Majority) queue(ctx context.Context, at int) error {
	unlink := h.linkTo(ctx)
	defer unlink()
	of, patience := h.lock.Primaries[at], h.lock.patience()
	waits, cancel := context.WithCancelCause(h.end)
	defer cancel(nil)
	of.Spawn(func() { // if Spawn returns false, the client is closed, and Queue returns at once
		for ending.Pause(waits, nil, patience) {
			asks, done := context.WithTimeout(waits, 2*patience)
			err := of.Probe(asks)
			done()
			if err != nil {
				cancel(err)
				return
			}
		}
	})
	hold, err := of.Queue(waits)
	h.adopt(at, hold, err)
	switch silent := context.Cause(waits); {
	case err != nil && silent != nil && ctx.Err() == nil: // by %v: silent may be a timeout, and must not look like ctx's
		return fmt.Errorf("%w: primary %d: %w: %v", ErrFewAnswer, at, h.lock.Errors.Silent, silent)
	case err != nil: // even if it is final: one primary does not decide for the others
		return fmt.Errorf("%w: primary %d: %w", ErrFewAnswer, at, err)
	}
	return nil
}

// seek asks one primary in the background. lost says that its hold has just been lost. Then seek first asks the other
// primaries whether they still have theirs: an operator may have forced these too, and the messages may be lost.
func (h *Majority) seek(primary int, wait time.Duration, lost bool) {
	h.mu.Lock()
	m := &h.members[primary]
	idle := !m.busy && m.hold == nil && !m.forced && h.err == nil // it may have granted a hold since the caller looked
	if idle {
		m.busy, m.since = true, time.Now()
	}
	h.mu.Unlock()
	if !idle {
		return
	}
	ctx := h.end
	if wait <= 0 { // a try without a wait ends soon by itself, and interrupting it would cost its connection
		ctx = context.WithoutCancel(ctx)
	}
	h.lock.spawn(primary, func() {
		hold, err := Hold(nil), errQuit
		defer func() { h.adopt(primary, hold, err) }() // deferred, because a hook may end the goroutine
		if lost {
			h.askWhetherHeld()
		}
		hold, err = h.lock.Primaries[primary].Try(ctx, wait)
	})
}

var errQuit = errors.New("a hook has ended the goroutine of the request")

// askWhetherHeld asks all primaries whether they still have their holds. If the Majority is lost, its requests end.
func (h *Majority) askWhetherHeld() {
	var asked sync.WaitGroup
	for i, m := range h.snapshot() {
		if m.hold != nil && m.hold.Err() == nil {
			asked.Add(1)
			h.lock.spawn(i, func() {
				defer asked.Done()
				m.hold.AskWhetherHeld(context.WithoutCancel(h.end), h.lock.patience())
			})
		}
	}
	asked.Wait()
	_ = h.Err() // ends h.end after a loss
}

// adopt records the answer of a primary. A hold that comes after the end is given back. A hold that comes after the
// token was chosen counts once the primary knows that token.
func (h *Majority) adopt(primary int, hold Hold, err error) {
	said := member{err: err, answered: err == nil || ending.Is(err, h.lock.Errors.Taken)}
	if err == nil {
		said.hold, said.token, said.owner = hold, hold.Token(), hold.Owner()
	}
	kept, token := h.note(primary, said, 0)
	for token != 0 { // not recorded yet: the primary must know that token first
		said.raised = h.holdsMajority() && h.raise(hold, said.token, token)
		kept, token = h.note(primary, said, token)
	}
	switch {
	case err == nil && !kept:
		defer h.settled(primary) // deferred, because a hook may end the goroutine
		_ = hold.Release()
	case kept:
		h.mu.Lock()
		awaited, returned := h.awaited, h.returned
		h.mu.Unlock()
		if awaited {
			hold.WhenWanted(h.tellWanted)
		}
		if returned {
			hold.MarkReturned(time.Since(h.granted) < h.lock.Rest)
		}
		context.AfterFunc(hold.Context(h.end), func() { signal(h.gone) })
	}
	signal(h.votes)
}

// note records the answer of a primary and reports whether its hold is kept. told is the token that the primary was
// told, or 0. If the majority has another token by now, note records nothing and returns that token.
func (h *Majority) note(primary int, said member, told int64) (kept bool, token int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if said.hold != nil && h.err == nil && h.token != told {
		return false, h.token
	}
	m := &h.members[primary]
	kept = said.hold != nil && h.err == nil && (said.raised || told == 0)
	m.busy, m.err, m.answered = false, said.err, said.answered
	m.leaving, m.since = said.hold != nil && !kept, time.Now()
	if kept {
		m.hold, m.token, m.owner, m.raised = said.hold, said.token, said.owner, said.raised
	}
	return kept, 0
}

// elect chooses the token of the Majority and raises the counters of a majority of the primaries to it.
func (h *Majority) elect(ctx context.Context) error {
	h.mu.Lock()
	h.token, h.owner = choose(h.members, h.lock.need())
	token := h.token
	for i := range h.members {
		m := &h.members[i]
		m.busy = m.busy || m.hold != nil
	}
	members := slices.Clone(h.members)
	h.mu.Unlock()
	for i, m := range members {
		if m.hold != nil {
			h.lock.spawn(i, func() { h.raiseOrRelease(i, m, token) })
		}
	}
	h.await(ctx, h.lock.patience(), func(m member) (counts, open bool) { return m.raised, m.busy })
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: its context ended before a majority had the token: %w", ErrFewAnswer, h.lock.Errors.Silent)
	case h.trust().IsZero():
		return fmt.Errorf("%w: a majority was lost before it had the token: %w", ErrFewAnswer, h.lock.Errors.Silent)
	}
	return nil
}

// raiseOrRelease raises a primary's counter to the token. If that fails, it gives the hold back.
func (h *Majority) raiseOrRelease(primary int, of member, token int64) {
	counts := h.raise(of.hold, of.token, token)
	h.mu.Lock()
	m := &h.members[primary]
	m.busy, m.raised = false, counts
	h.mu.Unlock()
	defer signal(h.votes)
	if !counts {
		_ = of.hold.Release()
	}
}

// raise raises a primary's token counter to the majority's token, and reports whether the hold counts. A later majority
// includes one of these primaries, so its token is larger.
func (h *Majority) raise(hold Hold, own, token int64) (counts bool) {
	return own == token || hold.Raise(context.WithoutCancel(h.end), h.lock.patience(), token)
}

// keep acquires primaries that come back, and notices the loss of the majority. It returns when the Majority has ended.
func (h *Majority) keep() {
	l := h.lock
	pace := min(max(l.TTL/10, 50*time.Millisecond), time.Second)
	for h.Err() == nil {
		if !l.Fixed && (h.until.IsZero() || time.Until(h.until) > l.TTL) {
			h.reacquire()
		}
		ending.Pause(h.end, h.gone, min(pace, max(time.Until(h.trust()), time.Millisecond)))
	}
	if errors.Is(h.Err(), l.Errors.Lost) { // otherwise a holder that hangs would keep the holds that are left for ever
		_ = h.release()
	}
}

// reacquire asks again the primaries without a live hold, except those whose hold an operator has ended. Otherwise
// forcing a majority of the primaries could never end a holder that hangs.
func (h *Majority) reacquire() {
	for i, m := range h.snapshot() {
		if m.busy || m.hold != nil && m.hold.Err() == nil {
			continue
		}
		if m.hold != nil {
			why := m.hold.Err()
			h.mu.Lock()
			lost := &h.members[i]
			lost.hold, lost.err = nil, why // for Majority.why, if the majority is lost before the primary answers
			lost.forced = errors.Is(why, h.lock.Errors.Forced)
			h.mu.Unlock()
			h.lock.spawn(i, func() { _ = m.hold.Release() }) // the primary may still have the hold
		}
		h.seek(i, 4*h.lock.patience(), m.hold != nil)
	}
}

func (h *Majority) snapshot() []member {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.members)
}

// Err returns why the Majority has ended, judged by the clock, or nil.
func (h *Majority) Err() error {
	h.mu.Lock()
	err := h.err
	h.mu.Unlock()
	if err != nil || !h.trust().IsZero() {
		return err
	}
	return h.finish(h.why())
}

// why returns the error of a lost majority. It is Closed too if fewer clients are open than a majority needs.
func (h *Majority) why() error {
	open, errs := len(h.members), h.lock.Errors
	for _, m := range h.snapshot() {
		if m.hold != nil && errors.Is(m.hold.Err(), errs.Closed) || errors.Is(m.err, errs.Closed) {
			open--
		}
	}
	if open < h.lock.need() {
		return fmt.Errorf("%w: %w", errs.Lost, errs.Closed)
	}
	return errs.Lost
}

// finish ends the Majority with the reason why, unless it has ended before. It returns the reason that it ended with.
func (h *Majority) finish(why error) (ended error) {
	h.mu.Lock()
	if h.err == nil {
		h.err = why
		if errors.Is(why, h.lock.Errors.Lost) {
			close(h.lost)
		}
	}
	ended = h.err
	h.mu.Unlock()
	h.stop(ended)
	return ended
}

// Lose marks the Majority as lost, unless it has ended. Another owner has a later majority.
func (h *Majority) Lose() { _ = h.finish(h.lock.Errors.Lost) }

// holdsMajority reports whether a majority is held, counting primaries that do not know the token. If not, another
// owner could have held in the meantime, so a hold that is granted now must not count.
func (h *Majority) holdsMajority() bool { return !h.best(func(member) bool { return true }).IsZero() }

// best returns until when a majority of members that count can be trusted: the one that can be trusted longest.
func (h *Majority) best(counts func(m member) bool) time.Time {
	var untils []time.Time
	for _, m := range h.snapshot() {
		if m.hold != nil && counts(m) {
			untils = append(untils, m.hold.TrustedUntil())
		}
	}
	return Trust(h.lock.need(), untils)
}

// trust returns until when the Majority can be trusted, but not beyond h.until. After h.until it returns zero.
func (h *Majority) trust() time.Time {
	until := h.best(func(m member) bool { return m.raised })
	switch {
	case h.until.IsZero() || until.Before(h.until):
		return until
	case time.Now().Before(h.until):
		return h.until
	}
	return time.Time{}
}

// TrustedUntil returns until when the Majority can be trusted as things stand, or the zero time once it has ended.
func (h *Majority) TrustedUntil() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	return h.trust()
}

// Lost returns a channel that is closed when the Majority is lost.
func (h *Majority) Lost() <-chan struct{} { return h.lost }

// Awaited returns a channel that is closed when others wait for the end of any of its holds.
func (h *Majority) Awaited() <-chan struct{} {
	h.asked.Do(func() {
		h.mu.Lock()
		h.awaited = true
		h.mu.Unlock()
		for _, m := range h.snapshot() { // adopt sees to those that come later
			if m.hold != nil {
				m.hold.WhenWanted(h.tellWanted)
			}
		}
	})
	return h.wanted
}

// End returns a context that ends with the Majority. Its cause is the reason: after a loss it is Lost, even if the
// Majority was released after that.
func (h *Majority) End() context.Context { return h.end }

// Token returns the fencing token and the owner that it belongs to.
func (h *Majority) Token() (token int64, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token, h.owner
}

// Release ends the Majority. It returns nil if it was held until now, and otherwise why it had ended. It returns Lost
// if too few primaries still had their holds. It returns Unconfirmed if too few have confirmed the release for another
// owner to get a majority.
func (h *Majority) Release() error {
	_ = h.Err() // finds a loss by the clock first
	ended := h.finish(h.lock.Errors.NotHeld)
	h.mu.Lock()
	h.err = h.lock.Errors.NotHeld // from now on, even after a loss
	h.mu.Unlock()
	found := h.release()
	if ended != h.lock.Errors.NotHeld { //nolint:errorlint // finish returns it as it is
		return ended
	}
	return found
}

// MarkReturned says that the Majority was returned to the caller. Otherwise the name does not rest after it.
func (h *Majority) MarkReturned() {
	h.mu.Lock()
	h.returned = true
	h.mu.Unlock()
	for _, m := range h.snapshot() { // adopt sees to those that come later
		if m.hold != nil {
			m.hold.MarkReturned(true)
		}
	}
}

// GiveBack ends what a failed call has acquired. It waits for that until ctx ends, and no longer than the patience,
// because the call may be a single attempt. After that the releases go on in the background.
func (h *Majority) GiveBack(ctx context.Context) {
	_ = h.finish(h.lock.Errors.NotHeld)
	h.mu.Lock()
	for i := range h.members {
		if m := &h.members[i]; m.hold != nil {
			m.leaving, m.since = true, time.Now()
		}
	}
	h.mu.Unlock()
	for i, m := range h.snapshot() {
		if m.hold != nil {
			h.lock.spawn(i, func() {
				defer h.settled(i)
				_ = m.hold.Release()
			})
		}
	}
	left, done := h.lock.BeginLeaving(), make(chan struct{})
	h.lock.spawn(0, func() {
		defer left()
		patience := h.lock.patience()
		h.await(context.Background(), patience, func(m member) (counts, open bool) { return !m.leaving, m.leaving })
		close(done)
		// Later attempts wait until left is called: for the other primaries too, because what several calls leave behind can
		// add up to a majority. They do not wait for a primary that has been silent for long.
		h.await(context.Background(), patience, func(m member) (counts, open bool) {
			return false, (m.busy || m.leaving) && time.Since(m.since) < patience
		})
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// settled records that no request to a primary is in flight and that nothing is held there.
func (h *Majority) settled(primary int) {
	h.mu.Lock()
	h.members[primary].busy, h.members[primary].leaving = false, false
	h.mu.Unlock()
	signal(h.votes)
}

// release gives back what the primaries have granted. It waits until another owner could hold a majority, and until it
// is known whether this one was held. Other releases go on in the background. A primary that does not answer may have
// had its hold.
func (h *Majority) release() (unconfirmed error) {
	free, need := len(h.members), h.lock.need()
	results := make(chan error, free)
	for i, m := range h.snapshot() {
		if m.hold != nil {
			free--
			h.lock.spawn(i, func() {
				err := h.lock.Errors.Unconfirmed
				defer func() { results <- err }() // deferred, because a hook may end the goroutine
				err = m.hold.Release()
			})
		}
	}
	left := len(h.members) - free
	held, mayHave := 0, left // primaries that had their hold until now: for certain, and perhaps
	for ; left > 0 && (free < need || held < need && mayHave >= need); left-- {
		switch err := <-results; {
		case errors.Is(err, h.lock.Errors.Unconfirmed):
			unconfirmed = err
			continue
		case err == nil:
			held++
		default: // the primary had lost the hold before
			mayHave--
		}
		free++
	}
	switch {
	case mayHave < need:
		return h.lock.Errors.Lost
	case free >= need:
		return nil
	}
	return unconfirmed
}

// choose returns the token of the majority: the largest one, unless a majority of the primaries already has the same
// one. That one is the token of an outer hold, and it stays. A primary that was acquired later for the outer hold may
// have a larger token. But a resource that has seen the larger one would refuse the outer hold.
func choose(members []member, need int) (token int64, owner string) {
	have := map[int64]int{}
	for _, m := range members {
		if m.hold == nil {
			continue
		}
		if have[m.token]++; have[m.token] == need {
			return m.token, m.owner
		}
		if m.token > token {
			token, owner = m.token, m.owner
		}
	}
	return token, owner
}
