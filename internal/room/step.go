package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// A Step is one event in a room: when it happens, and what must be done afterwards.
type Step struct {
	Now     clock.Instant
	Server  int64 // estimate of the server's clock in ms; set if a request may be made
	Closing bool  // the client is shutting down: the lock is not passed on
	// Pause returns how long to wait after so many failures, at most most.
	Pause func(fails int, most time.Duration) time.Duration

	n    int       // how many of some are set
	some [2]Effect // the first effects; mostly there are no more
	more []Effect
}

// A Deed says what an effect wants done.
type Deed uint8

// The deeds. The driver does Timer, Forget, Lose, Urge and Paid in order, before the next event in the room: done late,
// a timer would undo a newer one. It does the others after that, in any order.
const (
	Timer   Deed = iota + 1 // Of is due at At, or up to Grain earlier; a zero At stops its timer
	Forget                  // forget Of's nonce
	Lose                    // Hold is lost
	Urge                    // others wait for the end of Hold
	Paid                    // the holder of a lost Hold has ended it
	Wake                    // wake the call that waits on Who
	Release                 // release Of in Redis, whether it waits or holds there
	Tell                    // tell Redis what Of's session needs
	Disown                  // release Nonce unless a call has it: the answer to a request sent at At named it
)

// An Effect is something that the driver must do.
type Effect struct {
	Do    Deed
	Of    *Acquisition
	At    clock.Instant
	Grain time.Duration
	Hold  *Hold
	Who   any
	Nonce string
}

func (at *Step) do(e Effect) {
	if at.n < len(at.some) {
		at.some[at.n] = e
		at.n++
		return
	}
	at.more = append(at.more, e)
}

// timer makes an acquisition due at that time only.
func (at *Step) timer(a *Acquisition, due clock.Instant, grain time.Duration) {
	for i := range at.n {
		if e := &at.some[i]; e.Do == Timer && e.Of == a {
			e.At, e.Grain = due, grain
			return
		}
	}
	at.do(Effect{Do: Timer, Of: a, At: due, Grain: grain})
}

// Len returns the number of effects.
func (at *Step) Len() int { return at.n + len(at.more) }

// Effect returns the effect i. They are in the order in which they were added.
func (at *Step) Effect(i int) *Effect {
	if i < at.n {
		return &at.some[i]
	}
	return &at.more[i-at.n]
}
