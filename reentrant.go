package relock

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// A Lock is a handle on the exclusive lock of one name, on one side of a read/write lock, or on a semaphore. Any number
// of handles, in any number of processes, stand for the same lock. A handle costs nothing and needs no closing, and
// goroutines may share it. Calls on a nil or zero Lock return ErrInvalidOption, or a zero result if they have no error.
//
// Without an owner, each acquisition of an exclusive lock excludes every other, as with sync.Mutex. That includes one
// by the same goroutine or through the same handle. Named owners (Owner, WithOwner) re-enter: each of their holds needs
// its own Unlock, in any order. Within one Client, an Unlock synchronizes before the return of the next holder's Lock,
// as with sync.Mutex. Between Clients only the order of the holds is guaranteed, and no memory is synchronized.
type Lock struct {
	*spec
	_     [0]sync.Mutex // go vet refuses copies of a Lock: each would have its own list of holds
	hash  string        // its key in Redis, which contains the name; if spec.err is set, the name alone
	holds room.Handle   // its holds that are not unlocked yet; guarded by the keeper's mu
}

// Lock waits until the caller holds the lock. ctx bounds the wait, not the hold: if ctx ends first, Lock returns its
// error. If ctx has ended before the call, Lock fails even if the lock is free. While Redis does not answer, Lock keeps
// asking: if ctx ends then, the error is also ErrUnavailable. ErrClosed, ErrDeadlock, ErrInvalidName, ErrInvalidOption,
// ErrKind, ErrOwnerMismatch, ErrReplicas, ErrTooManyHolds and ErrUpgrade end the wait at once. So does a lasting
// refusal by Redis, such as a missing permission, which is not ErrUnavailable.
//
// A handle of an exclusive lock has the holds of one grant at a time: an Unlock never ends the hold of a later grant.
// If a hold of the handle is lost, Lock waits until that hold has been unlocked. A named owner that lost a hold does
// not wait: its calls return ErrLost, on every handle of the lock in this client, until it has unlocked that hold.
// Redis may grant the handle the lock again before this client knows of a loss. Then the older hold is lost at that
// instant, and the call gives the new grant back and waits or fails as above. Calls on other handles do not wait for
// that Unlock: goroutines that must not wait for each other's Unlock need a handle each.
func (l *Lock) Lock(ctx context.Context) error {
	_, err := l.acquire(ctx, manner{unlock: true})
	return err
}

// TryLock is Lock for at most the given time. If it returns true, the caller holds the lock and must call Unlock. It
// returns (false, nil) if the lock was taken the whole time. Redis' latest answer said so or, with a wait above zero,
// this client held the lock and the call stood in line for it. A grant that came too late to be used counts as taken.
// After an error the caller holds nothing, and must not call Unlock: the client releases what Redis may have granted.
// The error is ErrLost if a lost hold of the handle, or of the call's named owner, must be unlocked first. It is
// ErrUnavailable if Redis answered no question, or failed to answer the latest in the time of one attempt (below). A
// call that waits asks again after a third of the TTL, or 10 s. Other errors are those of Lock.
//
// With a wait of zero or less it makes one attempt. That takes at most a third of the TTL, or 100 ms if that is longer,
// but never more than 2 s. With Replicas it may take their timeout plus a twelfth of the TTL, if that is longer.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	_, err := l.try(ctx, wait, manner{unlock: true, falseIfTaken: true})
	return tryResult(err)
}

// Acquire is Lock, but returns the hold: it waits until the caller holds the lock or ctx ends, and returns the errors
// of Lock. The caller must end the hold with Release, even after a loss.
func (l *Lock) Acquire(ctx context.Context) (*Hold, error) {
	return l.acquire(ctx, manner{}) // the hold is on the handle too, but an Unlock ends it only if there is no other
}

// TryAcquire is TryLock, but returns the hold. The caller must end it with Release, even after a loss. If the lock was
// taken for the whole wait, the error is ErrNotAcquired. If Redis did not answer, it is ErrUnavailable. If ctx ended
// first, it is ctx's error, perhaps with ErrUnavailable. With a wait of zero or less it makes one attempt.
func (l *Lock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	return l.try(ctx, wait, manner{})
}

