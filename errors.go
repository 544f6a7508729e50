package relock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/loss"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// Errors that callers can tell apart with errors.Is. The error that a call returns adds the lock's name and what to do.
var (
	// ErrNotHeld means that there is no hold to release, to ask, or to act under: it was released before, or there never
	// was one. While its owner waits on a condition, a hold returns it too: Unlock and Release then end the hold. From
	// Election.Leader it means that nobody leads. An ErrLost is also an ErrNotHeld.
	ErrNotHeld = errors.New("not held")
	// ErrLost means that a hold ended before it was released. Its lease ended, Redis lost it, ForceUnlock ended it, or the
	// client was closed. Or it was a branch's hold, and the ancestor's hold that it had entered ended. Another process may
	// hold the lock now. The hold still needs its Unlock, and a call that needs that Unlock first returns ErrLost too. So
	// does a Resume or Cond.Wait that leaves no hold. ErrLost is also an ErrNotHeld.
	ErrLost error = lostError{}
	// ErrNotAcquired means that the lock was taken for the whole wait of a TryAcquire: Redis' latest answer said so, or a
	// hold of this client that the call stood in line for. TryLock, TryDo and Once return false and no error instead. If
	// Redis did not answer, or does not any more (package redisson ignores that), the error is another: see TryLock.
	ErrNotAcquired = errors.New("not acquired")
	// ErrUnavailable means that Redis did not answer in time, or cannot serve yet, for example while it loads its data. So
	// nobody knows whether the lock is taken. If ctx ended first, the error matches ctx's error too. If the lock was taken
	// until ctx ended, the error is ctx's alone. Except in package redisson, an answer more than 100 ms late then adds
	// ErrUnavailable. A lasting refusal (no permission) or a closed redis client gives another error.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrReplicas means that fewer replicas than the option Replicas demands acknowledged a new hold in time. The hold
	// was undone: the caller does not have it. Earlier holds of the owner stay. TryLock returns it too.
	ErrReplicas = errors.New("too few replicas")
	// ErrUnconfirmed means that Redis did not confirm a release, a Detach or a Downgrade: it did not answer in time, or
	// refused. The client goes on telling Redis, unless Redis refused or the client is closed. A released or detached hold
	// has ended in this process. In Redis a released one ends with its lease at the latest. After Detach there is no
	// ticket, and the client releases the hold. A downgraded hold goes on as a read hold, and is renewed.
	ErrUnconfirmed = errors.New("release not confirmed")
	// ErrClosed is returned by calls on a client that is closed. After Shutdown was called, waiters and new calls for a
	// lock get it too, also those of branches. Re-entries and calls like Info still work. Holds that Close ended return
	// ErrLost and ErrClosed.
	ErrClosed = errors.New("client closed")
	// ErrDeadlock means that the call returned at once, because it would wait for a hold of its own caller. Its context
	// descends from a live hold of this lock in this client by another owner, and from none of the call's own owner. A
	// read under a read hold gets it too, because a writer may wait between the two. Package redisson allows that read. A
	// call for a semaphore gets it if such holds leave too few permits. To re-enter, lock both times under one WithOwner.
	ErrDeadlock = errors.New("deadlock")
	// ErrUpgrade means that a call wants to write under a read hold of its own caller. It returns at once, because it
	// would wait for itself. The read hold is one of its owner, or one from which its context descends. For a branch
	// (WithChildOwner), the nearest ancestor that holds decides. The read hold stays: end it first, or lock for writing
	// from the start. Cond.Wait returns ErrUpgrade if its owner also reads, and then gives up nothing.
	ErrUpgrade = errors.New("a read hold cannot become a write hold")
	// ErrOwnerMismatch means that the handle and the context name different owners, or that Unlock could not tell holds of
	// the handle apart. The handle's read holds, or holds of a semaphore, must all have one named owner, or all have none.
	// (On a semaphore and in package redisson, those of Acquire and Do may differ.) A branch and its ancestor may not
	// both hold by Lock or TryLock of one handle. Nor may others, while its owner waits on a condition with several holds.
	// Use a handle for each owner. Cond.Wait returns ErrOwnerMismatch if its owner also holds in another client, or if a
	// branch or an ancestor of that owner holds anywhere.
	ErrOwnerMismatch = errors.New("owner mismatch")
	// ErrKind means that the name is in use as another kind of lock: plain, fair, read/write, fair read/write or
	// semaphore. Or clients of a release that stores locks in another layout use it. The call does not wait. The kind can
	// change when nobody holds the lock, waits for it or waits on its conditions, and the name does not rest (AtLeast,
	// Once). Package redisson tells only read/write locks from other kinds, or any kinds under the context of a hold.
	ErrKind = errors.New("name in use as another kind of lock")
	// ErrUnspent tells Once that a run does not count, if Once's fn returns it or wraps it. Then the next caller in the
	// interval runs fn again, unless the lock was lost. Once returns that error, with ran true.
	ErrUnspent = errors.New("the interval is not spent")
	// ErrTooManyHolds means that an owner has 2^31-1 holds of a lock (1000 in package redisson), and did not get another
	// one. Detach returns it if the owner has other holds of the same grant in this client. The hold then stays as it was.
	ErrTooManyHolds = errors.New("too many holds")
	// ErrInvalidName means that the name of a lock or condition is not 1 to 512 bytes of UTF-8 without control characters.
	// Every call on such a handle returns it. Its text says what is wrong. For package redisson, see NewLock there.
	ErrInvalidName = errors.New("invalid name")
	// ErrInvalidOption means that an option or an argument is nil, out of its bounds, or not for this kind of lock or
	// redis client. New returns it, and every call on a handle with such an option. On a nil pointer or a zero value, each
	// method with an error result returns it. The others return a zero result, a closed channel or an ended context. With
	// a nil context, functions that return a context panic. Its text says what is wrong, and what is allowed.
	ErrInvalidOption = errors.New("invalid option")
)

