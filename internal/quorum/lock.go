// Package quorum makes one hold of several. A Lock is one name on several primaries that
// know nothing of each other: an Attempt gathers a Majority of them among others who want
// one as well, and that keeps itself while primaries fail and come back. What else is made
// of several holds shares with it until when so many can be relied on, how they end
// together, and which of a handle's holds an Unlock ends. It knows no locks and no
// servers: what it asks, and what it is granted, others implement.
package quorum

import (
	"context"
	"errors"
	"time"
)

// A Primary is a lock's name on one primary, where each call asks for a hold of its own.
// It is asked by several goroutines at once.
type Primary interface {
	// Try asks for a hold for at most so long, and once where that is nothing.
	Try(ctx context.Context, wait time.Duration) (Hold, error)
	// Queue waits for a hold until ctx ends.
	Queue(ctx context.Context) (Hold, error)
	// Probe asks for anything: nil says that the primary answers.
	Probe(ctx context.Context) error
	// Spawn runs fn on a goroutine that the end of the primary's client waits for, and
	// says whether it was not too late for that.
	Spawn(fn func()) bool
}

// A Hold is what one primary has granted.
type Hold interface {
	Err() error              // nil while it is held
	TrustedUntil() time.Time // the zero time once it is lost or released
	Token() int64            // of the primary's counter, which stays as it is
	Owner() string
	// Context returns a context that ends with the hold, or with parent.
	Context(parent context.Context) context.Context
	// Raise has the primary's counter of tokens be as large as that token, and says
	// whether the primary has answered that it is, and that the hold is held.
	Raise(ctx context.Context, within time.Duration, token int64) bool
	Release() error
	Forgo() error // Release of what nobody has had
}

// Errors are a lock's own: what its primaries say is told apart by them, and so are
// the ends of a Majority.
type Errors struct {
	Taken       error // of a primary, and of a majority: somebody else holds
	Closed      error // of a primary: its client has been closed
	Unconfirmed error // of a Release, after which the primary may not let others in
	Lost        error // of a Majority that is none any more
	NotHeld     error // of a Majority that has been released
	Forced      error // of a Hold: an operator has ended it

	Final func(err error) bool // asking again would get the same answer
}

// ErrFewAnswer is why nobody has a lock: a majority of its primaries is not there.
var ErrFewAnswer = errors.New("too few primaries answer")

// A Lock is what is asked for. It is not changed once it is in use.
type Lock struct {
	Primaries []Primary     // in the order in which all contenders take them
	TTL       time.Duration // of what a primary grants
	Fixed     bool          // nothing is renewed, so no primary is taken again
	MaxHold   time.Duration // for how long primaries renew it; 0: without end
	Errors    Errors

	// Check returns an error where primaries that an attempt has asked are one server. It is told
	// what each of them has granted, nil where nothing, and which have said that the lock is
	// taken. nil: nobody checks.
	Check func(ctx context.Context, had []Hold, refused []int) error

	// Leaving is called when an attempt has failed and begins to give back what it has. It
	// returns what is called once others could hold a majority, or patience is over. It may be nil.
	Leaving func() (left func())
}

func (l *Lock) need() int { return len(l.Primaries)/2 + 1 }

// patience is how long to wait for a primary that may not answer, or may be taken by
// somebody who waits for another: then all is given back.
func (l *Lock) patience() time.Duration {
	return min(max(l.TTL/6, 100*time.Millisecond), 500*time.Millisecond)
}

// beside runs fn beside the caller; where the primary's client has been closed it is
// quickly over, and runs on the caller's goroutine.
func (l *Lock) beside(primary int, fn func()) {
	if !l.Primaries[primary].Spawn(fn) {
		fn()
	}
}

// signal fills a channel of one place.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits, and reports whether neither ctx nor wake came first.
func pause(ctx context.Context, wake <-chan struct{}, d time.Duration) bool {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		return true
	case <-ctx.Done():
	case <-wake:
	}
	return false
}
