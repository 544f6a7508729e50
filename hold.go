package relock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/holdcontext"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// A Hold is one successful acquisition of a lock, as Acquire, TryAcquire and Resume return it. It ends with Release or
// Detach, or is lost before that. A lost hold must be released too. Err notices by the clock that the lease has ended.
// A loss in Redis, for example by ForceUnlock, may be noticed only at the next renewal or, without one, at the lease's
// end. The methods may be called from any goroutine.
type Hold struct {
	_    [0]sync.Mutex // go vet refuses copies of a Hold: they would not be told of a loss
	hold room.Hold     // guarded by the keeper's mu, except fields that never change
	lock *Lock

	reported bool // Hooks.Acquired has returned; guarded by the keeper's mu
	*extras       // nil until a field of it is needed; guarded by the keeper's mu
}

// extras are the fields that few holds need, in a struct of their own: most holds need no memory for them.
type extras struct {
	detached      bool                      // Detach has handed the hold over to a ticket
	lostc         chan struct{}             // closed on loss; made by the first call of Lost
	wantedc       chan struct{}             // closed when others wait; made by the first call of Wanted
	onWanted      []func()                  // called when others wait
	stopListening func()                    // stops listening for waiters; nil: the hold does not listen
	contexts      map[*holdContext]struct{} // they end with the hold
}

// Err returns nil while the hold is trusted, and ErrLost once it is lost. It returns ErrNotHeld after Release or
// Detach, even if the hold was lost before, and during a Cond.Wait of its owner. Err looks at the clock and does no
// I/O, so it does not see a loss in Redis of which the client has not heard. After Err has returned nil, only the
// fencing token protects work that takes time. ErrLost matches ErrNotHeld too: test for ErrLost first.
func (h *Hold) Err() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	return lockError(h.lock.Name(), h.judge())
}

// Lost returns a channel that is closed when the hold is lost. It stays open if the hold is released or detached before
// that. Every call returns the same channel. After a pause of the process it may be closed a moment late: Err is exact.
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
		if h.hold.Lost {
			close(x.lostc)
		}
	}
	return x.lostc
}

// TrustedUntil returns the instant until which nobody can be granted a conflicting hold, unless somebody removes this
// one or Redis loses it. Each renewal moves it. Others may read beside a read hold, or use other permits of a
// semaphore. It is the zero time once the hold is lost or released, and during a Cond.Wait of its owner. Compare it
// with time.Now in this process. TrustedUntil does no I/O.
func (h *Hold) TrustedUntil() time.Time {
	if h.unmade() || h.judge() != nil {
		return time.Time{}
	}
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.c.clock.Time(h.hold.Until())
}

// Token returns the fencing token. It is larger than those of all earlier grants of the name, with two exceptions. One
// is that Redis has lost the counter, or let it expire (TokenKeep), and its clock is earlier than at those grants. The
// other is that two primaries grant the lock during a failover. A resource must remember the largest token that it has
// seen, and refuse smaller ones. Then a late holder cannot do damage. Do not compare tokens of read holds or of a
// semaphore: a smaller one may still be held. Re-entries share the token. It stays after a loss or a release: only a
// Cond.Wait changes it, to a larger one. It has 19 digits: about the instant of the grant in nanoseconds since 1970, by
// the clock of Redis. The last three digits come from the owner's name.
func (h *Hold) Token() int64 {
	if h.unmade() {
		return 0
	}
	return h.token()
}

// Name returns the lock's name, as it was given to NewLock.
func (h *Hold) Name() string {
	if h.unmade() {
		return ""
	}
	return h.lock.Name()
}

// Owner returns the owner's name as Info shows it: the given name, or a generated one. A generated name begins with "~"
// and is for people: no call can re-enter such a hold. Anonymous holds of a process may share a generated name,
// because the client can pass a grant on to its next call without telling Redis. They still exclude each other.
func (h *Hold) Owner() string {
	if h.unmade() {
		return ""
	}
	return h.acquisition().owner()
}

