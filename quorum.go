package relock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/holdcontext"
	"github.com/relock-go/relock/internal/leaving"
	"github.com/relock-go/relock/internal/quorum"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
)

// A Quorum makes locks that are held on a majority of independent primaries. No lock is lost if a minority of them
// fails. A Quorum does not protect from pauses, clocks that go wrong, or primaries that come back without their data
// within a TTL: see docs/guarantees.md. Its methods may be called from any goroutine, and it needs no closing.
type Quorum struct {
	clients []*Client // one for each primary, in the order in which all contenders acquire them
	leaving leaving.Book

	// splits counts attempts that acquired some primaries and not others. entries counts grants of named owners.
	splits, entries atomic.Int64
}

// NewQuorum returns a Quorum of one client for each primary. It does no I/O. The caller must close the clients. Fewer
// than two clients, nil, or one client twice is ErrInvalidOption. All processes must name the primaries in the same
// order. Calls of its locks return ErrInvalidOption when they find that two clients use one server. Two databases or
// prefixes of it are not found. To save commands, they look only on the 1st, 2nd, 4th, 8th occasion, and so on.
func NewQuorum(clients ...*Client) (*Quorum, error) {
	for i, c := range clients {
		if c.unmade() || slices.Contains(clients[:i], c) {
			return nil, fmt.Errorf("relock: %w: client %d of a Quorum is nil, a zero value, or there twice", ErrInvalidOption, i)
		}
	}
	if len(clients) < 2 {
		return nil, fmt.Errorf("relock: %w: a Quorum of %d clients; it needs two, and three to survive the failure of one", ErrInvalidOption, len(clients))
	}
	return &Quorum{clients: slices.Clone(clients)}, nil
}

// NewLock returns a handle on the exclusive lock of that name, on a majority of the primaries. It does no I/O. On each
// primary the lock is a fair one. The options are those of Client.NewLock except Sticky. With a bad name or option
// every call returns ErrInvalidName or ErrInvalidOption.
func (q *Quorum) NewLock(name string, opts ...LockOption) *QuorumLock {
	l := &QuorumLock{name: name, quorum: q}
	if q == nil || len(q.clients) == 0 {
		return l
	}
	var all []quorum.Primary
	for _, c := range q.clients {
		of := c.NewLock(name, slices.Concat(opts, []LockOption{Fair(), oneToken})...)
		all, l.first = append(all, primary{of}), cmp.Or(l.first, of)
	}
	t := l.first.terms
	l.majority = quorum.Lock{Primaries: all, Check: q.check(all), TTL: t.TTL, Fixed: t.Fixed, MaxHold: t.MaxHold, Rest: t.Rest.For, Errors: quorum.Errors{
		Taken: ErrNotAcquired, Closed: ErrClosed, Silent: ErrUnavailable, Unconfirmed: ErrUnconfirmed, Lost: ErrLost, NotHeld: ErrNotHeld, Forced: errForced, Final: isFinal,
	}, BeginLeaving: func() func() { return q.leaving.Begin(name) }}
	return l
}

// check returns a function that detects two clients of q on one server. An anonymous call would find the lock taken for
// ever, by its own hold through the other client. A named owner would re-enter that hold and mistake one server for a
// majority. The check costs commands, so it runs for the 1st, 2nd, 4th, 8th ... attempt that gives a reason.
func (q *Quorum) check(primaries []quorum.Primary) func(ctx context.Context, holds []quorum.Hold, refused []int) error {
	return func(ctx context.Context, holds []quorum.Hold, refused []int) error {
		var granted []int
		named := false
		for i, h := range holds {
			if h != nil {
				granted, named = append(granted, i), named || !strings.HasPrefix(h.Owner(), "~")
			}
		}
		var ask []int
		if len(granted) > 0 && len(refused) > 0 && seldom(&q.splits) {
			ask = refused
		}
		if named && seldom(&q.entries) {
			ask = append(ask, granted...)
		}
		found := make(chan error, len(ask))
		for _, i := range ask {
			go func() { found <- q.meets(ctx, primaries[i].(primary).Lock, i) }()
		}
		var same error
		for range ask {
			same = cmp.Or(same, <-found)
		}
		return same
	}
}

