package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
)

// A Lock is a handle on the lock of one name, or on one side of a read/write lock. Any number of handles, in Go and in
// Java, stand for the same lock, and goroutines may share a handle. Without an owner, each acquisition excludes every
// other, except that readers share. Named owners (relock.WithOwner, Owner) re-enter what they hold in this client, by
// handles of the same kind: see NewLock. An owner has at most 1000 holds at a time: the next is refused with
// ErrTooManyHolds.
type Lock struct {
	c     *Client
	name  string
	names names
	kind  kind
	terms terms
	err   error // a bad name or option; every call returns it

	// Guarded by the client's mu:

	holds []*Hold       // not yet unlocked
	freed chan struct{} // closed when one of them is removed; nil if nobody waits for that
}

var errRegranted = fmt.Errorf("%w: redis granted the lock again, to another call of this handle", relock.ErrLost)

// Lock waits until the caller holds the lock. ctx bounds the wait, not the hold: if ctx ends first, Lock returns its
// error. While Redis does not answer, Lock goes on asking. If it has not answered once when ctx ends, the error is also
// ErrUnavailable. ErrClosed, ErrDeadlock, ErrInvalidName, ErrInvalidOption, ErrKind, ErrOwnerMismatch, ErrTooManyHolds
// and ErrUpgrade end the wait at once. So does a lasting refusal by Redis, which is no ErrUnavailable. While a request
// or a subscription is not answered, ErrClosed may come 2 s later.
//
// If a hold of an exclusive handle is lost, Lock waits until that hold has been unlocked. If ctx ends first, the error
// matches ErrLost too. A named owner does not wait for its own lost hold: by any handle it gets ErrLost, even if
// another owner has the lock. After a ForceUnlock, Redis may grant this handle the lock again before the loss is known
// here. Then the older hold is lost at that instant. The call gives the new grant back, and waits for the older hold's
// Unlock as above, so that this Unlock cannot end the later grant.
func (l *Lock) Lock(ctx context.Context) error {
	_, err := l.acquire(ctx, &waiting{unlock: true})
	return err
}

// TryLock is Lock, but waits for at most the given time. With a wait of zero or less it makes one attempt, which ends
// within 4 s. It returns true if the caller holds the lock, which Unlock must end. It returns (false, nil) once Redis
// has said that the lock is taken, even if Redis was silent for the rest of the wait. If Redis never answered, the
// error is ErrUnavailable. If ctx ended first, it is ctx's error. It is ErrLost if a lost hold of the handle or of its
// owner must be unlocked first. Other errors are those of Lock.
func (l *Lock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	_, err := l.try(ctx, wait, &waiting{unlock: true})
	if ending.Is(err, relock.ErrNotAcquired) {
		return false, nil
	}
	return err == nil, err
}

// Acquire is Lock, but returns the hold: it waits until the caller holds the lock or ctx ends, and returns the errors
// of Lock. The caller must end the hold with Release, even after a loss.
func (l *Lock) Acquire(ctx context.Context) (*Hold, error) { return l.acquire(ctx, &waiting{}) }

// TryAcquire is TryLock, but returns the hold, which the caller must end with Release, even after a loss. Once Redis
// has said that the lock is taken, the error is ErrNotAcquired. If Redis never answered, it is ErrUnavailable, and if
// ctx ended first, ctx's error. With a wait of zero or less it makes one attempt.
func (l *Lock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	return l.try(ctx, wait, &waiting{})
}