// Unlock ends one hold of this handle that Lock or TryLock acquired: a lost one first, else the newest. If the handle
// has holds of several grants, as a reading side or a semaphore may, Unlock ends the oldest instead of the newest. It
// ends a hold of Acquire or Do only if there is no other. Each success needs exactly one Unlock, even after a loss.
//
// Unlock returns nil if the lock was held until now, ErrLost if the hold was lost before, and ErrNotHeld if there is no
// hold. ErrLost matches ErrNotHeld too: test for ErrLost first. ErrUnconfirmed means that Redis did not answer within
// the ReleaseTimeout: the hold has ended here, and the client keeps trying to tell Redis. If Redis refuses, Unlock
// returns ErrUnconfirmed at once: the next renewal for the owner's other holds, or the lease, ends the hold. If Close
// interrupts the release, the error is ErrClosed too. If the handle has only holds whose owners wait on a condition,
// Unlock ends one of them and returns ErrNotHeld: that owner's Cond.Wait returns without it.
func (l *Lock) Unlock() error {
	if err := l.bad(); err != nil {
		return lockError(l.Name(), err)
	}
	err := errNoHold
	if k := l.c.registry.find(l); k != nil {
		defer l.c.registry.leave(k)
		at := k.look()
		if h := l.holds.Next(); h != nil {
			err = h.Of.(*Hold).end(&at)
		} else {
			k.end(&at)
		}
	}
	if err != nil {
		return lockError(l.Name(), err)
	}
	return nil
}

var errNoHold = fmt.Errorf("%w by this handle", ErrNotHeld)

// Do acquires the lock as Lock does, runs fn, and releases the lock. If the lock cannot be acquired, fn does not run,
// and Do returns Lock's error. fn's context descends from ctx, ends with it, and names ctx's owner if there is one. It
// also ends when the hold is lost, with ErrLost as its cause. Do returns fn's error joined with the error of the
// release. After a loss the release always returns ErrLost. It may return ErrUnconfirmed even if fn succeeded. A nil fn
// is ErrInvalidOption. If fn panics or calls runtime.Goexit, Do releases the lock and the panic goes on.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return during(ctx, l.Acquire, fn)
}

// TryDo is Do, but waits for the lock as TryLock does. ran says whether fn ran. If the lock was taken for the whole
// wait, TryDo returns (false, nil). An error with ran false says why the lock was not acquired, such as ErrUnavailable
// or ctx's error. With ran true the error is fn's, joined with that of the release, as Do returns it. A nil fn is
// ErrInvalidOption. With a wait of zero or less it makes one attempt.
func (l *Lock) TryDo(ctx context.Context, wait time.Duration, fn func(ctx context.Context) error) (ran bool, err error) {
	return tryDuring(ctx, wait, func(ctx context.Context, wait time.Duration) (*Hold, error) {
		return l.try(ctx, wait, manner{falseIfTaken: true})
	}, fn)
}

// Name returns the lock's name, as it was given to NewLock.
func (l *Lock) Name() string {
	switch {
	case l == nil || l.spec == nil:
		return ""
	case l.err != nil:
		return l.hash // the name as it was given: see newLock
	}
	return key.Name(l.c.cfg.prefix, l.hash)
}

// HoldCount returns the number of holds of this handle in this process that are neither unlocked nor lost, judged by
// the clock. Holds of Acquire and Do count too, but not those whose owner waits on a condition. It does no I/O.
func (l *Lock) HoldCount() (live int) {
	l.look(func() { live = l.holds.Live() })
	return live
}

// Token returns the fencing token of the newest hold of this handle that is neither unlocked nor in a Cond.Wait, even
// if it is lost. Without such a hold it returns 0. On a reading side or a semaphore it may be another goroutine's: use
// Acquire and Hold.Token.
func (l *Lock) Token() int64 {
	if h := l.newest(); h != nil {
		return h.token()
	}
	return 0
}