// meets returns an error if the server of this client shows a hold of another client of the Quorum.
func (q *Quorum) meets(ctx context.Context, l *Lock, client int) error {
	info, _, _ := readInfo(ctx, l, nil) // a server that does not answer shows nothing
	holds := func(id string) bool {
		return slices.ContainsFunc(info.Holders, func(h Holder) bool { return h.Label == id }) // labels are still IDs
	}
	for i, c := range q.clients {
		if i != client && holds(c.id) {
			return fmt.Errorf("%w: clients %d and %d of the Quorum use one server; give each a server of its own", ErrInvalidOption, min(i, client), max(i, client))
		}
	}
	return nil
}

// A QuorumLock is a handle on the exclusive lock of one name on a majority of primaries. It is a Locker, and goroutines
// may share it. Without an owner each acquisition excludes every other. A named owner re-enters. A QuorumLock has no
// conditions. Its holds cannot be detached, and FromContext does not find them: give the token to code that needs it.
//
// Hooks of the clients are called for each primary, on goroutines of their own.
type QuorumLock struct {
	name     string
	quorum   *Quorum
	first    *Lock       // on the first primary; it has the terms and the name
	majority quorum.Lock // acquires the primaries
	register quorum.Register[*QuorumHold]
}

var _ Locker = (*QuorumLock)(nil)

// caller returns the owner that the call locks as. It refuses a call whose context descends from a live hold
// of the same lock by another owner: that call would wait for itself.
func (l *QuorumLock) caller(ctx context.Context) (owner string, err error) {
	if err = l.usable(); err != nil {
		return "", err
	}
	switch {
	case ctx == nil:
		return "", lockError(l.name, errNoContext)
	case ctx.Err() != nil:
		return "", lockError(l.name, unasked(ctx))
	}
	if owner, err = ownerFor(ctx, l.first); err == nil && room.Root(owner) != owner {
		err = fmt.Errorf("%w: a QuorumLock takes no child owner; pass a context with the owner of the flow", ErrInvalidOption)
	}
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok && err == nil; c, ok = c.Parent.Value(holdKey{}).(*holdContext) {
		h, is := c.Hold.(*QuorumHold)
		if is && h.lock.first.c == l.first.c && h.lock.first.hash == l.first.hash && h.Owner() != owner && h.majority.Err() == nil {
			err = fmt.Errorf("%w: the context descends from a live hold of this lock by another owner; to re-enter it, lock both times under one relock.WithOwner", ErrDeadlock)
		}
	}
	return owner, lockError(l.name, err)
}

// usable returns the error of a QuorumLock that was not made by NewLock or has a bad name or option, or nil.
func (l *QuorumLock) usable() error {
	if l == nil || l.first == nil {
		return fmt.Errorf("relock: %w: make a QuorumLock with NewQuorum and NewLock", ErrInvalidOption)
	}
	return lockError(l.name, l.first.bad())
}

// loseOlder compares a new hold with the other live holds of the handle, and marks the older of each pair as lost. The
// lock has one majority at a time, so the older hold has ended, though nobody here has heard of it. If it were not
// marked, its Unlock would end the newer hold. Holds of one named owner share a majority, so they stay.
func (l *QuorumLock) loseOlder(h *QuorumHold, owner string) {
	for _, other := range l.register.Others(h) {
		switch {
		case other.Owner() == owner:
		case other.Token() > h.Token():
			h.majority.Lose()
		default:
			other.majority.Lose()
		}
	}
}

// occupied returns an error if the handle has a lost hold, whose Unlock is still to come and must not end another hold.
// It is ErrLost for that hold's owner, ErrClosed without a majority of open clients, else errOccupied: wait for freed.
func (l *QuorumLock) occupied(owner string) (lost *QuorumHold, freed <-chan struct{}, err error) {
	lost, freed, is := l.register.Lost()
	if !is {
		return nil, nil, nil
	}
	closed := 0
	for _, p := range l.majority.Primaries {
		if p.(primary).c.tracker.Draining() {
			closed++
		}
	}
	switch {
	case lost.Owner() == owner:
		err = fmt.Errorf("%w by an earlier hold of owner %q; unlock that hold first", ErrLost, owner)
	case 2*closed >= len(l.majority.Primaries):
		err = ErrClosed
	default:
		err = errOccupied
	}
	return lost, freed, err
}