// Unlock ends one hold of this handle: a lost one first, else the newest, or the oldest of a reading side that several
// owners hold. Each anonymous acquisition counts as an owner. Unlock ends a hold of Acquire or Do only if there is no
// other. Each success of Lock needs exactly one Unlock, even after a loss.
//
// Unlock returns nil if the lock was held until now, ErrLost if the hold was lost before, and ErrNotHeld if there is no
// hold. It returns ErrUnconfirmed if Redis did not answer within the ReleaseTimeout: the hold has ended here, and the
// client goes on telling Redis. ErrUnconfirmed also comes at once if Redis refuses. If Close interrupts the release,
// the error is ErrClosed too. In these two cases the lease ends the hold in Redis. After a refusal, each renewal of the
// owner's other holds tells Redis again. ErrLost matches ErrNotHeld too: test for ErrLost first.
//
// If Redis did not answer the first request, Unlock returns nil even if somebody had removed the hold from Redis: a
// second request cannot tell. Release and Do do the same.
func (l *Lock) Unlock() error {
	if err := l.unusable(context.Background()); err != nil {
		return l.wrap(err)
	}
	h := l.next()
	if h == nil {
		return l.wrap(fmt.Errorf("%w by this handle", relock.ErrNotHeld))
	}
	if err := h.end(); err != nil {
		return l.wrap(err)
	}
	return nil
}

// Do acquires the lock as Lock does, runs fn, and releases the lock. If it cannot be acquired, fn does not run, and Do
// returns Lock's error. fn's context ends when the hold is lost, with ErrLost as its cause. Do returns fn's error
// joined with that of the release, which is ErrLost after a loss: see Unlock. It may be ErrUnconfirmed, even if fn
// succeeded. A nil fn is ErrInvalidOption. If fn panics or calls runtime.Goexit, Do releases the lock and the panic
// goes on.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	if fn == nil {
		return fmt.Errorf("redisson: %w: the function to run under the lock is nil", relock.ErrInvalidOption)
	}
	h, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = ending.Join(err, h.Release()) }()
	return fn(h.Context(ctx))
}

// Name returns the lock's name, as it was given to NewLock.
func (l *Lock) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}

// HoldCount returns how many holds of this handle in this process are neither unlocked nor lost, judged by the clock.
// Holds of Acquire and Do count too. It does no I/O.
func (l *Lock) HoldCount() int { return l.judge() }

// Token returns the fencing token of the newest hold of this handle that is not yet unlocked, even if it is lost.
// Without such a hold, or if the lock is not Fenced, it returns 0. See Hold.Token.
func (l *Lock) Token() int64 {
	if h := l.newest(); h != nil {
		return h.token
	}
	return 0
}

// Lost returns the channel that is closed when the newest hold of this handle that is not yet unlocked is lost. Holds
// of Acquire and Do count too. Without one it returns nil, on which a receive blocks: call it after Lock. Unlock does
// not close the channel, and a later hold has another. On a reading side the newest hold may be another goroutine's:
// use Acquire and Hold.Lost there.
func (l *Lock) Lost() <-chan struct{} {
	if h := l.newest(); h != nil {
		return h.Lost()
	}
	return nil
}

// Info reads from Redis the holders of the lock, in Go and in Java. A free lock has none. For a fair lock it also reads
// how many wait: the other layouts have no queue. Its Kind is "lock", "fair lock", "fenced lock" or "read/write lock",
// or "" if nobody holds or waits. It is the kind of the handle: Info does not check it in Redis. A Holder has its
// Owner, Read, Holds and TTL, and a Token if the handle is Fenced. The other fields are zero. Token is the counter of
// the lock, which nested locks in Java raise too.
//
// The holders of a read/write lock all have the TTL of its hash. A reader whose lease is over is shown for as long as
// another reader keeps the hash. An owner that writes and reads has an entry for each of the two, and ForceUnlockHolder
// removes it by the one for writing.
//
// While Redis does not answer, Info asks until ctx ends. Then the error matches ctx's and ErrUnavailable. A lasting
// refusal by Redis ends it at once, and after Close it returns ErrClosed.
func (l *Lock) Info(ctx context.Context) (relock.Info, error) {
	if l.unmade() {
		return relock.Info{}, l.wrap(errBadLock)
	}
	info := relock.Info{Name: l.name}
	call := transport.Call{Script: infoScript, Keys: []string{l.names.key}, Args: []any{""}}
	switch l.kind {
	case fair:
		call.Keys, call.Args = append(call.Keys, l.names.queue()), []any{"fair"}
	case fenced:
		call.Keys, call.Args = append(call.Keys, l.names.token()), []any{"fenced"}
	}
	raw, _, err := l.ask(ctx, call)
	if err != nil {
		return info, err
	}
	if len(raw) < 2 {
		return info, l.wrap(fmt.Errorf("redisson: bug: an answer of %d values", len(raw)))
	}
	ms, _ := raw[0].(int64)
	more, _ := raw[1].(int64)
	if l.kind == fair {
		info.Waiters = int(more)
	}
	info.Holders = l.holders(raw[2:], time.Duration(ms)*time.Millisecond, more)
	if len(info.Holders) > 0 || info.Waiters > 0 {
		info.Kind = l.kind.String()
	}
	return info, nil
}

