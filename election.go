package relock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/transport"
)

// An Election has one leader at a time among all that run for it, in any number of processes. The leader holds the fair
// lock of the election's name. Its methods may be called from any goroutine.
//
// A leader leads by a lease. One that is cut off or suspended stops being the leader when its lease can no longer be
// trusted (see Hold.TrustedUntil). IsLeader says so before another process can lead. Code that does not ask IsLeader
// may run on for a moment beside the next leader: the term's token tells a resource which of them is late.
//
// A term carries no value of the leader, except its Label and owner. Publish an address in a key of your own, with the
// token beside it. An Election works by callback: to campaign and resign by hand, use a fair lock.
//
// Candidates need no owner. If each has a name of its own (Owner, WithOwner), Leader and Observe show it. Two
// candidates of one name would lead together.
type Election struct {
	lock  *Lock    // each Run uses its own handle with the same spec
	terms sync.Map // its keys are the holds (*Hold) of the Runs that lead
}

// A Term is one time of leading, from a grant of the election's lock to its release or loss. Run passes it to lead.
type Term struct {
	// Token is the fencing token of the term. It is larger than that of every earlier term of the election, so a
	// resource that compares tokens can refuse a late leader.
	Token int64

	hold *Hold
}

// Wanted returns a channel that is closed when another candidate waits to lead, as Hold.Wanted says. A leader that will
// stop soon, as in a rolling deployment, can then return from lead: Run gives up the term and returns.
func (t Term) Wanted() <-chan struct{} {
	return t.hold.Wanted()
}

// Run campaigns, and calls lead when it leads. lead's context ends with the term: when ctx ends, or when the hold is
// lost, with ErrLost as its cause. If lead returns after a loss, Run campaigns again, and drops the error of lead. When
// a leader dies, another leads when what is left of its lease is over, perhaps 250 ms later.
//
// If lead returns during its term, or because ctx has ended, Run gives up the term and returns. The error is lead's,
// joined with that of the release: nil if both are. The error of the release may be ErrUnconfirmed, even if lead
// succeeded. If ctx ends while Run campaigns, it returns ctx's error. It also returns when the lock cannot be asked for
// at all, for example with ErrClosed or ErrKind. It goes on while too few Replicas acknowledge, and while Redis does
// not answer: only the Logger tells of that. Shutdown waits for the term to end, so end ctx first. A nil lead is
// ErrInvalidOption. A panic of lead gives up the term.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, term Term) error) error {
	if err := e.usable(); err != nil {
		return err
	}
	if lead == nil {
		return lockError(e.lock.Name(), fmt.Errorf("%w: the function that leads is nil", ErrInvalidOption))
	}
	// Each Run has its own handle, so that a lead function that ignores a loss does not occupy the handle of the next Run.
	l := &Lock{spec: e.lock.spec, hash: e.lock.hash}
	for try := 1; ; try++ {
		h, err := l.Acquire(ctx)
		switch {
		case err == nil:
			if again, err := e.serve(ctx, h, lead); !again {
				return err
			}
			try = 0
		case !ending.Is(err, ErrReplicas): // while Redis does not answer, Acquire itself goes on
			return err
		case ending.Pause(ctx, l.c.draining, transport.Backoff(try)): // campaign again
		case ctx.Err() != nil:
			return lockError(l.Name(), endOfTries(ctx, errors.Unwrap(err)))
		default:
			return lockError(l.Name(), ErrClosed)
		}
	}
}

// serve calls lead for one term, gives the term up, and reports whether it was lost.
func (e *Election) serve(ctx context.Context, h *Hold, lead func(ctx context.Context, term Term) error) (lost bool, err error) {
	e.terms.Store(h, nil)
	defer func() {
		end := h.releaseUnlessDetached()
		e.terms.Delete(h)
		lost, err = errors.Is(end, ErrLost), ending.Join(err, end)
	}()
	return false, lead(h.Context(ctx), Term{Token: h.Token(), hold: h})
}

// IsLeader reports whether a Run of this Election leads now, judged by the clock. It does no I/O. Among all Elections
// of the name at most one returns true at a time. Only candidates of one owner, or of its branches, may lead together.
// Whatever breaks the exclusion of a lock breaks this too: see docs/guarantees.md.
func (e *Election) IsLeader() (leads bool) {
	if e == nil {
		return false
	}
	e.terms.Range(func(h, _ any) bool {
		leads = h.(*Hold).Err() == nil
		return !leads
	})
	return leads
}

// Leader reads from Redis who leads, in any process, and with which token. It returns ErrNotHeld if nobody leads, and
// ErrUnavailable if Redis does not answer. Its other errors are those of Lock.Info. A leader that died is shown until
// its lease ends.
func (e *Election) Leader(ctx context.Context) (Holder, error) {
	if err := e.usable(); err != nil {
		return Holder{}, err
	}
	info, err := e.lock.Info(ctx)
	if err == nil && len(info.Holders) == 0 {
		err = lockError(e.lock.Name(), fmt.Errorf("%w: nobody leads", ErrNotHeld))
	}
	if err != nil {
		return Holder{}, err
	}
	return info.Holders[0], nil
}

// Observe yields the leader with a nil error, or ErrNotHeld if nobody leads, and then each change: a new leader or
// term, or ErrNotHeld. With an error the Holder is zero. Observe blocks between changes, and asks Redis every second,
// or every third of the TTL if that is shorter. It can miss a term that begins and ends between two questions.
//
// An error of Redis is yielded once for each outage, perhaps 15 s after it began, and Observe goes on. After the outage
// it yields the state again, even if unchanged. ctx's error, ErrClosed, ErrInvalidName and ErrInvalidOption are yielded
// last and end it. ErrClosed comes after Close, or once a Shutdown has returned nil.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Holder, error] {
	return func(yield func(Holder, error) bool) {
		const failing, untold = -1, -2 // told is a token, 0 if nobody leads, or one of these
		for told := int64(untold); ; {
			leader, err := e.Leader(ctx)
			now := leader.Token
			if err != nil && !ending.Is(err, ErrNotHeld) {
				now = failing
			}
			last := now == failing && (ctx == nil || ctx.Err() != nil || ending.Is(err, ErrClosed) || e.usable() != nil)
			if (now != told || last) && !yield(leader, err) || last {
				return
			}
			told = now
			// If the pause is interrupted, the next Leader call returns the error.
			ending.Pause(ctx, e.lock.c.ctx.Done(), min(e.lock.terms.TTL/3, time.Second))
		}
	}
}

// usable returns the error of an Election that was not made by NewElection or has a bad name or option, or nil.
func (e *Election) usable() error {
	if e == nil || e.lock == nil {
		return fmt.Errorf("relock: %w: make an Election with Client.NewElection", ErrInvalidOption)
	}
	return lockError(e.lock.Name(), e.lock.bad())
}