// Lock waits until the caller holds the lock on a majority. ctx bounds the wait, not the hold: if it ends first, Lock
// returns its error. While too few primaries answer, Lock goes on asking: if ctx ends then, the error is ErrUnavailable
// too. Acquire lists the other errors. A lost hold of the handle must be unlocked first: Lock waits for that. If the
// primaries grant the lock again before a loss is known here, the older hold is lost: Lock gives the new one back.
func (l *QuorumLock) Lock(ctx context.Context) error {
	_, err := l.acquire(ctx, manner{unlock: true})
	return err
}

// TryLock is Lock for at most the given time. It returns true if the caller holds a majority, which Unlock must end. It
// returns (false, nil) if a majority of the primaries answered, and too few of them granted the lock. Other errors are
// those of TryAcquire. With a wait of zero or less it makes one attempt, which ends within 3 s.
func (l *QuorumLock) TryLock(ctx context.Context, wait time.Duration) (bool, error) {
	_, err := l.try(ctx, wait, manner{unlock: true})
	return tryResult(err)
}

// Unlock ends the hold of one Lock or TryLock of this handle: a lost hold first, else the newest. It ends a hold of
// Acquire or Do only if there is no other. It returns ErrLost if the hold was lost, and ErrNotHeld if there is none:
// test for ErrLost first, it matches both. ErrUnconfirmed means that too few primaries confirmed the release in time:
// the hold has ended here, and the clients go on trying. Each success needs exactly one Unlock, even after a loss.
func (l *QuorumLock) Unlock() error {
	if err := l.usable(); err != nil {
		return err
	}
	h, ok := l.register.Take()
	if !ok {
		return lockError(l.name, fmt.Errorf("%w by this handle", ErrNotHeld))
	}
	return lockError(l.name, h.majority.Release())
}

// Acquire is Lock, but returns the hold: it waits until the caller holds a majority. If ctx ends first, the error is
// ctx's, and ErrUnavailable too if too few primaries answered. ErrDeadlock, ErrOwnerMismatch and ErrInvalidOption come
// at once. So does an error like ErrKind or ErrClosed, if the other primaries are too few for a majority. A named owner
// gets ErrLost while it has an unreleased lost hold on this handle. The hold needs its Release, even after a loss.
func (l *QuorumLock) Acquire(ctx context.Context) (*QuorumHold, error) {
	return l.acquire(ctx, manner{})
}

// TryAcquire is TryLock, but returns the hold. The caller must end it with Release, even after a loss. If a majority
// answered and the lock was taken, the error is ErrNotAcquired. If too few primaries answered, it is another error,
// such as ErrUnavailable. If ctx ended first, it is ctx's error. It is ErrLost if a lost hold of the handle must be
// released first. Acquire lists the other errors. With a wait of zero or less it makes one attempt.
func (l *QuorumLock) TryAcquire(ctx context.Context, wait time.Duration) (*QuorumHold, error) {
	return l.try(ctx, wait, manner{})
}

func (l *QuorumLock) try(ctx context.Context, wait time.Duration, m manner) (*QuorumHold, error) {
	m.once = wait <= 0
	if ctx == nil || m.once {
		return l.acquire(ctx, m)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, wait, waitError(wait))
	defer cancel()
	return l.acquire(bounded, m)
}

// Do is Lock.Do on a majority of primaries.
func (l *QuorumLock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return during(ctx, l.Acquire, fn)
}

// TryDo is Lock.TryDo on a majority of primaries. If too few of them answered, that is an error.
func (l *QuorumLock) TryDo(ctx context.Context, wait time.Duration, fn func(ctx context.Context) error) (ran bool, err error) {
	return tryDuring(ctx, wait, l.TryAcquire, fn)
}

// Name returns the lock's name, as it was given to NewLock.
func (l *QuorumLock) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}

// HoldCount returns the number of holds of this handle in this process that are neither unlocked nor lost, judged by
// the clock. Holds of Acquire and Do count too. It does no I/O.
func (l *QuorumLock) HoldCount() int {
	if l == nil {
		return 0
	}
	return l.register.Live()
}

// Token returns the fencing token of the newest hold of this handle that is not yet unlocked, even if it is lost.
// Without one it returns 0.
func (l *QuorumLock) Token() int64 { return l.newest().Token() }

// Lost returns the channel that is closed when the newest hold of this handle that is not yet unlocked is lost. Without
// such a hold it returns nil, on which a receive blocks: call it after Lock. Unlock does not close the channel.
func (l *QuorumLock) Lost() <-chan struct{} {
	if h := l.newest(); h != nil {
		return h.Lost()
	}
	return nil
}