// Lost returns the channel that is closed when the newest hold of this handle that is not yet unlocked is lost. Holds
// of Acquire and Do count too, holds in a Cond.Wait do not. Without such a hold it returns nil, on which a receive
// blocks: call it after Lock. Unlock does not close the channel, and a later hold has its own. On a reading side or a
// semaphore the newest hold may be another goroutine's: use Acquire and Hold.Lost.
func (l *Lock) Lost() <-chan struct{} {
	if h := l.newest(); h != nil {
		return h.Lost()
	}
	return nil
}

// Info reads from Redis who holds the lock and how many wait, whatever kind of lock the name is. A free lock has no
// Holders. A read is tried three times, for up to 5 s each. If none is answered, the error is ErrUnavailable, and also
// ctx's error if ctx ended first. More than 250 holders are read in pages. Holders that come or go between pages may be
// missing; all others are listed once. Holder.Holds may be too large for an owner whose lease is renewed between pages.
// Labels that this client reads for the first time are "" if Redis does not answer within a second.
func (l *Lock) Info(ctx context.Context) (Info, error) {
	info, _, err := labelledInfo(ctx, l)
	return info, err
}

// Waiters reads the queue from Redis, in its order: the first waiter is next. It returns nil if nobody waits. Several
// calls may share an entry, and some calls have none: see Waiter. A queue longer than 500 is read in pages, and may
// change between pages. A read is tried three times, for up to 5 s each. If no try is answered, the error is
// ErrUnavailable, and also ctx's error if ctx ended first.
func (l *Lock) Waiters(ctx context.Context) ([]Waiter, error) {
	var all []Waiter
	for last := int64(0); ; {
		raw, err := ask(ctx, l, func(e *wire.Encoder, keys key.Keys) transport.Call { return e.Waiters(keys, last, waitersPage) })
		if err != nil {
			return nil, err
		}
		page, next, err := wire.DecodeWaiters(raw)
		if err != nil {
			return nil, lockError(l.Name(), err)
		}
		all = appendWaiters(all, page)
		if last = next; last == 0 {
			l.c.labelWaiters(ctx, all)
			return all, nil
		}
	}
}

// ForceUnlock reads who holds the lock, in any process, and ends these grants. A later grant stays. If nobody holds the
// lock but its name rests (AtLeast, Once), it ends that rest. It reports whether it ended a grant or a rest. Its errors
// are those of Info. After an error some grants may have ended, and the result may be true. The handle may be of
// another kind than the lock. The next waiter gets the lock. The holders lose their holds: they are told at once, or
// notice at the next renewal or the lease's end. Until then they may work beside the next holder: only the fencing
// token protects. Use it when a holder is known to be gone. To end only what Info showed, use ForceUnlockHolder.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	ended, err := forceHolders(ctx, l)
	return len(ended.Holders) > 0 || ended.Resting > 0, err
}

// ForceUnlockHolder ends the grant of one holder, as Info showed it, with all its holds in every process. Nothing else
// changes: other readers and other holders of permits keep their holds, and the queue keeps its order. The next waiter
// gets the lock unless another holder excludes that waiter. The holder is told as by ForceUnlock.
//
// h.Token and h.Owner name the grant; one may be zero and then matches any. Redis compares the token and ends the grant
// in one step, so a later grant is safe. But since Info read it, a process may have passed the grant on to another of
// its calls, or kept it (Sticky) for one: then that call's hold ends. Branches that entered through the grant lose
// their holds too. Without a Token it ends the grant that the owner has at the call, even if that grant began later. It
// returns true if it ended the grant, and false if that holder does not hold the lock any more. With neither an owner
// nor a token it returns ErrInvalidOption. Its other errors are those of Info. After an error the grant may have ended,
// and the result may be true. If Redis did not answer the first request, the grant may have ended by itself before the
// second: then the result is true all the same.
func (l *Lock) ForceUnlockHolder(ctx context.Context, h Holder) (bool, error) {
	return forceHolder(ctx, l, h)
}