// Context returns a context that ends when the hold is lost, when it is released, or when parent ends. After a loss or
// a release its Err is context.Canceled, and context.Cause says which: ErrNotHeld, or ErrLost if the hold was lost
// before its release. Each call of its Err checks the clock, as Hold.Err does, so it reports a loss even before Done is
// closed. It has the values of parent, and so parent's owner. The context of a hold that has ended has ended too.
//
// The hold keeps the context, some 400 bytes, until either has ended. So do not make one for each step of a long hold,
// unless each step has a parent that is cancelled after it.
func (h *Hold) Context(parent context.Context) context.Context {
	if h.unmade() {
		return endedContext(parent, errUnmadeHold)
	}
	ctx := holdcontext.New(parent, h, h.endCause)
	// AfterFunc may ask parent for its state. If parent is a context of a hold of the same lock, that locks the
	// keeper's mu, so this must not run under it.
	ctx.Stop = context.AfterFunc(parent, func() { h.forget(ctx) })
	_ = h.judge()
	k := h.keeper()
	k.mu.Lock()
	over := h.over() != nil
	if !over {
		x := h.extra()
		if x.contexts == nil {
			x.contexts = make(map[*holdContext]struct{})
		}
		x.contexts[ctx] = struct{}{}
	}
	k.mu.Unlock()
	switch {
	case over:
		ctx.Stop()
		ctx.Cancel(h.endCause())
	case parent.Err() != nil:
		h.forget(ctx) // parent may have ended before the context was registered
	}
	return ctx
}

// Release ends the hold. It returns nil if the lock was held until now, and ErrLost if it was lost earlier. A second
// Release returns ErrNotHeld: test for ErrLost first, it matches both. ErrUnconfirmed means that Redis did not answer
// within the ReleaseTimeout, or refused: the hold has ended here, and ends in Redis with its lease at the latest. If
// Close interrupts Release, the error is ErrClosed too. While the owner waits on a condition, Release returns
// ErrNotHeld and ends the hold: the owner's Cond.Wait returns without it.
func (h *Hold) Release() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	at := h.keeper().look()
	return lockError(h.lock.Name(), h.end(&at))
}

// Detach ends the hold in this process without releasing the lock, and returns a ticket. Client.Resume takes the hold
// over with that ticket, in this process or another, under the same token. Nobody can get the lock in between. Until
// Resume nobody renews the hold, and it ends after keep, which is from 1 ms to 24 h, in whole milliseconds.
//
// Detach ends the hold as Release does: Err and Unlock return ErrNotHeld, its contexts end, and Lost stays open. ctx
// may be one of these contexts: the request then ends at ctx's deadline, or after a TTL if ctx has none. A Do whose
// function detaches the hold does not release it, and returns the function's error. If Redis does not answer before ctx
// ends, or refuses, Detach returns ErrUnconfirmed, perhaps with ctx's error. If Close interrupts Detach, the error is
// ErrClosed too. In these cases the hold has ended, and the client releases the lock. For a lost hold Detach returns
// ErrLost and ends the hold. After a Release it returns ErrNotHeld.
//
// If Detach refuses without asking Redis, the hold stays as it was. It refuses a keep out of range (ErrInvalidOption),
// a ctx that has ended, and a hold whose owner waits on a condition (ErrNotHeld). It returns ErrTooManyHolds if the
// hold shares its grant with other holds of its owner in this client.
func (h *Hold) Detach(ctx context.Context, keep time.Duration) (Ticket, error) {
	if h.unmade() {
		return "", fmt.Errorf("relock: %w", errUnmadeHold)
	}
	t, err := h.detach(ctx, keep)
	return t, lockError(h.lock.Name(), err)
}

func (h *Hold) unmade() bool { return h == nil || h.hold.Session == nil }

// extra returns the extras for writing, and makes them if needed. It needs the keeper's mu.
func (h *Hold) extra() *extras {
	if h.extras == nil {
		h.extras = &extras{}
	}
	return h.extras
}

func (h *Hold) acquisition() *acquisition { return acquired(h.hold.Session.Acquisition) }

func (h *Hold) keeper() *keeper { return h.acquisition().keeper }

// judge loses the hold if its time is over by the clock, and returns nil if the hold is live, or why it is not. It runs
// no hook itself (see tellApart): its caller may be package context, which calls Err and Value of a hold's context.
func (h *Hold) judge() error {
	k := h.keeper()
	at := k.begin()
	defer k.end(&at)
	if !h.hold.Released {
		h.hold.Session.Check(&at)
	}
	return h.state()
}

// state returns nil if the hold is live, or why it is not. It needs the keeper's mu, and a session judged by the clock.
func (h *Hold) state() error {
	switch {
	case h.hold.Released:
		return ErrNotHeld
	case h.hold.Lost:
		return lostFor(h.hold.Why())
	case h.hold.Session.Absent():
		return errAbsent
	}
	return nil
}

