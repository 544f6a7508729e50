package trust_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/trust"
)

var start = clock.System().Now()

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

func TestAnOlderAnswerTakesNothingBack(t *testing.T) {
	whole := trust.Trust{Until: at(20 * time.Second)}
	whole.Extend(at(15 * time.Second))
	if whole != (trust.Trust{Until: at(20 * time.Second)}) {
		t.Errorf("got %v", whole)
	}
}

func TestATermIsOverAtItsEnd(t *testing.T) {
	whole := trust.Trust{Until: at(time.Second)}
	if whole.Over(at(time.Second - 1)) {
		t.Error("over before its end")
	}
	if !whole.Over(at(time.Second)) {
		t.Error("not over at its end")
	}
}

func TestALeaseIsFreshWhileAThirdIsLeft(t *testing.T) {
	whole := trust.Trust{Until: at(30 * time.Second)}
	if !trust.Fresh(whole.Until, at(20*time.Second), 30*time.Second) {
		t.Error("a third is left, and it is not fresh")
	}
	if trust.Fresh(whole.Until, at(20*time.Second+1), 30*time.Second) {
		t.Error("less than a third is left, and it is fresh")
	}
}

func TestARenewalIsDueAfterAThird(t *testing.T) {
	whole := trust.Trust{Until: trust.Until(start, 30*time.Second)}
	if due := whole.Due(30 * time.Second); due != at(10*time.Second) {
		t.Errorf("due at %v", start.Until(due))
	}
	whole.Until = at(9 * time.Second)
	if got := whole.Within(at(10 * time.Second)); got != at(9*time.Second) {
		t.Errorf("a retry at %v, after the end", start.Until(got))
	}
	if got := whole.Within(at(time.Second)); got != at(time.Second) {
		t.Errorf("a retry at %v", start.Until(got))
	}
}

// Fails when a lease that was told of late is not renewed.
func TestARenewalIsDueAtOnceWhenLessIsLeft(t *testing.T) {
	const lease = 30 * time.Second
	whole := trust.Trust{Until: at(9 * time.Second)}
	if due := whole.Due(lease); !start.Reached(due) {
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
