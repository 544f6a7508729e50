package relock

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/wire"
)

// A Hold is one successful acquisition of a lock. It ends with Release, or is lost before that. The
// hold always knows which, by the clock. Its methods may be called from any goroutine.
type Hold struct {
	hold room.Hold // guarded by the keeper's mu, but for what does not change
	lock *Lock

	// Guarded by the mu of the handle that has it, whose list in is:

	in           atomic.Pointer[holdList]
	above, below *Hold // the next newer and older one there
	dead         bool  // found lost
	listed       bool  // has been there: it is put back, if at all, by what took it off

	unlock bool // made by Lock or TryLock, to be ended by Unlock; it does not change

	told    bool // Hooks.Acquired has been told of it, or is about to be; guarded by the keeper's mu
	*extras      // nil until there is any; guarded by the keeper's mu
}

// extras are what few holds have.
type extras struct {
	detached bool                      // handed over to a ticket, so that a Do has nothing to release
	moved    *Lock                     // the reading side it was moved to by a downgrade
	lostc    chan struct{}             // closed on loss; made by the first Lost
	contexts map[*holdContext]struct{} // that end with the hold
}

// extra returns the extras, to be written. It needs the keeper's mu.
func (h *Hold) extra() *extras {
	if h.extras == nil {
		h.extras = &extras{}
	}
	return h.extras
}

// newHold returns a hold of the handle, to be made one of a session.
func (l *Lock) newHold(unlock bool) *Hold {
	h := &Hold{lock: l, unlock: unlock}
	h.hold.Of, h.hold.Terms, h.hold.Read = h, &l.terms.Terms, l.read
	return h
}

// acquisition is what the hold is of.
func (h *Hold) acquisition() *acquisition { return acquired(h.hold.Session.Acquisition) }

func (h *Hold) keeper() *keeper { return h.acquisition().keeper }

// judge returns the hold's state now.
func (h *Hold) judge() error {
	k := h.keeper()
	at := k.begin()
	defer k.end(&at)
	if !h.hold.Released() {
		h.hold.Session.Check(&at)
	}
	return h.state()
}

// peek is judge without the clock, for callers that hold a handle's mutex, under
// which nobody's hook may run. They have judged before.
func (h *Hold) peek() error {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return h.state()
}

func (h *Hold) reads() bool {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return h.hold.Read
}

func (h *Hold) downgraded() *Lock {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.extras == nil {
		return nil
	}
	return h.moved
}

// state needs the keeper's mu, after a check.
func (h *Hold) state() error {
	switch {
	case h.hold.Released():
		return ErrNotHeld
	case h.hold.Lost():
		return lostFor(h.hold.Why())
	case h.hold.Session.Absent():
		return errAbsent
	}
	return nil
}

// over is state, but for a hold whose owner waits on a condition: that goes on.
func (h *Hold) over() error {
	if err := h.state(); err != errAbsent { //nolint:errorlint // made here, never wrapped
		return err
	}
	return nil
}

// Err returns nil while the hold is trusted, ErrLost once it is lost, and ErrNotHeld after its
// release. It is judged by the clock at the call, and does no I/O. A nil is true at that instant.
// Only the fencing token protects work that takes time after it.
func (h *Hold) Err() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	if err := h.judge(); err != nil {
		return lockError(h.lock.Name(), err)
	}
	return nil
}

// Lost returns a channel that is closed when the hold is lost. It stays open if the hold is
// released in time.
func (h *Hold) Lost() <-chan struct{} {
	if h.unmade() {
		return closed
	}
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	x := h.extra()
	if x.lostc == nil {
		x.lostc = make(chan struct{})
		if h.hold.Lost() {
			close(x.lostc)
		}
	}
	return x.lostc
}

// TrustedUntil returns the instant until which no other process can get the lock, as things stand.
// Each renewal moves it. It is the zero time once the hold is lost or released.
func (h *Hold) TrustedUntil() time.Time {
	if h.unmade() || h.judge() != nil {
		return time.Time{}
	}
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.c.clock.Time(h.hold.Until())
}

// Token returns the fencing token. It is larger than that of every earlier grant of the lock's
// name. A resource must remember the largest token that it has seen, and refuse smaller ones. Then
// a holder that does not know of its loss cannot do damage.
//
// Re-entries share the token of the outer hold. After a Cond.Wait the token is larger. A token has
// 19 digits: about the instant of the grant in nanoseconds since 1970, by the clock of Redis, of
// which the last three digits are the owner's.
func (h *Hold) Token() int64 {
	if h.unmade() {
		return 0
	}
	return h.token()
}

func (h *Hold) token() int64 { return h.tokenOf(h.acquisition().owner()) }

// tokenOf is token, for who has the owner's name already.
func (h *Hold) tokenOf(owner string) int64 {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return wire.Token(h.hold.Token, owner)
}

// Name returns the lock's name.
func (h *Hold) Name() string {
	if h.unmade() {
		return ""
	}
	return h.lock.Name()
}