func (l *QuorumLock) newest() (h *QuorumHold) {
	if l != nil {
		h = l.register.Newest()
	}
	return h
}

// acquire tries until the call holds a majority and no lost hold occupies the handle. A new majority shows that an
// older one of another owner on this handle is lost. The call gives the new one back, and waits for that Unlock.
func (l *QuorumLock) acquire(ctx context.Context, m manner) (*QuorumHold, error) {
	owner, said := l.caller(ctx)
	if said != nil {
		return nil, said
	}
	l.quorum.leaving.Await(ctx, l.name, time.Second)
	for try := 1; ; try++ {
		h := &QuorumHold{lock: l}
		_, freed, err := l.occupied(owner)
		if err == nil {
			h.majority, err = l.majority.Attempt(ctx, m.once)
		}
		if err == nil && ending.Passed(ctx) != nil { // a call whose context has ended returns no hold
			h.majority.GiveBack(ctx)
			err = ErrNotAcquired
		}
		if err == nil {
			l.register.Add(h, m.unlock)
			l.loseOlder(h, owner)
			var lost *QuorumHold
			if lost, _, err = l.occupied(owner); err == nil || !l.register.Remove(h) {
				h.majority.MarkReturned()
				return h, nil
			}
			if lost == h {
				err = fmt.Errorf("%w: the majority was lost as it was granted", ErrNotAcquired)
			}
			h.majority.GiveBack(ctx) // no caller has seen this hold
			freed = nil              // Remove(h) has closed it: it would end the pause at once
		}
		few, busy := ending.Is(err, quorum.ErrFewAnswer), ending.Is(err, ErrNotAcquired) || ending.Is(err, errOccupied)
		// If ctx ended during the attempt, too few answers may only mean that: the error of the attempt before says more.
		if said == nil || !few || ctx.Err() == nil {
			said = err
		}
		if m.once || !few && !busy || !ending.Pause(ctx, freed, transport.Backoff(min(try, 5))) && ctx.Err() != nil {
			return nil, lockError(l.name, endOfTries(ctx, said))
		}
	}
}

// A QuorumHold is one successful acquisition of a QuorumLock. It is held while the holds on a majority of the
// primaries can be trusted. Without a majority it is lost. It needs its Release, even after a loss. Its methods may be
// called from any goroutine.
//
// A primary that comes back is taken again, except with NoWatchdog, after MaxHold, after a Lock.ForceUnlock there, and
// while the name rests there (AtLeast). Forcing a majority of the primaries ends the hold. If the message of a
// ForceUnlock is lost, the hold may take that primary again: force the primary once more.
type QuorumHold struct {
	lock     *QuorumLock
	majority *quorum.Majority
}

// releaseUnlessDetached is Release: a QuorumHold cannot be detached.
func (h *QuorumHold) releaseUnlessDetached() error { return h.Release() }

// Context returns a context that ends when the hold is lost, when it is released, or when parent ends. After a loss its
// cause is ErrLost, and after a release ErrNotHeld. Each call of its Err checks the clock, so it reports a loss even
// before Done is closed. It has the values of parent.
func (h *QuorumHold) Context(parent context.Context) context.Context {
	if h.unmade() {
		return endedContext(parent, errUnmadeHold)
	}
	ctx := holdcontext.New(parent, h, h.endCause)
	stop := context.AfterFunc(h.majority.End(), func() { ctx.Cancel(context.Cause(h.majority.End())) })
	context.AfterFunc(ctx.Context, func() { stop() }) // so that a long hold keeps no context that has ended
	return ctx
}

// endCause returns the cause for the hold's contexts if the hold has ended, else nil. That is its loss, even if it was
// released after that.
func (h *QuorumHold) endCause() error {
	if err := h.majority.Err(); err != nil {
		return cmp.Or(context.Cause(h.majority.End()), err)
	}
	return nil
}

func (h *QuorumHold) unmade() bool { return h == nil || h.lock == nil }

// Err returns nil while a majority is trusted, ErrLost once the hold is lost, and ErrNotHeld after its Release, even if
// it was lost before. It is judged by the clock at the call, and does no I/O: it does not see a loss in Redis of which
// the clients have not heard. ErrLost matches ErrNotHeld too: test for ErrLost first.
func (h *QuorumHold) Err() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	return lockError(h.lock.name, h.majority.Err())
}

