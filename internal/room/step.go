package room

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// A Step is something that happens to a room: when it does, and what follows from it.
type Step struct {
	Now     clock.Instant
	Server  int64 // the clock of the lock's server in ms, as far as is known: where a request is numbered
	Closing bool  // nobody is to be let in any more
	// Pause is how long to wait after so many failures: no longer than most.
	Pause func(fails int, most time.Duration) time.Duration

	n    int
	some [2]Effect // the first: mostly there are no more
	more []Effect
}

// A Deed is what an effect wants to be done.
type Deed uint8

// The deeds. The first three and a loss are to be done before anything else happens to
// the room, in their order; the others then, in any order.
const (
	Timer   Deed = iota + 1 // Of is due At, or up to Grain before; the zero At: not any more
	Forget                  // Of's nonce is nobody's any more
	Lose                    // Of is lost, or Hold where it has one
	Wake                    // Who has what it waited for
	Release                 // Redis is to hear that Of is over, whatever it has come to there
	Tell                    // Redis is to hear what Of's session needs
	Disown                  // Nonce is ours and in the way, as was said to a request sent At: it is to be released if nobody has it
)

// An Effect is what follows from a step.
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

// timer has an acquisition due at that time and at no other.
func (at *Step) timer(a *Acquisition, due clock.Instant, grain time.Duration) {
	for i := range at.n {
		if e := &at.some[i]; e.Do == Timer && e.Of == a {
			e.At, e.Grain = due, grain
			return
		}
	}
	at.do(Effect{Do: Timer, Of: a, At: due, Grain: grain})
}

// Len is how many effects there are.
func (at *Step) Len() int { return at.n + len(at.more) }

// Effect is one of them. They are in the order in which they follow.
func (at *Step) Effect(i int) *Effect {
	if i < at.n {
		return &at.some[i]
	}
	return &at.more[i-at.n]
}
