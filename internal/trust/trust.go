// Package trust says for how long a lease in Redis can be relied on here, and when
// to renew it. It is arithmetic: whoever calls it says what time it is.
package trust

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// A Trust is how long nobody else can hold what is held here. Its zero value is over.
type Trust struct {
	Until clock.Instant // nobody else can hold before that
}

// Margin is what is taken off a lease before it is trusted: clocks that run at
// different rates (up to 1 %), and the millisecond that Redis counts in.
func Margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// Until returns until when a lease can be trusted of which a request sent at the
// given time was told the rest. It counts from the sending: the answer may have
// taken any time on its way.
func Until(sent clock.Instant, remaining time.Duration) clock.Instant {
	return sent.Add(remaining - Margin(remaining))
}

// Extend moves the end, never backwards: an older answer may arrive later.
func (t *Trust) Extend(until clock.Instant) { t.Until = clock.Max(t.Until, until) }

// Over says that somebody else may hold by now.
func (t *Trust) Over(now clock.Instant) bool { return now.Reached(t.Until) }

// Fresh says that renewals have worked of late: a third of the lease is left at
// least, so that what is built on it now need not be told to Redis at once.
func (t *Trust) Fresh(now clock.Instant, lease time.Duration) bool {
	return now.Until(t.Until) >= lease/3
}

// Due returns when to renew a lease: when a third of it is over, so that two more renewals
// may fail. It goes by what is left: an answer that leaves the lease as it is puts nothing off,
// and one that comes when most of it is over is followed at once.
func (t *Trust) Due(lease time.Duration) clock.Instant {
	return t.Until.Add(lease/3 + Margin(lease) - lease)
}

// Within returns soon, or the end of the trust where that is earlier.
func (t *Trust) Within(soon clock.Instant) clock.Instant {
	if soon.Reached(t.Until) {
		return t.Until
	}
	return soon
}

const (
	// shortest and longest bound how long one request is waited for.
	shortest = 100 * time.Millisecond
	longest  = 2 * time.Second
	// longestPulse is how long a waiter relies on messages, however long its lease is:
	// one that was lost leaves the lock idle until the next heartbeat, and a link that
	// is idle for minutes is forgotten by what lies on the way.
	longestPulse = 10 * time.Second
)

// Attempt is how long one request for a lease is waited for before it is sent again.
func Attempt(lease time.Duration) time.Duration { return min(max(lease/3, shortest), longest) }

// Pulse is the time between two heartbeats of a waiter whose entry has such a lease.
func Pulse(lease time.Duration) time.Duration { return min(lease/3, longestPulse) }

// Grain is how much earlier than a third of a lease a renewal may go out, so that
// those of many locks go out together.
func Grain(lease time.Duration) time.Duration { return lease / 192 }