// NewCond returns the condition of that name on this lock. It does no I/O. If the name is not 1 to 512 bytes of UTF-8
// without control characters, each call on the Cond returns ErrInvalidName. The reading side of a read/write lock and a
// semaphore have no conditions: each call on such a Cond returns ErrInvalidOption.
func (l *Lock) NewCond(name string) *Cond {
	c := &Cond{lock: l, name: name, err: l.bad()}
	switch err := key.CheckName(name); {
	case c.err != nil:
	case err != nil:
		c.err = fmt.Errorf("%w of a condition: %w", ErrInvalidName, err)
	case l.read:
		c.err = fmt.Errorf("%w: a reading side or a semaphore has no conditions; make it of a lock, or of the writing side", ErrInvalidOption)
	}
	return c
}

// SyncLocker returns the lock as a sync.Locker. Each of its Lock calls has a new owner, even if ctx or the handle names
// one. So goroutines that share the Locker of an exclusive lock exclude each other. ctx bounds each wait. Lock panics
// if it fails, for example when ctx ends. Unlock panics on ErrNotHeld and ErrLost, and ignores ErrUnconfirmed. The
// Locker works with a sync.Cond, but a Cond of this package needs a hold of the Lock itself. No context ends with a
// hold of a SyncLocker: to learn of a loss, use Acquire and Hold.Lost.
func (l *Lock) SyncLocker(ctx context.Context) sync.Locker {
	if l.bad() != nil { // the calls of the Locker report that error
		return &syncLocker{ctx: ctx, lock: l}
	}
	own := *l.spec
	own.anonymous = true
	return &syncLocker{ctx: ctx, lock: &Lock{spec: &own, hash: l.hash}}
}

// A manner says how a call acquires.
type manner struct {
	once         bool // one attempt, no waiting
	falseIfTaken bool // the caller gets false instead of ErrNotAcquired: the error need not say who holds the lock
	inQuorum     bool // for a QuorumLock, whose errors do not say who holds the lock
	pending      bool // one of several, for a Multi or QuorumLock, which calls Hold.markReturned when it returns them
	unlock       bool // the call returns no *Hold, so the handle's Unlock ends it; any other hold is on the handle too
}

// try is acquire for at most wait; zero or less is one attempt. When wait ends, the context's cause is a waitError.
func (l *Lock) try(ctx context.Context, wait time.Duration, m manner) (*Hold, error) {
	m.once = wait <= 0
	if ctx == nil || l.bad() != nil {
		return l.acquire(ctx, m) // acquire returns the error for a nil ctx or a bad handle
	}
	limit := wait
	if wait <= 0 {
		limit = l.terms.Replicas.Within(l.terms.TTL)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, waitError(max(wait, 0)))
	defer cancel()
	return l.acquire(bounded, m)
}

// acquire makes all checks that need no Redis, gets a hold and puts it on the handle. If the grant is lost before the
// call can return, for example because the process pauses, acquire starts again.
func (l *Lock) acquire(ctx context.Context, m manner) (*Hold, error) {
	owner, err := "", l.bad()
	switch {
	case err != nil:
	case ctx == nil:
		err = errNoContext
	case ctx.Err() != nil:
		err = unasked(ctx)
	default:
		if owner, err = ownerFor(ctx, l); err == nil {
			err = waitsForItself(ctx, l, owner)
		}
	}
	if err != nil {
		return nil, lockError(l.Name(), err)
	}
	k := l.c.registry.enter(l)
	defer l.c.registry.leave(k)
	w := &waiting{ctx: ctx, lock: l, keeper: k, owner: owner, manner: m, began: l.c.clock.Now()}
	l.c.labels.Keep(l.terms.TTL, w.began)
	for {
		h, err := w.acquire()
		if err == nil {
			err = w.inTime(h)
		}
		if err == nil {
			err = l.putOnHandle(w, h)
		}
		if err == nil {
			return h, nil
		}
		if again, err := w.restart(err); !again {
			err = w.explain(err)
			w.gaveUpHook(err)
			return nil, lockError(l.Name(), err)
		}
	}
}