// tooFew returns the error of a grant or statement that too few replicas have acknowledged.
func tooFew(r room.Replicas, acks int) error {
	return fmt.Errorf("%w: %d of %d acknowledged it within %v; check the replicas of the primary, ask for fewer, or give them longer", ErrReplicas, acks, r.N, r.Timeout)
}

// lostFor returns the error of a lost hold, with the reason that the room gave. It returns nil if there is none.
func lostFor(why error) error {
	if why == nil || errors.Is(why, ErrLost) {
		return why
	}
	return fmt.Errorf("%w: %w", ErrLost, why)
}

// errForced is why a hold is lost that ForceUnlock or ForceUnlockHolder ended.
var errForced = loss.Because(loss.Forced, "removed by ForceUnlock")

// errAncestor is why a branch's hold is lost if the ancestor's hold that it entered has ended.
var errAncestor = loss.Because(loss.Ancestor, "the ancestor's hold through which this branch had entered has ended; an ancestor must unlock after its branches")

// isFinal reports whether a primary of a Quorum would fail in the same way at another try.
func isFinal(err error) bool {
	for _, one := range []error{ErrClosed, ErrKind, ErrDeadlock, ErrUpgrade, ErrOwnerMismatch, ErrInvalidOption, ErrInvalidName, ErrTooManyHolds} {
		if ending.Is(err, one) {
			return true
		}
	}
	return err != nil && transport.Hopeless(err)
}

// unusable returns why a call cannot use ctx: it is nil, or it has ended.
func unusable(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return ending.Of(ctx)
}

// lostError is the type of ErrLost, which is an ErrNotHeld too, though its text does not say so.
type lostError struct{}

func (lostError) Error() string { return "lost" }
func (lostError) Unwrap() error { return ErrNotHeld }

// A requestError is the error of a request that Redis did not answer, or refused.
type requestError struct {
	err    error
	silent time.Duration // for how long Redis had not answered; 0: not known
}

// Silence is for relockweb, which rests after each read in proportion to the work of Redis: silence is no work.
func (e *requestError) Silence() time.Duration { return e.silent }

func (e *requestError) Error() string {
	if stored, is := transport.OtherLayout(e.err); is {
		return ErrKind.Error() + ": " + otherLayout(stored)
	}
	text := "redis could not be asked: " + e.err.Error()
	if transport.ReadOnly(e.err) {
		text += "; a replica, or an endpoint for reading, takes no locks: connect to the primary"
	}
	return text
}

// Unwrap makes the refusal of a lock in another layout an ErrKind. It makes every other failure an ErrUnavailable,
// except a lasting refusal by Redis and a closed go-redis client.
func (e *requestError) Unwrap() []error {
	outcome := transport.Classify(e.err)
	switch _, is := transport.OtherLayout(e.err); {
	case is:
		return []error{ErrKind, e.err}
	case outcome != transport.Refused && outcome != transport.Closed:
		return []error{ErrUnavailable, e.err}
	}
	return []error{e.err}
}

