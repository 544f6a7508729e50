package relock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/wire"
)

// maxRest bounds for how long a name may be taken by nobody.
const maxRest = 366 * 24 * time.Hour

// AtLeast keeps the name taken until d after it was acquired, by the server's clock,
// however soon the hold ends: from its release, or the end of its lease, until then by
// nobody. It is for a job that is shorter than the clocks of those who start it differ.
// From 1 ms to 366 days.
//
// Who waits keeps its place, and holds when the name has rested; TryLock says that the
// lock is taken, and Info for how long yet. It is counted from the grant: an owner that
// re-enters what it holds makes it neither longer nor shorter, and is kept out like
// everybody else once its last hold has ended. A hold that its call could not return,
// as where ctx has just ended, leaves no rest; ForceUnlock ends it. Such a lock is not
// passed on within a process. Only exclusive locks (NewLock) can rest, so it is not among
// the options that Defaults takes.
//
// Where the server's clock steps back, the name rests longer by the step.
func AtLeast(d time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		t.Rest = room.Rest{For: d}
		return between("AtLeast", d, time.Millisecond, maxRest)
	})
}

// Once runs fn at most once in each interval of the given length, over all processes
// that call it for that name, however their clocks differ and whoever restarts: ran says
// whether this call did. It is for what every process starts at about the same time, on
// a timer of its own. Intervals are those of the server's clock: they begin at its
// multiples of every since 1970, in UTC. From 1 ms to 366 days.
//
// It makes one attempt for the lock of that name, and runs fn under it as Lock.Do does.
// (false, nil) says that fn has begun in this interval before, or is running still since
// an earlier one. An error of fn changes nothing about that, unless it is or wraps
// ErrUnspent: then whoever calls next in the interval runs fn again. A call that fails
// before it has run fn spends nothing either. Where Redis cannot be reached then, the
// client tells it when it can be, unless it is shut down or closed before.
//
// A process that dies in fn has spent the interval, and keeps the name until its lease
// ends: a TTL below every keeps it from costing the next one. The owner that ctx names is
// of no account: no call enters what another holds. The options Owner and AtLeast are
// ErrInvalidOption. Where the server's clock steps back, fn is not run again in intervals
// that come again; ForceUnlock ends that wait.
func (c *Client) Once(ctx context.Context, name string, every time.Duration, fn func(ctx context.Context) error, opts ...LockOption) (ran bool, err error) {
	l := c.NewLock(name, opts...)
	if err := l.once(every, fn != nil); err != nil {
		return false, lockError(name, err)
	}
	h, err := l.try(ctx, 0, manner{quiet: true})
	switch {
	case ending.Is(err, errGone):
		return false, lockError(name, errGone) // had too late to be used, not taken: the interval is not spent
	case ending.Is(err, ErrNotAcquired):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, h.once(ctx, fn)
}

// once makes a new handle one of Once.
func (l *Lock) once(every time.Duration, runs bool) error {
	if l.err != nil {
		return l.err
	}
	switch s := *l.spec; {
	case !runs:
		return fmt.Errorf("%w: the function to run is nil", ErrInvalidOption)
	case s.terms.owner != "":
		return fmt.Errorf("%w: Owner with Once: no call may enter what another holds", ErrInvalidOption)
	case s.terms.Rest.For > 0:
		return fmt.Errorf("%w: AtLeast with Once, whose interval says for how long the name is taken", ErrInvalidOption)
	default:
		s.anonymous, s.terms.Rest = true, room.Rest{For: every, Even: true}
		l.spec = &s
		return between("Once's interval", every, time.Millisecond, maxRest)
	}
}

func (h *Hold) once(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	defer func() {
		end := (*Hold).leave
		if errors.Is(err, ErrUnspent) {
			end = (*Hold).forgo
		}
		err = errors.Join(err, end(h))
	}()
	return fn(h.Context(ctx))
}

// rests refuses what cannot rest: locks of that kind may be held by several.
func (t terms) rests(kind string) error {
	if t.Rest.For > 0 && kind != wire.KindPlain {
		return fmt.Errorf("%w: AtLeast on a lock that several may hold; take one of NewLock", ErrInvalidOption)
	}
	return nil
}

// restless refuses a rest for all that a client makes: no handle could unset it, and of those
// that several may hold each call would fail.
func (t terms) restless() error {
	if t.Rest.For == 0 {
		return nil
	}
	return fmt.Errorf("%w: AtLeast of %v; only a lock of NewLock can rest, so give it to that", ErrInvalidOption, t.Rest.For)
}

// use counts the holds that calls have had, where the name is to rest after them.
func (h *Hold) use(n int32) {
	if a := h.acquisition(); a.Terms.Rest.For > 0 {
		a.keeper.mu.Lock()
		defer a.keeper.mu.Unlock()
		a.Session.Used += n
	}
}

// forgo is leave for a hold that was had in vain: the name does not rest after it.
func (h *Hold) forgo() error {
	h.use(-1)
	return h.leave()
}
