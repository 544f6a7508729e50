package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Try makes attempts until one says that there is to be no other one, and returns its error. An attempt that asks for
// another one gets it at once if it has no error, and after a pause if it has one that passes: one that Redis would
// repeat, or of a client that is closed, is returned. So is the latest error when ctx ends or stop is closed during a
// pause; which it was, the caller sees by them.
func Try(ctx context.Context, stop <-chan struct{}, attempt func() (again bool, err error)) error {
	return TryEvery(ctx, stop, longestPause, attempt)
}

// TryEvery is Try with pauses of at most so long, or 1 s where that is shorter.
func TryEvery(ctx context.Context, stop <-chan struct{}, most time.Duration, attempt func() (again bool, err error)) error {
	for fails := 0; ; {
		again, err := attempt()
		switch {
		case !again || err != nil && Hopeless(err):
			return err
		case err == nil, errors.Is(err, errConnecting):
			continue
		}
		fails++
		if !Pause(ctx, stop, BackoffUpTo(fails, most)) {
			return err
		}
	}
}

// Hopeless says that asking again would get the same answer, or none.
func Hopeless(err error) bool {
	outcome := Classify(err)
	return outcome == Refused || outcome == Closed
}

const longestPause = time.Second

// Backoff is how long to wait after the given number of failures in a row:
// 10 ms doubling to 1 s, half of it at random so that clients do not march in step.
func Backoff(fails int) time.Duration { return BackoffUpTo(fails, longestPause) }

// BackoffUpTo is Backoff where that is shorter, and at most so long.
func BackoffUpTo(fails int, most time.Duration) time.Duration {
	d := min(10*time.Millisecond<<min(fails-1, 7), longestPause, most)
	return d/2 + Spread(d/2)
}

// Spread draws a duration from 0 up to d. Tests that replay a schedule replace it.
var Spread = func(d time.Duration) time.Duration { return rand.N(d) }

// Pause waits, and reports whether neither ctx nor stop ended first.
func Pause(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}
