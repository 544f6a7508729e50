package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
)

// longEnv, set to 1, makes Rounds return the long number, to repeat tests that depend on chance far more often.
const longEnv = "RELOCK_LONG"

// Rounds is how often to repeat something.
func Rounds(short, long int) int {
	if os.Getenv(longEnv) == "1" {
		return long
	}
	return short
}

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantIs asserts that err matches every one of targets.
func WantIs(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v, want one that is %v", err, target)
		}
	}
}

// WantNot asserts that err is none of targets.
func WantNot(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Errorf("error %v, want one that is not %v", err, target)
		}
	}
}

// WantLater fails unless tokens grow strictly.
func WantLater(t testing.TB, tokens ...int64) {
	t.Helper()
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			t.Errorf("token %d follows %d", tokens[i], tokens[i-1])
		}
	}
}

// IsShut reports whether a channel is closed.
func IsShut(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Unheard reports whether a wait was too short for an answer of Redis. With a server in real time on a busy
// machine, any wait may be.
func Unheard(err error) bool {
	if errors.Is(err, relock.ErrNotAcquired) || errors.Is(err, context.Canceled) { // the caller's own doing
		return false
	}
	return err != nil && (strings.Contains(err.Error(), "redis has not answered") || strings.Contains(err.Error(), "no reply from redis in time"))
}

// Soon fails t unless cond soon returns "". cond returns what is still wrong.
func Soon(t testing.TB, cond func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	for {
		asked := time.Now()
		amiss := cond()
		if amiss == "" {
			return
		}
		// A question that costs much is asked less often, or it takes the time of what it waits for.
		again := time.NewTimer(max(5*time.Millisecond, 4*time.Since(asked)))
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			t.Fatal(amiss)
		}
	}
}

// Queued waits until so many stand in the lock's queue.
func Queued(t testing.TB, l *relock.Lock, n int) {
	t.Helper()
	Soon(t, func() string {
		if info, err := l.Info(t.Context()); err != nil || info.Waiters != n {
			return fmt.Sprintf("%d waiters of %s, want %d, error %v", info.Waiters, l.Name(), n, err)
		}
		return ""
	})
}

// End releases a hold.
func End(t testing.TB, h *relock.Hold) {
	t.Helper()
	Must(t, h.Release())
}

// MustAcquire returns a hold of l, or ends the test.
func MustAcquire(t testing.TB, l *relock.Lock) *relock.Hold {
	t.Helper()
	h, err := l.Acquire(t.Context())
	Must(t, err)
	return h
}

// NotTrusted fails the test if a hold is trusted although another process has the lock.
func NotTrusted(t *testing.T, old *relock.Hold) {
	t.Helper()
	if old.Err() == nil {
		t.Fatalf("two holders: the one before trusts its hold until %v, it is %v", old.TrustedUntil(), time.Now())
	}
}