// Owner returns the owner's name as Info shows it: the given name, or a generated one. A generated
// name begins with "~" and is for people: no call can re-enter such a hold. Anonymous holds that a
// process passes on within itself share one generated name, because they are one grant in Redis.
// They exclude each other like any others.
func (h *Hold) Owner() string {
	if h.unmade() {
		return ""
	}
	return h.acquisition().owner()
}

// Release ends the hold. It returns nil if the lock was held until now, or ErrLost if it was lost
// earlier. It returns ErrNotHeld if the hold was released before, and ErrUnconfirmed if Redis did
// not answer within the ReleaseTimeout. While the owner waits on a condition it returns ErrNotHeld,
// and the hold has ended: the wait returns without it.
func (h *Hold) Release() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	h.unlist()
	if err := h.end(); err != nil {
		return lockError(h.lock.Name(), err)
	}
	return nil
}

// end ends the hold here, then in Redis.
func (h *Hold) end() error {
	a := h.acquisition()
	k := a.keeper
	at := k.begin()
	if !h.hold.Released() {
		h.hold.Session.Check(&at)
	}
	err := h.state()
	if err == errAbsent { //nolint:errorlint // made here, never wrapped
		return h.endAbsent(&at)
	}
	if err != nil {
		h.paid()
		h.hold.End(&at)
		defer h.stayOff()
		k.end(&at) // a loss that is found here ends the contexts, as any does: before the hooks
		return err
	}
	ending := h.hold.End(&at)
	cancel := h.cancelAll(ErrNotHeld)
	var last releasing
	if ending == room.Last {
		last.begin(a)
	}
	k.end(&at)
	h.stayOff()
	runAll(cancel)
	err = a.finish(ending, &last)
	h.releasedHook(err, at.Now)
	return err
}

// owe counts an exclusive hold of a named owner from its loss (1) to its Unlock (-1). Until then
// the owner is told of the loss by any handle: else a nested call would get a new grant, and
// nobody would notice that others may have held between. owe needs the keeper's mu.
func (h *Hold) owe(n int) {
	a := h.acquisition()
	if !a.Named() || h.hold.Read || h.hold.Terms.Apart { // a quorum takes a primary that was lost again
		return
	}
	c, key := a.keeper.c, lostKey{a.keeper.kind, a.keeper.hash, a.owner()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lostOf == nil {
		c.lostOf = make(map[lostKey]int)
	}
	if c.lostOf[key] += n; c.lostOf[key] == 0 {
		delete(c.lostOf, key)
	}
}

// paid ends what owe has begun, for a hold that is about to end. It needs the keeper's mu.
func (h *Hold) paid() {
	if h.hold.Lost() && !h.hold.Released() {
		h.owe(-1)
	}
}

// owes returns ErrLost if the owner has lost a hold of the lock in this client and has not
// unlocked it.
func (l *Lock) owes(owner string) error {
	if owner == "" {
		return nil
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if l.c.lostOf[lostKey{l.kind, l.hash, owner}] > 0 {
		return fmt.Errorf("%w: owner %q has lost a hold of the lock; unlock that hold first", ErrLost, owner)
	}
	return nil
}

// endAbsent ends a hold whose owner waits on a condition: the wait returns without it. No
// later call would end it. It gives the keeper's mu back.
func (h *Hold) endAbsent(at *room.Step) error {
	now := at.Now
	h.hold.GiveBack(at)
	cancel := h.cancelAll(ErrNotHeld)
	h.keeper().end(at)
	h.stayOff() // the wait may have returned meanwhile
	runAll(cancel)
	h.releasedHook(errAbsent, now)
	return errAbsent
}

// finish has Redis hear of the end of a hold.
func (a *acquisition) finish(ending room.Ending, last *releasing) error {
	switch ending {
	case room.Fewer:
		return a.lower()
	case room.Last:
		return last.soon(time.Now().Add(a.keeper.c.cfg.releaseTimeout))
	case room.WasLost:
		return a.fate()
	}
	return nil
}

// giveBack ends a hold that its call will not return.
func (h *Hold) giveBack() {
	k := h.keeper()
	at := k.begin()
	h.paid()
	h.hold.GiveBack(&at)
	k.end(&at)
	h.stayOff()
}

// lose takes note of a loss. It needs the keeper's mu; what it returns runs without it,
// and calls nobody.
func (h *Hold) lose(why error) (cancel []func()) {
	if h.extras == nil {
		return nil
	}
	if h.lostc != nil {
		close(h.lostc)
	}
	return h.cancelAll(why)
}

// cancelAll returns what ends the contexts of the hold. It needs the keeper's mu; what it
// returns runs without it.
func (h *Hold) cancelAll(cause error) []func() {
	if h.extras == nil || h.contexts == nil {
		return nil
	}
	contexts := h.contexts
	h.contexts = nil
	return []func(){func() {
		for ctx := range contexts {
			ctx.stop()
			ctx.cancel(cause)
		}
	}}
}
