package trust_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/trust"
)

var start = new(clock.Clock).Now()

func at(d time.Duration) clock.Instant { return start.Add(d) }

// Fails when trust counts from the answer, or to the end of the lease.
func TestTrustEndsBeforeTheLeaseDoes(t *testing.T) {
	const lease = 30 * time.Second
	until := trust.Until(start, lease)
	if left := at(29 * time.Second).Until(until); left <= 0 || left >= time.Second {
		t.Errorf("%v of trust left in the last second of the lease", left)
	}
	// A clock that is 1 % slow says that so long has passed when the lease ends.
	if slow := lease - lease/100; !at(slow).Reached(until) {
		t.Error("trusted when a clock that is 1 % slow has yet to see the lease end")
	}
}

func TestARenewalIsDueAfterAThird(t *testing.T) {
	const lease = 30 * time.Second
	if due := trust.Due(trust.Until(start, lease), lease); due != at(10*time.Second) {
		t.Errorf("due at %v", start.Until(due))
	}
}

// Fails when a lease that was told of late is not renewed.
func TestARenewalIsDueAtOnceWhenLessIsLeft(t *testing.T) {
	const lease = 30 * time.Second
	if due := trust.Due(at(9*time.Second), lease); !start.Reached(due) {
		t.Errorf("due at %v, though less than a third is left", start.Until(due))
	}
}

func TestTimesAreBounded(t *testing.T) {
	for _, c := range []struct{ ttl, attempt, pulse time.Duration }{
		{100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond / 3},
		{3 * time.Second, time.Second, time.Second},
		{24 * time.Hour, 2 * time.Second, 10 * time.Second},
	} {
		if got := trust.Attempt(c.ttl); got != c.attempt {
			t.Errorf("attempt for %v: %v", c.ttl, got)
		}
		if got := trust.Pulse(c.ttl); got != c.pulse {
			t.Errorf("pulse for %v: %v", c.ttl, got)
		}
	}
}
