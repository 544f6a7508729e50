package relockgocron_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/relock-go/relock"
	relockgocron "github.com/relock-go/relock/contrib/gocron"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// runs are the instants at which a job has run, in whatever process.
type runs struct {
	mu sync.Mutex
	at []time.Time
}

func (r *runs) note() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Now())
}

// closest is the shortest time between two runs.
func (r *runs) closest() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	least := 1000 * time.Hour
	for i := 1; i < len(r.at); i++ {
		least = min(least, r.at[i].Sub(r.at[i-1]))
	}
	return least
}

func (r *runs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.at)
}

// start runs a job each minute, in a scheduler of its own.
func start(t *testing.T, job func(), opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(opts...)
	must(t, err)
	_, err = s.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(job), gocron.WithName("report"))
	must(t, err)
	s.Start()
	t.Cleanup(func() { _ = s.Shutdown() })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hour has three processes, started one after the other, run a job of 20 ms each minute.
func hour(t *testing.T, locker func(c *relock.Client) gocron.Locker) *runs {
	srv, ran := relocktest.New(t), new(runs)
	for range 3 {
		start(t, func() {
			ran.note()
			virtual.Sleep(20 * time.Millisecond)
		}, gocron.WithDistributedLocker(locker(srv.Client())))
		virtual.Sleep(17 * time.Second)
	}
	virtual.Sleep(time.Hour)
	return ran
}

// What gocron's issue 841 tells of: schedulers that were started at different instants
// each find the lock of a short job free.
func TestAShortJobRunsOnceThoughSchedulersAreShifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := hour(t, func(c *relock.Client) gocron.Locker { return relockgocron.Locker(c, time.Minute) })
		if n, least := ran.count(), ran.closest(); n < 58 || n > 62 || least < 54*time.Second {
			t.Errorf("%d runs in an hour, the closest %v apart, want one a minute", n, least)
		}
	})
}

// noRest is a Locker as they are elsewhere: the lock ends with the job.
type noRest struct{ *relock.Client }

func (l noRest) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	hold, err := l.NewLock(key).TryAcquire(ctx, 0)
	return ended{hold}, err
}

type ended struct{ *relock.Hold }

func (h ended) Unlock(context.Context) error { return h.Release() }

// The test above can fail: it does by a lock that ends with the job.
func TestALockerWhoseLockEndsWithTheJobDoesNotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if n := hour(t, func(c *relock.Client) gocron.Locker { return noRest{c} }).count(); n < 150 {
			t.Errorf("%d runs in an hour, want that every process ran", n)
		}
	})
}

func TestWhoComesSecondIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		release := srv.Hold("report")
		locker, began := relockgocron.Locker(srv.Client(), time.Minute), time.Now()
		if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, relock.ErrNotAcquired) {
			t.Errorf("taken: %v, want ErrNotAcquired", err)
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the second scheduler waited %v, want that it does not wait", waited)
		}
		end := srv.Outage()
		if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, relock.ErrUnavailable) || errors.Is(err, relock.ErrNotAcquired) {
			t.Errorf("an outage: %v, want ErrUnavailable alone", err)
		}
		end()
		release()
		synctest.Wait()
		lock, err := locker.Lock(t.Context(), "report")
		must(t, err)
		over, cancel := context.WithCancel(t.Context())
		cancel() // as that of a scheduler that is shut down
		must(t, lock.Unlock(over))
		srv.AssertFree("report")
	})
}

// Fails when nine tenths of an interval are asked for that are no whole milliseconds: they are
// refused, and the job runs nowhere. Fails also when the name stays taken for longer than that.
func TestALockerTakesAnIntervalOfAnyLength(t *testing.T) {
	for _, every := range []time.Duration{2 * time.Millisecond, 333 * time.Millisecond, 12345 * time.Millisecond, time.Minute / 7} {
		synctest.Test(t, func(t *testing.T) {
			locker := relockgocron.Locker(relocktest.New(t).Client(), every)
			lock, err := locker.Lock(t.Context(), "report")
			must(t, err)
			must(t, lock.Unlock(t.Context()))
			if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, relock.ErrNotAcquired) {
				t.Errorf("%v: %v within the interval, want ErrNotAcquired", every, err)
			}
			virtual.Sleep(every / 10 * 9)
			lock, err = locker.Lock(t.Context(), "report")
			must(t, err)
			must(t, lock.Unlock(t.Context()))
		})
	}
}

// Fails when a Locker writes its interval into the caller's list of options.
func TestLockersOfOneListOfOptionsHaveTheirOwnIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, opts := relocktest.New(t).Client(), make([]relock.LockOption, 0, 4)
		short := relockgocron.Locker(client, time.Minute, opts...)
		relockgocron.Locker(client, time.Hour, opts...)
		for range 2 {
			lock, err := short.Lock(t.Context(), "report")
			must(t, err)
			must(t, lock.Unlock(t.Context()))
			virtual.Sleep(time.Minute)
		}
	})
}

func TestAnIntervalThatIsNoneIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := relockgocron.Locker(relocktest.New(t).Client(), 0)
		if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, relock.ErrInvalidOption) {
			t.Errorf("%v, want ErrInvalidOption", err)
		}
	})
}

// Runs of one owner would enter each other's locks. Fails when a second scheduler gets the job beside the first.
func TestALockerOfAnOwnerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := relockgocron.Locker(relocktest.New(t).Client(), time.Minute, relock.Owner("svc"))
		if _, err := locker.Lock(t.Context(), "report"); !errors.Is(err, relock.ErrOwnerMismatch) {
			t.Errorf("%v, want ErrOwnerMismatch", err)
		}
	})
}