// ForceUnlock takes the lock from its holder, in Go or Java, with all its holds, and reports whether there was one. On
// a read/write lock it acts only if the lock is held in the mode of this side. The reading side takes it from all
// readers. Waiters are told. A holder in Go learns of it by its next renewal, at the latest a third of its TTL later.
// With NoWatchdog, or after its MaxHold, it learns by its unlock or at the end of its TTL. A holder in Java learns by
// its unlock. Until then it may work beside the next holder. The errors are those of Info. After an error the holder
// may have lost the lock.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	if err := l.unusable(ctx); err != nil {
		return false, l.wrap(err)
	}
	if err := l.c.hearInTime(ctx); err != nil {
		return false, l.wrap(err)
	}
	message, mode := messageOne, ""
	switch l.kind {
	case reading:
		mode = "read"
	case writing:
		message, mode = messageAll, "write"
	}
	owners, held, err := l.look(ctx, mode)
	if err != nil {
		return false, err
	}
	args := append([]any{l.c.publish, l.names.channel(l.kind), message, mode}, owners...)
	call := transport.Call{Script: forceScript, Keys: []string{l.names.key}, Args: args}
	if l.kind == fair {
		call.Keys = append(call.Keys, l.names.queue(), l.names.deadlines())
	}
	raw, unanswered, err := l.ask(ctx, call)
	// If a first request was unanswered and a second one finds nothing, the first one may have removed the holder.
	removed := unanswered && held || len(raw) == 1 && raw[0] == int64(1)
	return err == nil && removed, err
}

// ForceUnlockHolder takes the lock from one holder, as Info showed it, with all its holds. It leaves everybody else
// alone: of a read/write lock other readers go on, and so does a holder in the other mode. It returns true if it took
// the lock, and false if no holder on this side matches h. A holder matches if its Owner and its Token are those of h.
// A zero field of h matches any. With both zero, the call returns ErrInvalidOption. Only fenced locks have tokens: on
// another lock an h with a Token matches nobody.
//
// Redis compares the owner as it takes the lock away. The client compares the token just before that. So if the owner
// has released the lock and taken it again in the meantime, it loses the new grant. The holder is told as by
// ForceUnlock. The other errors are those of Info. After an error the holder may have lost the lock.
//
// For a read/write lock, call it on the side of h.Read (RLocker or WLocker). A writer that is removed loses its read
// holds too. If Redis did not answer the first request, the result is true even if the holder had let go by itself.
func (l *Lock) ForceUnlockHolder(ctx context.Context, h relock.Holder) (bool, error) {
	if err := l.unusable(ctx); err != nil {
		return false, l.wrap(err)
	}
	if h.Owner == "" && h.Token == 0 {
		return false, l.wrap(fmt.Errorf("%w: the holder to remove has neither an owner nor a token", relock.ErrInvalidOption))
	}
	if err := l.c.hearInTime(ctx); err != nil {
		return false, l.wrap(err)
	}
	info, err := l.Info(ctx)
	if err != nil {
		return false, err
	}
	// While an owner writes, the hash may have fields of readers too. These do not count as holders for reading.
	written := slices.ContainsFunc(info.Holders, func(one relock.Holder) bool { return !one.Read })
	removed := false
	for _, one := range info.Holders {
		if l.kind.rw() && (one.Read == written || written == (l.kind == reading)) {
			continue
		}
		if h.Owner != "" && one.Owner != h.Owner || h.Token != 0 && one.Token != h.Token {
			continue
		}
		raw, unanswered, err := l.ask(ctx, l.forceCall(one))
		if err != nil {
			return removed, err
		}
		removed = removed || unanswered || len(raw) == 1 && raw[0] == int64(1)
	}
	return removed, nil
}

