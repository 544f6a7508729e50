// Package quorum makes one hold of several. A Lock is one name on several primaries that know nothing of each other. An
// Attempt competes for a Majority of them. The Majority maintains itself while primaries fail and come back.
//
// The package also serves other kinds of several holds: until when enough of them can be trusted, how they end
// together, and which hold of a handle an Unlock ends. It knows neither locks nor servers, only interfaces.
package quorum

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Primary is the lock on one primary. Any goroutine may use it. Each Try and each Queue asks for a hold of its own.
type Primary interface {
	// Try asks for a hold for at most the given wait, or once if wait is zero.
	Try(ctx context.Context, wait time.Duration) (Hold, error)
	// Queue waits for a hold until ctx ends.
	Queue(ctx context.Context) (Hold, error)
	// Probe sends any request. It returns nil if the primary answers.
	Probe(ctx context.Context) error
	// Spawn runs fn on a goroutine that Close of the client waits for. It returns false if that client is closed.
	Spawn(fn func()) bool
}

// A Hold is what one primary has granted.
type Hold interface {
	Err() error              // nil while it is held
	TrustedUntil() time.Time // the zero time once it is lost or released
	Token() int64            // given by the primary; it does not change
	Owner() string
	// Context returns a context that ends with the hold, or with parent.
	Context(parent context.Context) context.Context
	// Raise raises the primary's token counter to that token at least. It reports whether the primary has answered that
	// the counter is raised and the hold is held.
	Raise(ctx context.Context, within time.Duration, token int64) bool
	// AskWhetherHeld asks the primary whether it still has the hold. If it answers that it does not, the hold is lost.
	AskWhetherHeld(ctx context.Context, within time.Duration)
	WhenWanted(f func()) // calls f when others wait for its end
	// MarkReturned says that the call has returned the hold. The name rests after it only then, and only with rests.
	MarkReturned(rests bool)
	Release() error
}

// Errors are the error values of a lock. They classify the errors of its primaries, and the ends of a Majority.
type Errors struct {
	Taken       error // of a primary, and of a majority: another owner holds
	Closed      error // of a primary: its client has been closed
	Silent      error // of a call: primaries that a majority needs have not answered
	Unconfirmed error // of a Release: the primary may not grant the lock to others yet
	Lost        error // of a Majority that has been lost
	NotHeld     error // of a Majority that has been released
	Forced      error // of a Hold: an operator has ended it

	Final func(err error) bool // reports whether asking again would get the same answer
}

// ErrFewAnswer means that fewer primaries have answered than a majority needs.
var ErrFewAnswer = errors.New("too few primaries answer")

// A Lock says what to acquire. It must not change once it is in use.
type Lock struct {
	Primaries []Primary     // in the order in which all contenders acquire them
	TTL       time.Duration // of each primary's lease
	Fixed     bool          // nothing is renewed, so no primary is acquired again
	MaxHold   time.Duration // for how long a majority is renewed; 0: without limit
	Rest      time.Duration // how long the name stays taken after the grant; 0: it does not rest
	Errors    Errors

	// Check returns an error if it finds that two of the primaries that an attempt has asked are one server. held has the
	// hold of each primary, or nil. refused are the indexes of those that have said that the lock is taken.
	Check func(ctx context.Context, held []Hold, refused []int) error

	// BeginLeaving is called when a failed attempt begins to give back its holds. It returns a function that is called
	// once each primary has taken its hold back, or has been silent for the patience.
	BeginLeaving func() (left func())
}

// Attempt asks all primaries at once. If several callers split the primaries, the caller that holds the first one that
// answers keeps its holds. The others give all theirs back and queue on that primary, unless once is set. So only one
// caller at a time holds primaries while it waits for the rest. Callers that disagree on which primary answers may wait
// for each other, but only for their patience and the time of an answer.
//
// Attempt returns the error Taken if a majority has answered, but too few primaries have granted a hold. It returns
// ErrFewAnswer if too few have answered. Other errors are those of primaries, or of ctx.
func (l *Lock) Attempt(ctx context.Context, once bool) (_ *Majority, err error) {
	h := l.begin(ctx)
	defer func() {
		if err != nil {
			h.GiveBack(ctx)
		}
	}()
	err = h.gatherAndCheck(ctx, 0)
	if !once && errors.Is(err, l.Errors.Taken) {
		first, held := h.first()
		if !held {
			h.GiveBack(ctx)
			h = l.begin(ctx)
			err = h.queue(ctx, first)
		}
		if held || err == nil {
			err = h.gatherAndCheck(ctx, l.patience())
		}
		// If ctx has ended meanwhile, the earlier answer of a majority still counts: the lock is taken.
		if err != nil && ctx.Err() != nil && !l.Errors.Final(err) {
			err = l.Errors.Taken
		}
	}
	if err == nil {
		err = h.elect(ctx)
	}
	if err != nil {
		return nil, err
	}
	h.granted = time.Now() // MaxHold counts from here; a primary acquired once Rest has passed does not rest: see adopt
	if l.MaxHold > 0 {
		h.until = h.granted.Add(l.MaxHold + l.TTL)
	}
	go h.keep() // until the hold has ended
	return h, nil
}

func (l *Lock) need() int { return len(l.Primaries)/2 + 1 }

// patience is how long an attempt waits for a primary that does not answer, or whose holder waits for another primary.
// After that the attempt gives everything back.
func (l *Lock) patience() time.Duration {
	return min(max(l.TTL/6, 100*time.Millisecond), 500*time.Millisecond)
}

// spawn runs fn in the background, on a goroutine of the primary's client or of another one that is open. If all
// clients are closed, the requests of fn fail at once, so fn runs on the caller's goroutine.
func (l *Lock) spawn(primary int, fn func()) {
	for i := range l.Primaries {
		if l.Primaries[(primary+i)%len(l.Primaries)].Spawn(fn) {
			return
		}
	}
	fn()
}

// begin returns a Majority that has asked no primary yet.
func (l *Lock) begin(ctx context.Context) *Majority {
	h := &Majority{lock: l, votes: make(chan struct{}, 1), gone: make(chan struct{}, 1), lost: make(chan struct{}), wanted: make(chan struct{})}
	h.tellWanted = sync.OnceFunc(func() { close(h.wanted) })
	h.members = make([]member, len(l.Primaries))
	h.end, h.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	return h
}

// signal fills a channel of capacity one, unless it is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