// ownerFor returns the owner for whom a call under ctx locks l. "" means an anonymous call.
func ownerFor(ctx context.Context, l *Lock) (string, error) {
	if l.anonymous {
		return "", nil
	}
	id, named := ctx.Value(ownerKey{}).(string)
	if !named {
		return l.terms.owner, nil
	}
	if err := checkOwner(id); err != nil {
		return "", err
	}
	if l.terms.owner != "" && l.terms.owner != id {
		return "", fmt.Errorf("%w: the handle is of owner %q, the context of %q; use a handle without Owner, or one owner",
			ErrOwnerMismatch, l.terms.owner, id)
	}
	return id, nil
}

// waitsForItself returns ErrDeadlock or ErrUpgrade if the call might wait for a live hold from which ctx descends, and
// so for its own caller. It returns nil if ctx also descends from a hold that the call re-enters. Holds of a semaphore
// are in the way only if they leave too few permits.
func waitsForItself(ctx context.Context, l *Lock, owner string) (err error) {
	var grants []*room.Session // of the semaphore: ctx descends from their holds
	used := 0                  // their permits
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.Parent.Value(holdKey{}).(*holdContext) {
		h, is := c.Hold.(*Hold)
		if !is || h.lock.c != l.c || h.lock.hash != l.hash || h.lock.kind != l.kind || h.judge() != nil {
			continue // if only the kind differs, Redis answers with ErrKind
		}
		holder := h.acquisition().owner()
		enters := room.Descends(owner, holder) // owner is a branch of holder
		switch {
		case holder == owner, enters && l.kind == wire.KindSemaphore:
			return nil
		case enters:
		case l.kind == wire.KindSemaphore:
			if s := h.hold.Session; !slices.Contains(grants, s) {
				grants, used = append(grants, s), used+s.Terms.Permits.Weight
			}
		case err == nil:
			err = l.deadlock(h, owner)
		}
	}
	if p := l.terms.Permits; used > 0 && used+p.Weight > p.Of {
		return fmt.Errorf("%w: live holds of this semaphore, from which the context descends, use %d of %d permits, and the call wants %d; to re-enter, lock each time under one relock.WithOwner",
			ErrDeadlock, used, p.Of, p.Weight)
	}
	return err
}

// deadlock returns the error of a call that would wait for h, from which its context descends.
func (l *Lock) deadlock(h *Hold, owner string) error {
	who, holder := "an anonymous owner", h.acquisition().owner()
	if h.acquisition().Named() {
		who = fmt.Sprintf("owner %q", holder)
	}
	if !l.read && h.reads() {
		return fmt.Errorf("%w: the context descends from a live read hold of this lock by %s; unlock that hold first, or lock for writing from the start", ErrUpgrade, who)
	}
	if room.Root(owner) == room.Root(holder) {
		return fmt.Errorf("%w: the context descends from a live hold of this lock by %s, which is a branch of the same flow as %q; branches exclude each other and their ancestors: lock under the owner of that hold, or under a child of it",
			ErrDeadlock, who, owner)
	}
	return fmt.Errorf("%w: the context descends from a live hold of this lock by %s; to re-enter it, lock both times under one relock.WithOwner", ErrDeadlock, who)
}

// bad returns the error that every call on the handle returns, or nil.
func (l *Lock) bad() error {
	if l == nil || l.spec == nil {
		return errUnmadeLock
	}
	return l.err
}

// awaitUnlock waits while the handle has a lost hold of another owner that is not unlocked: that Unlock must not end a
// later hold. It returns nil when the handle can have a new hold, or else the error of the call.
func (l *Lock) awaitUnlock(w *waiting) error {
	k, hint := w.keeper, time.NewTimer(l.terms.TTL/3)
	defer hint.Stop()
	for {
		at := k.look()
		bar, by := k.room.Bars(&l.holds, w.want())
		if bar != room.Occupied {
			k.end(&at)
			return l.barred(bar, by)
		}
		freed := l.holds.WhenFreed(make(chan struct{})).(chan struct{})
		k.end(&at)
		select {
		case <-freed:
		case <-hint.C:
			if w.note(hintLost) { // the Unlock may never come
				k.c.cfg.log.Warn("waiting long for the Unlock of a lost hold of the same handle; each success needs one, even after a loss",
					slog.String("lock", l.Name()))
			}
		case <-w.ctx.Done():
			w.handleOccupied = true
			return ending.Of(w.ctx)
		case <-k.c.draining:
			return ErrClosed
		}
	}
}