// otherLayout says in which layout others use a name. stored is the kind that Redis keeps.
func otherLayout(stored string) string {
	_, layout := wire.StoredKind(stored)
	return fmt.Sprintf("it is in use in layout %s of keys and messages, and this client uses layout %s; "+
		"it is free for this client when the others have released it, or are gone for longer than TTL and TokenKeep", layout, wire.Layout)
}

// errLateAnswers means that each answer was useless: clocks are minutes apart, or a slot is moving.
var errLateAnswers = errors.New("redis answered only that the request came too late, or to a server without one of its keys")

// unanswered returns the error of a request that has been unanswered for this long: an ErrUnavailable.
func unanswered(d time.Duration) error {
	if d < time.Millisecond {
		return &requestError{errors.New("redis has not answered yet: the wait was over within a millisecond"), d}
	}
	return &requestError{fmt.Errorf("redis has not answered for %v", d.Round(time.Millisecond)), d}
}

// failed returns the error of a request: how long it failed, since asked, and err unless that is ctx's end.
func failed(ctx context.Context, err error, now, asked instant) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return unanswered(now.Sub(asked))
	}
	return &requestError{err, now.Sub(asked)}
}

// A waitError is the cause of a context that ended because the wait of a TryLock was over. Its value is that wait.
type waitError time.Duration

func (waitError) Error() string { return "wait is over" }

// unasked returns the error of a context that ended before Redis was asked, such as by a very short wait of a TryLock.
func unasked(ctx context.Context) error {
	if wait, over := errors.AsType[waitError](context.Cause(ctx)); over {
		return unanswered(time.Duration(wait))
	}
	return ending.Of(ctx)
}

// endOfTries returns the error of a call that stopped trying, because ctx ended or because another try would not
// help. err is why the last try failed, or the one before if ctx ended the last.
func endOfTries(ctx context.Context, err error) error {
	wait, bounded := errors.AsType[waitError](context.Cause(ctx))
	switch {
	case ctx.Err() == nil:
		return err
	case bounded && ending.Is(err, ErrNotAcquired):
		return fmt.Errorf("%w within %v", ErrNotAcquired, time.Duration(wait))
	case bounded && err != ctx.Err(): //nolint:errorlint // ctx's error may also be part of what went wrong
		return err
	case errors.Is(err, ctx.Err()), ending.Is(err, ErrNotAcquired): // the lock was taken until ctx ended
		return ending.Of(ctx)
	}
	return fmt.Errorf("%w; until then: %w", ending.Of(ctx), err)
}

// lockError prefixes an error with the lock's name, which it cuts if it is too long. It returns nil for nil.
func lockError(name string, err error) error {
	if err == nil {
		return nil
	}
	if says := err.Error(); errors.Is(err, ErrLost) && strings.HasPrefix(says, ErrLost.Error()) {
		return fmt.Errorf("relock: lock %s was %w", key.Quote(name), err)
	}
	return fmt.Errorf("relock: lock %s: %w", key.Quote(name), err)
}

var errNoContext = fmt.Errorf("%w: the context is nil; pass context.Background()", ErrInvalidOption)

// The following errors are for zero values and nil pointers, for example if the error of New was ignored. Methods of
// such values return one of them, or a zero result.

var (
	errUnmadeClient = fmt.Errorf("%w: the Client was not made by relock.New; look at the error that New has returned", ErrInvalidOption)
	errUnmadeLock   = fmt.Errorf("%w: the lock was not made by Client.NewLock, NewRWLock or NewSemaphore", ErrInvalidOption)
	errUnmadeCond   = fmt.Errorf("%w: the Cond was not made by Lock.NewCond", ErrInvalidOption)
	errUnmadeHold   = fmt.Errorf("%w (%w): the Hold was not made by Acquire or TryAcquire; look at the error that the call has returned", ErrInvalidOption, ErrNotHeld)
)

// endedContext returns a context that has already ended, with why as its cause.
func endedContext(parent context.Context, why error) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	cancel(why)
	return ctx
}

// closed is a channel that is always closed.
var closed = endedContext(context.Background(), nil).Done()