// waitsForItself refuses a call whose context descends from a live hold of the same lock by another owner. Such a call
// could only end by a timeout. If the owner is the same, Redis decides: an owner that reads may write too.
func (l *Lock) waitsForItself(ctx context.Context, owner string) error {
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.Parent.Value(holdKey{}).(*holdContext) {
		h, is := c.Hold.(*Hold)
		if !is || h.lock.c != l.c || h.lock.names != l.names || h.state() != nil {
			continue
		}
		same := owner != "" && h.s.named && h.s.owner.key.name == owner
		shared := l.kind == reading && h.lock.kind == reading
		switch {
		case l.kind.ofLock() != h.lock.kind.ofLock():
			return fmt.Errorf("%w: the context descends from a hold of this name as a %v; use one kind for a name", relock.ErrKind, h.lock.kind)
		case l.kind == writing && h.lock.kind == reading && !same:
			return fmt.Errorf("%w: the context descends from a live read hold of this lock; unlock that hold first", relock.ErrUpgrade)
		case !same && !shared:
			return fmt.Errorf("%w: the context descends from a live hold of this lock by another owner; to re-enter it, lock both times under one relock.WithOwner", relock.ErrDeadlock)
		}
	}
	return nil
}

// enter makes all checks that need no Redis. It returns the name of the call's owner, if any.
func (l *Lock) enter(ctx context.Context) (owner string, err error) {
	if err := l.unusable(ctx); err != nil {
		return "", err
	}
	owner = l.terms.owner
	if id, named := relock.OwnerFrom(ctx); named {
		if err := checkOwner(id); err != nil {
			return "", err
		}
		if owner != "" && owner != id {
			return "", fmt.Errorf("%w: the handle is of owner %q, the context of %q; use a handle without Owner, or one owner", relock.ErrOwnerMismatch, owner, id)
		}
		owner = id
	}
	return owner, l.waitsForItself(ctx, owner)
}

// loseOlder marks the holds of other sessions on an exclusive handle as lost, because Redis has granted the lock to s.
// It reports whether there are any. Their holders may not know of the loss yet, and an Unlock of theirs must not end
// the new hold. loseOlder needs the client's mu. The caller must run todo without it.
func (l *Lock) loseOlder(s *session, todo *[]func()) (occupied bool) {
	if l.kind == reading {
		return false
	}
	for _, h := range l.holds {
		if h.s != s {
			occupied = true
			*todo = append(*todo, h.s.lose(errRegranted)...)
		}
	}
	return occupied
}

// occupied returns a channel to wait on if a lost hold of another owner is in the way. If waiting cannot help, it
// returns an error. unlock says that Unlock will end the hold that the call wants.
func (l *Lock) occupied(owner string, unlock bool) (freed <-chan struct{}, err error) {
	l.judge()
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if unlock && l.mixed(owner) {
		return nil, fmt.Errorf("%w: the handle has read holds of another owner, and Unlock could not tell them apart; use a handle for each owner", relock.ErrOwnerMismatch)
	}
	for _, h := range l.holds {
		switch {
		case l.kind == reading || h.lost == nil:
		case h.s.named && h.s.owner.key.name == owner:
			return nil, fmt.Errorf("%w; unlock that hold first", h.lost)
		default:
			if l.freed == nil {
				l.freed = make(chan struct{})
			}
			return l.freed, nil
		}
	}
	return nil, nil
}

