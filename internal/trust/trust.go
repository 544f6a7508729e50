// Package trust computes how long a lease in Redis can be trusted here, and when to renew it. It is
// arithmetic: its callers say what time it is.
package trust

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// A Trust says until when nobody else can hold what is held here. Its zero value has ended.
type Trust struct {
	Until clock.Instant // nobody else can hold before that
}

// Margin is how much earlier than the lease its trust ends. It covers clocks that run at different rates (up
// to 1 %), and the millisecond that Redis counts in.
func Margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// Until returns until when a lease can be trusted. remaining is the rest of the lease in the answer to a
// request that left at sent. Trust counts from the sending, because the answer may have taken any time.
func Until(sent clock.Instant, remaining time.Duration) clock.Instant {
	return sent.Add(remaining - Margin(remaining))
}

// Extend moves the end of the trust, never back: an older answer may arrive later.
func (t *Trust) Extend(until clock.Instant) { t.Until = clock.Max(t.Until, until) }

// Over reports whether another client may hold by now.
func (t *Trust) Over(now clock.Instant) bool { return now.Reached(t.Until) }

// Fresh reports whether at least a third of a lease is left that is trusted until then, so renewals have worked recently.
// Then a change that rests on the lease need not be told to Redis at once.
func Fresh(until, now clock.Instant, lease time.Duration) bool { return now.Until(until) >= lease/3 }

// Due returns when to renew a lease: after a third of it, so that two more renewals may fail. It is computed
// from the end of the trust. So an answer that does not extend the lease delays nothing, and a late answer is
// followed by a renewal at once.
func (t *Trust) Due(lease time.Duration) clock.Instant {
	return t.Until.Add(lease/3 + Margin(lease) - lease)
}

// Within returns soon, or the end of the trust if that is earlier.
func (t *Trust) Within(soon clock.Instant) clock.Instant {
	if soon.Reached(t.Until) {
		return t.Until
	}
	return soon
}

const (
	// shortest and longest bound how long one request waits for its answer.
	shortest = 100 * time.Millisecond
	longest  = 2 * time.Second
	// longestPulse is how long a waiter relies on messages, even with a long lease. A lost message leaves the lock
	// idle until the next heartbeat. Also, devices on the way forget a connection that is idle for minutes.
	longestPulse = 10 * time.Second
)

// Attempt returns how long one request for a lease waits for its answer before it is sent again.
func Attempt(lease time.Duration) time.Duration { return min(max(lease/3, shortest), longest) }

// Pulse returns the time between two heartbeats of a waiter whose entry has this lease.
func Pulse(lease time.Duration) time.Duration { return min(lease/3, longestPulse) }

// Grain returns how much earlier than a third of a lease a renewal may be sent, so that renewals of many
// locks go together.
func Grain(lease time.Duration) time.Duration { return lease / 192 }