// errAbsent is the state of a hold whose owner waits on a condition.
var errAbsent = fmt.Errorf("%w: its owner waits on a condition", ErrNotHeld)

// over is state, but returns nil for a hold whose owner waits on a condition: that hold has not ended.
func (h *Hold) over() error {
	if err := h.state(); err != errAbsent { //nolint:errorlint // made here, never wrapped
		return err
	}
	return nil
}

// reads reports whether the hold is for reading, as after a Downgrade. A hold of a semaphore counts as one for reading.
func (h *Hold) reads() bool {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return h.hold.Read
}

func (h *Hold) token() int64 { return h.tokenOf(h.acquisition().owner()) }

// tokenOf is token for a caller that already has the owner's name.
func (h *Hold) tokenOf(owner string) int64 {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return wire.Token(h.hold.Token, owner)
}

// end ends the hold here and then in Redis, and returns the result of the Release. The caller has begun the step by
// keeper.look, and end unlocks the keeper's mu.
func (h *Hold) end(at *room.Step) error {
	a := h.acquisition()
	k := a.keeper
	err := h.state()
	follows := h.hold.End(at)
	if err != nil && err != errAbsent { //nolint:errorlint // made here, never wrapped
		k.end(at)
		return err
	}
	cancel := h.cancelAll(ErrNotHeld)
	var last releasing
	if follows == room.Last {
		last.prepare(a)
	}
	k.end(at)
	cancel()
	switch follows {
	case room.Fewer:
		err = a.tellFewer()
	case room.Last:
		err = last.releaseNow(time.Now().Add(k.c.cfg.releaseTimeout))
	}
	h.releasedHook(err, at.Now)
	return err
}

// giveBack ends a hold that the acquiring call does not return to its caller. It does not wait for the release.
func (h *Hold) giveBack() {
	k := h.keeper()
	at := k.begin()
	h.hold.GiveBack(&at)
	k.end(&at)
}

// releaseUnlessDetached is Release, but returns nil if Detach has ended the hold, as the function of a Do may do.
func (h *Hold) releaseUnlessDetached() error {
	err := h.Release()
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.extras != nil && h.detached {
		return nil
	}
	return err
}

// skipRest takes the hold out of the count Session.Used. The name rests after the session only if that is above zero.
func (h *Hold) skipRest() {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	h.hold.Session.Used--
}

// markReturned says that a call returns the hold together with the others that it has taken: the hold is no longer
// pending. With rests, the name rests after it.
func (h *Hold) markReturned(rests bool) {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	h.hold.Pending = false
	if rests {
		h.hold.Session.Used++
	}
}

// raise raises the token counter in Redis to at least that token; 0 raises nothing. A quorum needs it: its token comes
// from one of several primaries. held says whether Redis has the hold: if so, the counter is raised.
func (h *Hold) raise(ctx context.Context, within time.Duration, token int64) (held bool, err error) {
	a := h.acquisition()
	instant := wire.Instant(token) // the room and Redis store tokens without the owner's digits
	raw, err := h.lock.c.transport.Do(ctx, within, h.lock.c.wire.Raise(a.session(), instant, h.lock.terms.TTL))
	if err == nil {
		held, err = wire.DecodeRaise(raw)
	}
	if err == nil && held && token > 0 {
		a.keeper.mu.Lock()
		h.hold.Session.Raise(instant)
		a.keeper.mu.Unlock()
	}
	return held, err
}

// downgrade makes the hold a read hold here first, and then tells Redis, which may execute the request late or never.
// So Redis has a write hold or a read hold for it, and with either a read hold here is safe. It returns errHoldTaken if
// another call took the hold first.
func (h *Hold) downgrade(ctx context.Context, rw *RWLock) error {
	a := h.acquisition()
	switch err := a.takeTurn(ctx); {
	case ending.Is(err, ErrClosed):
		return h.judge() // Close has lost the hold
	case err != nil:
		return err
	}
	x := &ledger.Wish{}
	if err := h.downgradeHere(rw, x); err != nil {
		return err
	}
	_, err := a.tell(ctx, x, false)
	a.keeper.mu.Lock()
	a.Session.Ledger.Withdraw(x)
	a.keeper.mu.Unlock()
	switch {
	case err == nil:
		return nil
	case ending.Is(err, errGone):
		return h.judge()
	case transport.Hopeless(err):
		return fmt.Errorf("%w, and will not be: the hold is a read hold now, which the next renewal tells redis: %w", ErrUnconfirmed, err)
	}
	a.tellLater()
	return fmt.Errorf("%w: the hold is a read hold now, and the client goes on telling redis: %w", ErrUnconfirmed, err)
}

