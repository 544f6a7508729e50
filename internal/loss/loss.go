// Package loss names the reasons why holds are lost. Each reason has a text for people, which is the error's
// text, and one of a few fixed words for metrics.
package loss

import (
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
)

// A Reason is the fixed word of a loss. It is an error so that it can be found in a chain.
type Reason string

func (r Reason) Error() string { return string(r) }

// The reasons.
const (
	Unreachable Reason = "unreachable" // no renewal was answered in time
	Replicas    Reason = "replicas"    // too few replicas acknowledged the renewals
	DataLost    Reason = "data_lost"   // Redis no longer had the hold
	Forced      Reason = "forced"      // an operator ended the grant
	Ancestor    Reason = "ancestor"    // a branch held through an ancestor's hold, which has ended
	MaxHold     Reason = "max_hold"    // MaxHold ended the renewal
	FixedLease  Reason = "fixed_lease" // NoWatchdog: nothing renewed the lease
	Closed      Reason = "closed"      // the client was closed
	Other       Reason = "other"
)

// All returns the reasons in the order in which Of looks for them. If an error has several, the first one counts.
func All() []Reason {
	return []Reason{MaxHold, FixedLease, Forced, Ancestor, Replicas, DataLost, Unreachable, Closed, Other}
}

// A because is the text of a loss together with its reason.
type because struct {
	reason Reason
	text   string
}

func (b *because) Error() string { return b.text }
func (b *because) Unwrap() error { return b.reason }

// Because returns an error with the text, for the reason.
func Because(r Reason, text string) error { return &because{r, text} }

// OfFixedLease returns the loss of a hold with NoWatchdog.
func OfFixedLease(ttl time.Duration) error {
	return Because(FixedLease, fmt.Sprintf("its lease of %v has ended (NoWatchdog)", ttl))
}

// OfMaxHold returns the loss of a hold with MaxHold.
func OfMaxHold(d time.Duration) error {
	return Because(MaxHold, fmt.Sprintf("MaxHold of %v is over", d))
}

// Of returns the reason in err, or Other. It ignores the cause of a context, which may be the loss of another lock.
func Of(err error) Reason {
	for _, r := range All() {
		if ending.Is(err, r) {
			return r
		}
	}
	return Other
}

// AskedFor reports whether err says that a hold was lost because of its own options.
func AskedFor(err error) bool {
	r := Of(err)
	return r == MaxHold || r == FixedLease
}