// mixed reports whether a reading handle has holds that Unlock ends and that are of another owner. It needs the
// client's mu.
func (l *Lock) mixed(owner string) bool {
	return l.kind == reading && slices.ContainsFunc(l.holds, func(h *Hold) bool {
		return h.unlock && (h.s.named || owner != "") && (!h.s.named || h.s.owner.key.name != owner)
	})
}

// holders reads the fields and values of the lock's hash.
func (l *Lock) holders(raw []any, ttl time.Duration, token int64) (all []relock.Holder) {
	for i := 0; i+1 < len(raw); i += 2 {
		field, _ := raw[i].(string)
		value, _ := raw[i+1].(string)
		if field == "mode" {
			continue
		}
		h := relock.Holder{Owner: field, TTL: ttl}
		h.Holds, _ = strconv.Atoi(value)
		if l.kind.rw() {
			owner, writes := strings.CutSuffix(field, ":write")
			h.Owner, h.Read = owner, !writes
		}
		if l.kind == fenced {
			h.Token = token
		}
		all = append(all, h)
	}
	return all
}

// forceCall returns the command that removes one holder. A reader is removed as if it had released all its holds.
func (l *Lock) forceCall(h relock.Holder) transport.Call {
	channel := l.names.channel(l.kind)
	switch l.kind {
	case reading:
		return transport.Call{
			Script: releaseScripts[reading], Keys: append([]string{l.names.key}, l.names.read(h.Owner, max(h.Holds, 1))...),
			Args: []any{h.Owner, 0, l.c.publish, channel, l.names.tag},
		}
	case writing:
		return transport.Call{Script: forceScript, Keys: []string{l.names.key}, Args: []any{l.c.publish, channel, messageAll, "write", h.Owner + ":write"}}
	}
	call := transport.Call{Script: forceScript, Keys: []string{l.names.key}, Args: []any{l.c.publish, channel, messageOne, "", h.Owner}}
	if l.kind == fair {
		call.Keys = append(call.Keys, l.names.queue(), l.names.deadlines())
	}
	return call
}

// look reads from Redis the fields of the owners, and whether they hold in the given mode.
func (l *Lock) look(ctx context.Context, mode string) (owners []any, held bool, err error) {
	raw, _, err := l.ask(ctx, transport.Call{Script: infoScript, Keys: []string{l.names.key}, Args: []any{""}})
	if err != nil {
		return nil, false, err
	}
	found := ""
	for i := 2; i+1 < len(raw); i += 2 {
		if raw[i] == "mode" {
			found, _ = raw[i+1].(string)
			continue
		}
		owners = append(owners, raw[i])
	}
	return owners, len(owners) > 0 && found == mode, nil
}

// unusable returns why a call cannot begin: the handle or an option is bad, or ctx is nil or has ended.
func (l *Lock) unusable(ctx context.Context) error {
	switch {
	case l.unmade():
		return errBadLock
	case l.err != nil:
		return l.err
	case ctx == nil:
		return fmt.Errorf("%w: the context is nil; pass context.Background()", relock.ErrInvalidOption)
	case ctx.Err() != nil:
		return ending.Of(ctx)
	}
	return nil
}

// ask sends a request other than an acquire until it is answered. It reports whether an earlier copy of it
// may have been executed.
func (l *Lock) ask(ctx context.Context, call transport.Call) (raw []any, unanswered bool, err error) {
	err = l.unusable(ctx)
	if err == nil && l.c.ctx.Err() != nil {
		err = relock.ErrClosed
	}
	if err != nil {
		return nil, false, l.wrap(err)
	}
	l.c.leaving.Await(ctx, l.names.key, time.Second) // otherwise Info could show what an ended call has left
	err = transport.Try(ctx, l.c.ctx.Done(), func() (bool, error) {
		raw, err = l.c.transport.Do(ctx, 5*time.Second, call)
		unanswered = unanswered || err != nil && transport.Classify(err) == transport.Unknown
		return err != nil, err
	})
	if err != nil {
		return nil, unanswered, l.wrap(unheard(ctx, l.c.ctx, err))
	}
	return raw, unanswered, nil
}

