package room

import (
	"math"
	"time"

	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/trust"
)

// Terms are the options under which a hold is asked for.
type Terms struct {
	TTL      time.Duration
	Fixed    bool          // no watchdog
	Local    bool          // nested holds need no command
	MaxHold  time.Duration // 0: no limit
	Replicas Replicas      // that must acknowledge it; 0: none
	Rest     Rest          // of the name after the hold
	Sticky   time.Duration // how long the client may keep the grant after the last hold; 0: not at all
	Permits  Permits       // of a semaphore
	OneToken bool          // of a quorum: its grant has one token, and is never passed on to another call
}

// A Rest says how long a name stays taken after its hold has ended.
type Rest struct {
	For  time.Duration // since the grant; 0: it does not rest
	Even bool          // until the next multiple of For, by the server's clock
}

// Permits says how many permits of a semaphore a hold uses, and how many the semaphore has. The zero value is for other
// kinds of lock.
type Permits struct{ Weight, Of int }

// Replicas says how many replicas must acknowledge a grant or renewal, and how long they may take.
type Replicas struct {
	N       int
	Timeout time.Duration
}

// MaxHolds is how many holds a session may have.
const MaxHolds = math.MaxInt32

// An Entrance says how a call enters a session of its owner.
type Entrance int

// The entrances.
const (
	Open    Entrance = iota // the hold can be made
	Stated                  // Redis must be told first, by the wish
	Crowded                 // there are too many holds
	Shut                    // the session is over, or its owner waits on a condition
)

// ends reports whether holds of these terms end by themselves even if renewals work.
func (t *Terms) ends() bool { return t.Fixed || t.MaxHold > 0 }

// Attempt returns how long a call that makes one attempt may take, replicas included.
func (t *Terms) Attempt() time.Duration { return t.Replicas.Within(t.TTL) }

// Wish returns the wish of a call that wants n more holds.
func (t *Terms) Wish(n ledger.Counts) *ledger.Wish {
	return &ledger.Wish{
		More: n, Lease: t.TTL, Replicas: t.Replicas.N, Timeout: t.Replicas.Timeout, Kept: !t.Fixed && t.MaxHold == 0,
	}
}

// or returns the stricter of both, for number and time separately.
func (r Replicas) or(other Replicas) Replicas {
	return Replicas{max(r.N, other.N), max(r.Timeout, other.Timeout)}
}

// Within returns how long to wait for the answer to a request for such a lease, replicas included.
func (r Replicas) Within(lease time.Duration) time.Duration {
	if r.N == 0 {
		return trust.Attempt(lease)
	}
	return max(trust.Attempt(lease), r.Timeout+lease/12)
}
