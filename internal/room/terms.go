package room

import (
	"math"
	"time"

	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/trust"
)

// Terms are what a hold is asked for on.
type Terms struct {
	TTL      time.Duration
	Fixed    bool          // no watchdog
	Local    bool          // nested holds need no command
	MaxHold  time.Duration // 0: no limit
	Replicas Replicas      // that must acknowledge it; 0: none
	Rest     Rest          // of the name after it
	Permits  Permits       // of a semaphore
	Apart    bool          // it shares its grant with no other call's
}

// A Rest is how long a name stays taken, by nobody, once what was granted has ended.
type Rest struct {
	For  time.Duration // since the grant; 0: it does not rest
	Even bool          // not so long, but until the next multiple of that, by the server's clock
}

// Permits are how many of a semaphore's permits a hold uses, and how many there are for
// who asks. The zero value is that of other locks.
type Permits struct{ Weight, Of int }

// Replicas are how many must have what a hold rests on, and how long they may take.
type Replicas struct {
	N       int
	Timeout time.Duration
}

// MaxHolds is how many holds a session may have.
const MaxHolds = math.MaxInt32

// An Entrance is how a call gets into a session of its owner.
type Entrance int

// The entrances.
const (
	Open    Entrance = iota // the hold can be made
	Stated                  // Redis is to be told first, of the wish
	Crowded                 // there are too many holds
	Shut                    // the session is over
)

// ends says that holds of these terms end by themselves, though renewals work.
func (t *Terms) ends() bool { return t.Fixed || t.MaxHold > 0 }

// Attempt is how long a call takes that makes one attempt, replicas included.
func (t *Terms) Attempt() time.Duration { return t.Replicas.Within(t.TTL) }

// Wish is what a call asks for that is about to have n holds more.
func (t *Terms) Wish(n ledger.Counts) *ledger.Wish {
	return &ledger.Wish{
		More: n, Lease: t.TTL, Replicas: t.Replicas.N, Timeout: t.Replicas.Timeout, Kept: !t.Fixed && t.MaxHold == 0,
	}
}

func (r Replicas) or(other Replicas) Replicas {
	return Replicas{max(r.N, other.N), max(r.Timeout, other.Timeout)}
}

// Within is how long a request for such a lease is waited for, replicas included.
func (r Replicas) Within(lease time.Duration) time.Duration {
	if r.N == 0 {
		return trust.Attempt(lease)
	}
	return max(trust.Attempt(lease), r.Timeout+lease/12)
}