// unmade reports whether the lock is nil or a zero value.
func (l *Lock) unmade() bool { return l == nil || l.c == nil }

// wrap prefixes an error with the lock's name.
func (l *Lock) wrap(err error) error {
	if l == nil || l.name == "" && l.c == nil {
		return fmt.Errorf("redisson: %w", err)
	}
	if errors.Is(err, relock.ErrLost) && strings.HasPrefix(err.Error(), relock.ErrLost.Error()) {
		return fmt.Errorf("redisson: lock %s was %w", key.Quote(l.name), err)
	}
	return fmt.Errorf("redisson: lock %s: %w", key.Quote(l.name), err)
}

// try is TryAcquire. With a wait of zero or less the first answer ends it. Then only the time without an answer is
// bounded.
func (l *Lock) try(ctx context.Context, wait time.Duration, w *waiting) (*Hold, error) {
	if ctx == nil || l.unmade() {
		return l.acquire(ctx, w) // acquire returns the error for this
	}
	w.once = wait <= 0
	if w.once {
		wait = 2 * trust.Attempt(max(l.terms.ttl, time.Second))
	}
	bounded, cancel := context.WithTimeoutCause(ctx, wait, errWait)
	defer cancel()
	h, err := l.acquire(bounded, w)
	if err != nil && w.taken && ctx.Err() == nil && errors.Is(context.Cause(bounded), errWait) && !errors.Is(err, relock.ErrLost) {
		return nil, l.wrap(fmt.Errorf("%w within %v", relock.ErrNotAcquired, wait))
	}
	return h, err
}

// acquire obtains a hold.
func (l *Lock) acquire(ctx context.Context, w *waiting) (*Hold, error) {
	owner, err := l.enter(ctx)
	if err == nil {
		w.ctx, w.lock, w.owner = ctx, l, owner
		if err = w.grant(); err == nil {
			err = w.inTime()
		}
	}
	if err != nil {
		return nil, l.wrap(err)
	}
	return w.hold, nil
}

// drop removes a hold from the handle. It needs the client's mu.
func (l *Lock) drop(h *Hold) {
	l.holds = slices.DeleteFunc(l.holds, func(other *Hold) bool { return other == h })
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}

// judge judges the holds of the handle by the clock, and returns how many are live.
func (l *Lock) judge() (live int) {
	if l.unmade() {
		return 0
	}
	l.c.mu.Lock()
	now := l.c.clock.Now()
	var todo []func()
	for _, h := range l.holds {
		err, lost := h.judge(now)
		todo = append(todo, lost...)
		if err == nil {
			live++
		}
	}
	l.c.mu.Unlock()
	run(todo)
	return live
}

// next removes and returns the hold that Unlock ends, or returns nil.
func (l *Lock) next() (found *Hold) {
	l.judge()
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	best := -1
	order := slices.Backward(l.holds)
	if slices.ContainsFunc(l.holds, func(h *Hold) bool { return h.s != l.holds[0].s }) {
		// Several owners read. A hold that was lost unnoticed is not the newest one, so the oldest goes first.
		order = slices.All(l.holds)
	}
	for _, h := range order {
		rank := 0
		if h.lost != nil {
			rank = 1
		}
		if h.unlock {
			rank += 2
		}
		if rank > best {
			best, found = rank, h
		}
	}
	if found != nil {
		l.drop(found)
	}
	return found
}

func (l *Lock) newest() *Hold {
	if l.unmade() {
		return nil
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if len(l.holds) == 0 {
		return nil
	}
	return l.holds[len(l.holds)-1]
}

var _ relock.Locker = (*Lock)(nil)

var (
	errWait    = errors.New("wait is over")
	errBadLock = fmt.Errorf("%w: the lock or client was not made by New and NewLock", relock.ErrInvalidOption)
)
