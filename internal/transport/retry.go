package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/relock-go/relock/internal/ending"
)

// Try calls attempt until it returns again == false or an error that lasts (see Hopeless), and returns that error. Try
// calls attempt again after a pause if it failed, and at once if it did not: so attempt must look at ctx. If ctx ends
// or stop is closed during a pause, Try returns the latest error. If ctx ends an attempt, it is the one before, if any.
func Try(ctx context.Context, stop <-chan struct{}, attempt func() (again bool, err error)) error {
	return TryEvery(ctx, stop, longestPause, attempt)
}

// TryEvery is Try with pauses of at most most, and never more than 1 s.
func TryEvery(ctx context.Context, stop <-chan struct{}, most time.Duration, attempt func() (again bool, err error)) error {
	for before, fails := error(nil), 0; ; {
		again, err := attempt()
		if before != nil && ending.Is(err, ctx.Err()) {
			return before // which says what was the matter
		}
		switch before = err; {
		case !again || err != nil && Hopeless(err):
			return err
		case err == nil, errors.Is(err, errConnecting):
			continue
		}
		fails++
		if !ending.Pause(ctx, stop, BackoffUpTo(fails, most)) {
			return err
		}
	}
}

// Hopeless reports whether another try would get the same answer, or none.
func Hopeless(err error) bool {
	outcome := Classify(err)
	return outcome == Refused || outcome == Closed
}

const longestPause = time.Second

// Backoff returns how long to wait after the given number of failures in a row: 10 ms doubling to 1 s. Half of it is
// random, so that clients do not retry at the same time.
func Backoff(fails int) time.Duration { return BackoffUpTo(fails, longestPause) }

// BackoffUpTo is Backoff, but at most most.
func BackoffUpTo(fails int, most time.Duration) time.Duration {
	d := min(10*time.Millisecond<<min(fails-1, 7), longestPause, most)
	return d/2 + Spread(d/2)
}

// Spread returns a random duration from 0 up to d. Tests that replay a schedule replace it.
var Spread = func(d time.Duration) time.Duration { return rand.N(d) }
