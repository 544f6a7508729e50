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

// AtLeast keeps the name taken until d after it was acquired, by the server's clock, even if the
// hold ends sooner. After the hold nobody holds the name: it rests. AtLeast is for a job that is
// shorter than the difference between the clocks of the processes that start it. d is from 1 ms to
// 366 days.
//
// Waiters keep their places, and get the lock when the rest is over. TryLock says that the lock is
// taken, and Info says for how long. d is counted from the grant, so a re-entry changes nothing.
// After its last hold the owner is kept out like everybody else. A hold that its call could not
// return, for example because ctx ended, leaves no rest. ForceUnlock ends a rest. Such a lock is
// not passed on within a process. Only exclusive locks (NewLock) can rest, so Defaults does not
// take this option.
//
// If the server's clock steps back, the name rests longer by that step.
func AtLeast(d time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		t.Rest = room.Rest{For: d}
		return between("AtLeast", d, time.Millisecond, maxRest)
	})
}

// Once runs fn at most once in each interval of length every, over all processes that call it with
// that name. ran says whether this call ran fn. Once is for work that every process starts on a
// timer of its own. The intervals are counted by the server's clock, and begin at multiples of
// every since 1970 in UTC: the processes' clocks may differ. every is from 1 ms to 366 days. All
// calls of one name must use the same interval: a shorter one can run within a longer one.
//
// Once makes one attempt to take the lock of that name, and runs fn under it as Lock.Do does. It
// returns (false, nil) if fn has already begun in this interval, or still runs since an earlier
// one. An interval is spent even if fn returns an error, unless that error is ErrUnspent or wraps
// it: then the next caller in the interval runs fn again. A call that fails before fn has begun
// spends nothing. If Redis cannot be reached at that time, the client tells it later, until it is
// shut down or closed.
//
// A process that dies in fn has spent the interval, and keeps the name until its lease ends. A TTL
// shorter than every keeps it from costing the next interval too. Once ignores the owner that ctx
// names, so no call re-enters. Owner and AtLeast are ErrInvalidOption. If the server's clock steps
// back, fn does not run again in the intervals that come again. ForceUnlock ends that wait.
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
