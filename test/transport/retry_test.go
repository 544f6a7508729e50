package transport_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
)

var errPassing = errors.New("passing")

// attempts tries, and returns how often: each attempt ends as its row says, and all
// those after the last row as that.
func attempts(ctx context.Context, stop <-chan struct{}, rows ...error) (made int, err error) {
	err = transport.Try(ctx, stop, func() (again bool, err error) {
		made++
		err = rows[min(made, len(rows))-1]
		return err != nil, err
	})
	return made, err
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		made, err := attempts(t.Context(), nil, errPassing, errPassing, answer("LOADING x"), nil)
		if made != 4 || err != nil {
			t.Errorf("%d attempts, %v", made, err)
		}
		// 10, 20 and 40 ms, half of each at random.
		if took := time.Since(began); took < 35*time.Millisecond || took > 70*time.Millisecond {
			t.Errorf("paused for %v", took)
		}
	})
}

func TestWhatRedisWouldRepeatIsNotTriedAgain(t *testing.T) {
	for _, hopeless := range []error{answer("NOPERM no"), redis.ErrClosed} {
		if made, err := attempts(t.Context(), nil, hopeless); made != 1 || !errors.Is(err, hopeless) {
			t.Errorf("%v: %d attempts, %v", hopeless, made, err)
		}
	}
}

func TestAnAttemptThatAsksForAnotherFormGetsItAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, began := 0, time.Now()
		err := transport.Try(t.Context(), nil, func() (again bool, err error) {
			made++
			return made < 3, nil
		})
		if made != 3 || err != nil || time.Since(began) != 0 {
			t.Errorf("%d attempts in %v, %v", made, time.Since(began), err)
		}
	})
}

func TestTryingEndsWithItsContextOrWhatStopsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if made, err := attempts(ctx, nil, errPassing); made < 60 || !errors.Is(err, errPassing) || ctx.Err() == nil {
			t.Errorf("%d attempts, %v, %v", made, err, ctx.Err())
		}
		stop := make(chan struct{})
		close(stop)
		if made, err := attempts(t.Context(), stop, errPassing); made != 1 || !errors.Is(err, errPassing) {
			t.Errorf("stopped: %d attempts, %v", made, err)
		}
	})
}
