package relockcron_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/relock-go/relock"
	relockcron "github.com/relock-go/relock/contrib/cron"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// noted is what the wrapper says, and the instants of runs.
type noted struct {
	mu      sync.Mutex
	at      []time.Time
	skipped int
	errs    []error
}

func (n *noted) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *noted) Run()                { n.change(func() { n.at = append(n.at, time.Now()) }) }
func (n *noted) Info(string, ...any) { n.change(func() { n.skipped++ }) }
func (n *noted) Error(err error, _ string, _ ...any) {
	n.change(func() { n.errs = append(n.errs, err) })
}

// late is the schedule of a process whose clock is behind.
type late struct{ by time.Duration }

func (l late) Next(now time.Time) time.Time {
	return now.Add(-l.by).Truncate(time.Minute).Add(time.Minute + l.by)
}

// twenty minutes with three processes whose clocks differ by 100 ms.
func twentyMinutes(t *testing.T, wrap func(*relock.Client, *noted) cron.JobWrapper) *noted {
	srv, seen := relocktest.New(t), new(noted)
	virtual.Sleep(time.Second)
	for i := range 3 {
		c := cron.New(cron.WithChain(wrap(srv.Client(), seen)))
		c.Schedule(late{time.Duration(i) * 100 * time.Millisecond}, seen)
		c.Start()
		t.Cleanup(func() { <-c.Stop().Done() })
	}
	virtual.Sleep(20 * time.Minute)
	synctest.Wait() // what the last jobs have noted is seen
	return seen
}

func TestAJobRunsOnceThoughClocksDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := twentyMinutes(t, func(c *relock.Client, log *noted) cron.JobWrapper {
			return relockcron.Once(c, "cleanup", time.Minute, log)
		})
		if len(seen.at) != 20 || seen.skipped != 40 || len(seen.errs) > 0 {
			t.Errorf("%d runs, %d skipped, errors %v; want 20 of 60", len(seen.at), seen.skipped, seen.errs)
		}
	})
}

// The test above can fail: it does by a lock that ends with the job.
func TestALockThatEndsWithTheJobDoesNotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := twentyMinutes(t, func(c *relock.Client, _ *noted) cron.JobWrapper {
			l := c.NewLock("cleanup").SyncLocker(t.Context())
			return func(j cron.Job) cron.Job {
				return cron.FuncJob(func() {
					l.Lock()
					defer l.Unlock()
					j.Run()
				})
			}
		})
		if len(seen.at) != 60 {
			t.Errorf("%d runs, want one of each process a minute, 60", len(seen.at))
		}
	})
}

func TestWhatGoesWrongIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, seen := relocktest.New(t), new(noted)
		run := func(every time.Duration) {
			relockcron.Once(srv.Client(), "cleanup", every, seen)(seen).Run()
		}
		run(0)
		end := srv.Outage()
		run(time.Minute)
		end()
		if len(seen.errs) != 2 || !errors.Is(seen.errs[0], relock.ErrInvalidOption) || errors.Is(seen.errs[1], relock.ErrNotAcquired) {
			t.Errorf("logged %v, want a wrong interval and an outage", seen.errs)
		}
		if relockcron.Once(srv.Client(), "cleanup", time.Minute, nil)(seen).Run(); len(seen.at) != 1 {
			t.Errorf("%d runs, want one: no logger is needed", len(seen.at))
		}
	})
}

// A run that is skipped, and one in an outage.
func TestWithoutALoggerNothingIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, seen := relocktest.New(t), new(noted)
		job := relockcron.Once(srv.Client(), "cleanup", time.Minute, nil)(seen)
		job.Run()
		job.Run()
		defer srv.Outage()()
		virtual.Sleep(time.Minute)
		job.Run()
		if len(seen.at) != 1 {
			t.Errorf("%d runs, want one", len(seen.at))
		}
	})
}

// Fails when nine tenths of an interval are asked for that are no whole milliseconds: they are
// refused, and the job runs nowhere.
func TestAnIntervalOfAnyLengthIsTaken(t *testing.T) {
	for _, every := range []time.Duration{2 * time.Millisecond, 333 * time.Millisecond, 12345 * time.Millisecond, time.Minute / 7} {
		synctest.Test(t, func(t *testing.T) {
			seen := new(noted)
			job := relockcron.Once(relocktest.New(t).Client(), "cleanup", every, seen)(seen)
			job.Run()
			job.Run()
			virtual.Sleep(every)
			job.Run()
			if len(seen.at) != 2 || seen.skipped != 1 || len(seen.errs) > 0 {
				t.Errorf("%v: %d runs, %d skipped, errors %v; want one in each of two intervals", every, len(seen.at), seen.skipped, seen.errs)
			}
		})
	}
}

func TestAJobThatPanicsGivesTheLockBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, seen := relocktest.New(t), new(noted)
		broken := cron.FuncJob(func() { panic("broken") })
		cron.NewChain(cron.Recover(seen), relockcron.Once(srv.Client(), "cleanup", time.Minute, seen)).Then(broken).Run()
		if len(seen.errs) != 1 {
			t.Errorf("logged %v, want the panic", seen.errs)
		}
		srv.AssertFree("cleanup")
	})
}

// cron cannot tell a job of the loss of its lock, so the job goes on. Fails when the next runs, which are skipped for
// that, are told as errors: an operator can do nothing about these.
func TestAJobThatGoesOnAfterALossIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, seen, end, ended := relocktest.New(t), new(noted), make(chan struct{}), make(chan struct{})
		job := relockcron.Once(srv.Client(), "cleanup", time.Minute, seen)(cron.FuncJob(func() {
			seen.Run()
			<-end
		}))
		go func() {
			job.Run()
			close(ended)
		}()
		synctest.Wait()
		srv.Lose("cleanup")
		for range 2 {
			virtual.Sleep(time.Minute)
			job.Run()
		}
		if len(seen.at) != 1 || seen.skipped != 2 || len(seen.errs) > 0 {
			t.Errorf("%d runs, %d skipped, errors %v; want the one that goes on, and two skipped", len(seen.at), seen.skipped, seen.errs)
		}
		close(end)
		<-ended
		if len(seen.errs) != 1 || !errors.Is(seen.errs[0], relock.ErrLost) {
			t.Errorf("logged %v, want the loss", seen.errs)
		}
		virtual.Sleep(time.Minute)
		if job.Run(); len(seen.at) != 2 {
			t.Errorf("%d runs, want that the job runs again after it has ended", len(seen.at))
		}
	})
}

// What README.md shows.
func TestPageRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, cleanup := relocktest.New(t).Client(), new(noted)
		crontab := cron.New()
		once := relockcron.Once(client, "cleanup", time.Minute, nil)
		_, err := crontab.AddJob("* * * * *", cron.NewChain(once).Then(cleanup))
		if err != nil {
			t.Fatal(err)
		}
		crontab.Start()
		virtual.Sleep(time.Minute + time.Second)
		<-crontab.Stop().Done()
		if len(cleanup.at) != 1 {
			t.Errorf("%d runs, want one", len(cleanup.at))
		}
	})
}

// Runs of one owner would enter each other's locks. Fails when a job runs beside itself.
func TestAJobOfAnOwnerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, seen := relocktest.New(t), new(noted)
		relockcron.Once(srv.Client(), "cleanup", time.Minute, seen, relock.Owner("svc"))(seen).Run()
		if len(seen.at) != 0 || len(seen.errs) != 1 || !errors.Is(seen.errs[0], relock.ErrOwnerMismatch) {
			t.Errorf("%d runs, logged %v; want ErrOwnerMismatch", len(seen.at), seen.errs)
		}
	})
}