// downgradeHere does what downgrade does before Redis is told. It gives back the session's turn, which the caller has.
// It returns errHoldTaken if another call took the hold first, ErrLost if it is lost, or why the reading side bars it.
func (h *Hold) downgradeHere(rw *RWLock, x *ledger.Wish) (err error) {
	defer func() { <-h.acquisition().turn.place }()
	k := h.keeper()
	at := k.look()
	defer k.end(&at)
	if err = h.state(); errors.Is(err, ErrLost) {
		return err // its Unlock is still to come
	}
	bar := h.hold.Downgrade(&rw.r.holds, x, &at)
	if bar == room.Unheld {
		return errHoldTaken
	}
	return rw.r.barred(bar, nil)
}

// lose closes Lost's channel. It needs the keeper's mu. cancel ends the contexts, must run without mu, calls no hook.
func (h *Hold) lose(why error) (cancel func()) {
	if h.extras != nil && h.lostc != nil {
		close(h.lostc)
	}
	return h.cancelAll(why)
}

// cancelAll returns what ends the contexts and stops listening. It needs the keeper's mu; cancel must run without it.
func (h *Hold) cancelAll(cause error) (cancel func()) {
	if h.extras == nil {
		return func() {}
	}
	stopListening, contexts := h.stopListening, h.contexts
	h.stopListening, h.contexts = nil, nil
	return func() {
		if stopListening != nil {
			stopListening()
		}
		for ctx := range contexts {
			ctx.Stop()
			ctx.Cancel(cause)
		}
	}
}

// endCause returns the cause for the hold's contexts if the hold has ended, else nil. That is its loss, even if it was
// released after that. A hold whose owner waits on a condition has not ended.
func (h *Hold) endCause() error {
	err := h.judge()
	if err == nil || err == errAbsent { //nolint:errorlint // made here, never wrapped
		return nil
	}
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.hold.Lost {
		return lostFor(h.hold.Why())
	}
	return err
}

// forget takes a context whose parent has ended off the hold: a long hold would collect them.
func (h *Hold) forget(ctx *holdContext) {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.extras != nil { // parent may have ended before the context was registered
		delete(h.contexts, ctx)
	}
}

// logLoss logs a loss as an error, or as a warning if an option of the hold, such as MaxHold, has ended it.
func (h *Hold) logLoss(why error) {
	c := h.lock.c
	log := c.cfg.log.Error
	if loss.AskedFor(why) {
		log = c.cfg.log.Warn
	}
	log("lock lost", slog.String("lock", h.lock.Name()), slog.String("owner", h.acquisition().owner()), slog.Int64("token", h.token()), slog.Any("err", why))
}

func (h *Hold) event(err error) Event {
	owner := h.acquisition().owner()
	return Event{Name: h.lock.Name(), Owner: owner, Token: h.tokenOf(owner), Err: err, Kind: h.lock.kind, Read: h.lock.kind != wire.KindSemaphore && h.reads()}
}

// acquiredHook calls Hooks.Acquired, which must be set. began is the start of the wait. Lost must come after Acquired,
// so a loss is told when the hook has returned. If the hook panics, the hold is given back, so Released is called.
func (h *Hold) acquiredHook(ctx context.Context, began clock.Instant) {
	hook := h.lock.c.cfg.hooks.Acquired
	k := h.keeper()
	k.mu.Lock()
	since := h.hold.Acquired
	k.mu.Unlock()
	ev := h.event(nil)
	ev.Waited = since.Sub(began)
	returned := false
	defer func() {
		if !returned { // of hooks joined by Join, some may have been told of the hold
			h.releasedHook(nil, since)
		}
	}()
	hook(ctx, ev)
	returned = true
	k.mu.Lock()
	h.reported = true
	lost, why := h.hold.Lost, lostFor(h.hold.Why())
	k.mu.Unlock()
	if lost {
		k.c.tellApart(func() { h.lostHook(why, k.c.clock.Now()) })
	}
}

