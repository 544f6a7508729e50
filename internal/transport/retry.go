package transport

import (
	"context"
	"errors"
	"time"

	"github.com/relock-go/relock/internal/ending"
)

// Try calls attempt until it returns again == false or an error that lasts (see Hopeless), and returns that error.
// After an error Try pauses, otherwise it does not: so attempt must look at ctx. If ctx ends or stop is closed during a
// pause, Try returns the latest error. If ctx ends an attempt, Try returns the error of the one before, if any.
func Try(ctx context.Context, stop <-chan struct{}, attempt func() (again bool, err error)) error {
	return TryEvery(ctx, stop, longestPause, attempt)
}

// TryEvery is Try, but no pause is longer than most. Pauses grow from 10 ms to that, or to 1 s if that is less.
func TryEvery(ctx context.Context, stop <-chan struct{}, most time.Duration, attempt func() (again bool, err error)) error {
	for before, fails := error(nil), 0; ; {
		again, err := attempt()
		if before != nil && ending.Is(err, ctx.Err()) {
			return before // it says what failed; err says only that ctx has ended
		}
		switch before = err; {
		case !again || err != nil && Hopeless(err):
			return err
		case err == nil, errors.Is(err, errConnecting):
			continue // at once: after errConnecting the next attempt waits for the same dial
		}
		fails++
		if !ending.Pause(ctx, stop, BackoffUpTo(fails, most)) {
			return err
		}
	}
}

// Hopeless reports whether another try would fail too: with the same answer, or because the client is closed.
func Hopeless(err error) bool {
	outcome := Classify(err)
	return outcome == Refused || outcome == Closed
}

const longestPause = time.Second

// Backoff returns how long to wait after the given number of failures in a row: 10 ms doubling to 1 s. Half of it is
// random, so that clients do not retry at the same time.
func Backoff(fails int) time.Duration { return BackoffUpTo(fails, longestPause) }

// BackoffUpTo is Backoff with a limit: it returns no more than most.
func BackoffUpTo(fails int, most time.Duration) time.Duration {
	d := min(10*time.Millisecond<<min(fails-1, 7), longestPause, most)
	return d/2 + ending.Spread(d/2)
}
