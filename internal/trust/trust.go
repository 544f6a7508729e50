// Package trust computes how long a lease in Redis can be trusted here, and when to renew it. It is
// arithmetic: its callers say what time it is.
package trust

import (
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// Margin is how much earlier than the lease its trust ends. It covers clocks that run at different rates (up
// to 1 %), and the millisecond that Redis counts in.
func Margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// Until returns until when a lease can be trusted. remaining is the rest of the lease in the answer to a
// request that left at sent. Trust counts from the sending, because the answer may have taken any time.
func Until(sent clock.Instant, remaining time.Duration) clock.Instant {
	return sent.Add(remaining - Margin(remaining))
}

// Due returns when to renew a lease that is trusted until the given instant: a third of the lease after its request was
// sent, which was at until - lease + Margin. Then two renewals can each wait a third of the lease for an answer (see
// Attempt) before the trust ends. A renewal that fails at once is repeated sooner. Due counts from until,
// not from the answer. So an answer without a new lease postpones nothing, and after a late answer it is due at once.
func Due(until clock.Instant, lease time.Duration) clock.Instant {
	return until.Add(lease/3 + Margin(lease) - lease)
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