// barred returns the error for a bar, or nil if there is none. by is the owner's lost hold, for room.OwesUnlock.
func (l *Lock) barred(bar room.Bar, by *room.Hold) error {
	switch bar {
	case room.Occupied:
		return errOccupied
	case room.OwesUnlock:
		err := fmt.Errorf("%w by an earlier hold of owner %q; unlock that hold first", ErrLost, by.Session.Name)
		if why := by.Why(); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		return err
	case room.OtherOwner:
		return fmt.Errorf("%w: the handle has holds of another owner, and Unlock could not tell them apart; use a handle for each owner", ErrOwnerMismatch)
	case room.Unheld:
		return errGone
	}
	return nil
}

// errOccupied says that the handle has a lost hold that is not unlocked. A call that may wait waits for that Unlock.
var errOccupied = fmt.Errorf("%w by an earlier hold of this handle; unlock that hold first: each success needs its Unlock, even after a loss", ErrLost)

// putOnHandle puts a hold on the handle so that its call can return it, and calls the Acquired hook. If that fails, or
// if the hook panics or ends its goroutine, it gives the hold back: otherwise nobody would unlock it.
func (l *Lock) putOnHandle(w *waiting, h *Hold) (err error) {
	kept, used := false, false // used: Put has counted the hold in Session.Used
	defer func() {
		if used && !kept {
			h.skipRest()
		}
		if !kept {
			h.giveBack()
		}
	}()
	want := w.want()
	if w.ticket != "" {
		want.Owner = "" // what the ticket's owner has lost in this client must not bar the hold
	}
	k := w.keeper
	at := k.look()
	bar, by := h.hold.Put(want, &at)
	k.end(&at)
	if bar != room.NoBar {
		return l.barred(bar, by)
	}
	used = !w.pending
	if l.c.cfg.hooks.Acquired != nil {
		h.acquiredHook(w.ctx, w.began)
	}
	kept = true
	return nil
}

// newest returns the newest hold on the handle, lost or not, or nil.
func (l *Lock) newest() (h *Hold) {
	l.look(func() {
		if newest := l.holds.Newest(); newest != nil {
			h = newest.Of.(*Hold)
		}
	})
	return h
}

// look runs f under the keeper's mu, once holds whose time is over are lost. Without a keeper it does not run f.
func (l *Lock) look(f func()) {
	if l.bad() != nil {
		return
	}
	k := l.c.registry.find(l)
	if k == nil {
		return
	}
	defer l.c.registry.leave(k)
	at := k.look()
	f()
	k.end(&at)
}

// newHold returns a new hold of the handle that does not belong to a session yet.
func (l *Lock) newHold(m manner) *Hold {
	h := &Hold{lock: l}
	h.hold.Of, h.hold.Handle, h.hold.Terms, h.hold.Read, h.hold.Unlock, h.hold.Pending = h, &l.holds, &l.terms.Terms, l.read, m.unlock, m.pending
	return h
}

// sessionOf returns the acquisition by which the owner holds the lock for writing in this client. It returns ErrLost if
// the owner must still unlock a lost hold, and ErrNotHeld if it does not hold.
func (l *Lock) sessionOf(owner string) (*acquisition, error) {
	k := l.c.registry.enter(l)
	defer l.c.registry.leave(k)
	at := k.look()
	defer k.end(&at)
	want := room.Want{Owner: owner}
	if s := k.room.HeldBy(want); s != nil {
		return acquired(s.Acquisition), nil
	}
	if bar, by := k.room.Bars(&l.holds, want); bar == room.OwesUnlock {
		return nil, l.barred(bar, by)
	}
	return nil, fmt.Errorf("%w by owner %q", ErrNotHeld, owner)
}