// releasedHook calls Hooks.Released. err is the result of the release, which ended the hold at now.
func (h *Hold) releasedHook(err error, now clock.Instant) {
	if ending.Is(err, ErrLost) { // only the release has found the loss, so nothing has logged it
		h.logLoss(err)
	}
	if hook := h.lock.c.cfg.hooks.Released; hook != nil {
		ev := h.event(err)
		ev.Held = now.Sub(h.hold.Acquired)
		hook(ev)
	}
}

// lostHook logs the loss and calls Hooks.Lost.
func (h *Hold) lostHook(why error, now clock.Instant) {
	h.logLoss(why)
	c := h.lock.c
	if hook := c.cfg.hooks.Lost; hook != nil {
		ev := h.event(why)
		ev.Held = now.Sub(h.hold.Acquired)
		hook(ev)
	}
}

// detach is Detach, but its errors do not name the lock.
func (h *Hold) detach(ctx context.Context, keep time.Duration) (Ticket, error) {
	refused := cmp.Or(between("a ticket's time", keep, time.Millisecond, maxTTL), unusable(ctx))
	a, t := h.acquisition(), h.ticket()
	k := a.keeper
	at := k.begin()
	now := at.Now
	h.hold.Session.Check(&at)
	err := cmp.Or(h.state(), refused) // a loss first: ctx may be a context of h, and then the loss has ended it
	if err == nil && !h.hold.Detach(&at) {
		err = fmt.Errorf("%w: the owner has others in this client, which would be handed over too; unlock them first", ErrTooManyHolds)
	}
	if err != nil {
		if !h.hold.Released && h.hold.Lost { // it ends as with Release
			h.hold.End(&at)
		}
		k.end(&at)
		return "", err
	}
	t.Read = h.hold.Read // a Downgrade may have changed it until now
	r := a.releasing()
	d := &detaching{r, t.Nonce, keep, k.c.wire.Detach(r.note.Keys, a.session(), t.Nonce, h.hold.Token, h.hold.Read, keep, r.note.Doubt)}
	cancel := h.cancelAll(ErrNotHeld)
	k.end(&at)
	request, release := h.outlasting(ctx)
	defer release()
	cancel()
	if err = d.send(request); err != nil {
		h.releasedHook(err, now)
		return "", err
	}
	k.mu.Lock()
	h.extra().detached = true
	k.mu.Unlock()
	given := false
	defer func() {
		if !given { // the hook has panicked or ended its goroutine
			d.releaseTicket(func(context.Context) {})
		}
	}()
	h.releasedHook(nil, now)
	given = true
	return t.text(), nil
}

// outlasting returns a context for the request that hands h to a ticket. That is ctx, unless ctx descends from a
// context of h, which ends before the request is sent. Then it ends with the parent of h's outermost context, and at
// ctx's deadline or, without one, after a TTL.
func (h *Hold) outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	var own *holdContext
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.Parent.Value(holdKey{}).(*holdContext) {
		if c.Hold == h {
			own = c // go on: the outermost context of h counts
		}
	}
	if own == nil {
		return ctx, func() {}
	}
	request, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	end := func() { cancel(context.Cause(own.Parent)) }
	free := context.AfterFunc(own.Parent, end)
	drop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !ending.Is(cause, ErrNotHeld) {
			cancel(cause)
		}
	})
	until, ok := ctx.Deadline()
	if !ok { // ctx ends with the hold, so a later cancel by its caller does not show
		until = time.Now().Add(h.hold.Terms.TTL) // by then the lease has ended, unless the ticket has the hold
	}
	bounded, stop := context.WithDeadline(request, until)
	return bounded, func() { free(); drop(); stop(); cancel(context.Canceled) }
}

// ticket returns a new ticket for the hold. Its Read is not set yet.
func (h *Hold) ticket() ticket {
	a, terms := h.acquisition(), h.hold.Terms
	return ticket{
		Prefix: h.lock.c.cfg.prefix, Name: h.lock.Name(), Kind: a.keeper.kind, Owner: a.owner(), Nonce: wire.NewNonce().String(),
		TTL: terms.TTL, MaxHold: terms.MaxHold, Fixed: terms.Fixed, Local: terms.Local, Replicas: terms.Replicas.N, Within: terms.Replicas.Timeout,
		Weight: a.Terms.Permits.Weight, Permits: a.Terms.Permits.Of,
	}
}