// TrustedUntil returns the instant until which no other owner can get a majority of the primaries, unless some lose the
// hold (ForceUnlock, lost data). It allows for clocks that run at different rates, by 1 % at most. Compare it with
// time.Now in this process. Renewals move it. It is the zero time once the hold is lost or released.
func (h *QuorumHold) TrustedUntil() time.Time {
	if h.unmade() {
		return time.Time{}
	}
	return h.majority.TrustedUntil()
}

// Lost returns a channel that is closed when the hold is lost: no majority of the primaries has it any more. It stays
// open if the hold is released in time. After a pause of the process it may be closed a moment late: Err is exact.
func (h *QuorumHold) Lost() <-chan struct{} {
	if h.unmade() {
		return closed
	}
	return h.majority.Lost()
}

// Wanted returns a channel that is closed when another owner waits for the lock on any primary: see Hold.Wanted.
func (h *QuorumHold) Wanted() <-chan struct{} {
	if h.unmade() {
		return nil
	}
	return h.majority.Awaited()
}

// Token returns the fencing token. While the primaries keep their data, it is larger than that of every earlier grant
// of the name, whichever primaries granted that. Re-entries share it. It does not change.
func (h *QuorumHold) Token() int64 {
	token, _ := h.elected()
	return token
}

// Name returns the lock's name, as it was given to NewLock.
func (h *QuorumHold) Name() string {
	if h.unmade() {
		return ""
	}
	return h.lock.name
}

// Owner returns the owner's name, as Info of a primary shows it: the given one, or a generated one that begins with
// "~". A generated name differs on each primary: Owner returns that of the primary whose token the hold has.
func (h *QuorumHold) Owner() string {
	_, owner := h.elected()
	return owner
}

// elected returns the token of the hold, and the owner that the token belongs to.
func (h *QuorumHold) elected() (token int64, owner string) {
	if h.unmade() {
		return 0, ""
	}
	return h.majority.Token()
}

// Release ends the hold. It returns nil if it was held until now, ErrLost if it was lost earlier, and ErrNotHeld if it
// was released before. ErrLost matches ErrNotHeld too: test for ErrLost first. ErrUnconfirmed: it has ended here, but
// too few primaries confirmed that within the ReleaseTimeout. The clients go on telling them.
func (h *QuorumHold) Release() error {
	if h.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeHold)
	}
	if !h.lock.register.Remove(h) {
		return lockError(h.lock.name, ErrNotHeld)
	}
	return lockError(h.lock.name, h.majority.Release())
}

// seldom counts an occasion in n, and reports whether to check on this one: the 1st, 2nd, 4th, 8th ...
func seldom(n *atomic.Int64) bool {
	count := n.Add(1)
	return count&(count-1) == 0
}

// A primary is the lock on one server, and a quorum.Primary. Each attempt makes a new handle, because a lost hold that
// is not released occupies its handle.
type primary struct{ *Lock }

func (p primary) newHandle() *Lock { return &Lock{spec: p.spec, hash: p.hash} }

func (p primary) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	h, err := p.newHandle().try(ctx, wait, manner{inQuorum: true, pending: true})
	return part{h}, err
}

func (p primary) Queue(ctx context.Context) (quorum.Hold, error) {
	h, err := p.newHandle().acquire(ctx, manner{inQuorum: true, pending: true})
	return part{h}, err
}

// Probe sends any request. By it, a call that waits in the queue of this primary notices that the primary is silent.
func (p primary) Probe(ctx context.Context) error {
	_, err := p.Info(ctx)
	return err
}

func (p primary) Spawn(fn func()) bool { return p.c.tracker.Go(func(context.Context) { fn() }) }

// A part is a hold on one primary, as package quorum uses it.
type part struct{ *Hold }

func (p part) MarkReturned(rests bool) { p.markReturned(rests) }

func (p part) WhenWanted(f func()) { p.whenWanted(f) }

func (p part) Raise(ctx context.Context, within time.Duration, token int64) bool {
	held, err := p.raise(ctx, within, token)
	return held && err == nil
}

func (p part) AskWhetherHeld(ctx context.Context, within time.Duration) {
	if held, err := p.raise(ctx, within, 0); err == nil && !held {
		_ = p.acquisition().markGone()
	}
}
