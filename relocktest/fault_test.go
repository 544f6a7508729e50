package relocktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

func TestWhoIsCutOffKnowsBeforeAnybodyElseHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		hold, err := srv.Client().NewLock("job", relock.TTL(time.Minute)).Acquire(t.Context())
		rig.Must(t, err)
		virtual.Sleep(10 * time.Minute) // renewed all the while
		rig.Must(t, hold.Err())

		srv.Partition()
		began := time.Now()
		rig.Must(t, srv.Other().NewLock("job").Lock(t.Context()))
		wantError(t, "who was cut off", hold.Err(), relock.ErrLost)
		if waited := time.Since(began); waited < 40*time.Second || waited > time.Minute {
			t.Errorf("somebody else held after %v, want what was left of a lease of 1m", waited)
		}
	})
}

func TestOneClientAloneIsCutOff(t *testing.T) {
	everywhere(t, func(t *testing.T, srv *relocktest.Server) {
		there, here := srv.Client(), srv.Client()
		cut := here.NewLock("job", relock.TTL(150*time.Millisecond))
		hold, err := cut.Acquire(t.Context())
		rig.Must(t, err)
		heal := srv.Partition(here)
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		rig.Must(t, there.NewLock("job").Lock(soon))
		wantError(t, "who was cut off", hold.Err(), relock.ErrLost)
		_, err = cut.TryAcquire(t.Context(), 50*time.Millisecond)
		if err == nil || errors.Is(err, relock.ErrNotAcquired) {
			t.Errorf("behind a partition: %v, want an error that is not ErrNotAcquired", err)
		}
		wantError(t, "Release", hold.Release(), relock.ErrLost)
		heal()
		srv.Lose("job")
		_, err = cut.TryAcquire(t.Context(), 10*time.Second)
		wantError(t, "after it", err, nil)
	})
}

func TestAnOutageIsAnErrorAndEnds(t *testing.T) {
	everywhere(t, func(t *testing.T, srv *relocktest.Server) {
		l := srv.Client().NewLock("job")
		end := srv.Outage()
		got, err := l.TryLock(t.Context(), 50*time.Millisecond)
		if got || err == nil || errors.Is(err, relock.ErrNotAcquired) {
			t.Errorf("TryLock = %v, %v, want an error that is not ErrNotAcquired", got, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		wantError(t, "Lock", l.Lock(ctx), context.DeadlineExceeded)
		end()
		wantError(t, "Lock after it", l.Lock(t.Context()), nil)
	})
}

// A hold outlives an outage that is shorter than its lease.
func TestAnOutageIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		l := srv.Client().NewLock("job")
		rig.Must(t, l.Lock(t.Context()))
		end := srv.Outage()
		virtual.Sleep(15 * time.Second)
		end()
		virtual.Sleep(10 * time.Minute)
		rig.Must(t, l.Unlock())
		srv.AssertFree("job")
	})
}

func TestAFaultBefallsLaterClientsToo(t *testing.T) {
	everywhere(t, func(t *testing.T, srv *relocktest.Server) {
		end := srv.Outage()
		l := srv.Client().NewLock("job")
		if _, err := l.TryLock(t.Context(), 0); err == nil {
			t.Error("a client that was made in an outage reaches Redis")
		}
		end()
		got, err := l.TryLock(t.Context(), 10*time.Second)
		if wantError(t, "TryLock", err, nil); !got {
			t.Error("not held after the outage")
		}
	})
}

// Behind a partition nobody says no: only the caller's own patience ends the wait.
func TestAPartitionIsSilentAndAnOutageIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		rdb := srv.Redis()
		asked := func() (took time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			if err := rdb.Ping(ctx).Err(); err == nil {
				t.Error("a command is answered")
			}
			return time.Since(began)
		}
		heal := srv.Partition()
		if took := asked(); took < 3*time.Second {
			t.Errorf("refused after %v, want a timeout", took)
		}
		heal()
		rig.Must(t, rdb.Ping(t.Context()).Err())
		defer srv.Outage()()
		if took := asked(); took > 3*time.Second {
			t.Errorf("refused after %v, want at once", took)
		}
	})
}

// Connections that were silent end with the partition: nobody waits for their timeouts.
func TestAPartitionThatHealsIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		l := srv.Client().NewLock("job")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
		heal := srv.Partition()
		heal()
		synctest.Wait()
		began := time.Now()
		got, err := l.TryLock(t.Context(), time.Second)
		if wantError(t, "TryLock", err, nil); !got || time.Since(began) > 100*time.Millisecond {
			t.Errorf("held %v after %v, want at once", got, time.Since(began))
		}
	})
}

// Fails when a fault of one client is also one of those that Redis returned.
func TestAPartitionOfOneClientLeavesTheOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, srv *relocktest.Server) {
		data, here, there := srv.Redis(), srv.Client(), srv.Client()
		for name, begin := range map[string]func(...*relock.Client) func(){"partition": srv.Partition, "outage": srv.Outage} {
			end := begin(here)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			wantError(t, name+", Redis", data.Set(ctx, "sold", 1, 0).Err(), nil)
			lock := there.NewLock("job")
			wantError(t, name+", another client", lock.Lock(ctx), nil)
			wantError(t, name+", Unlock of another client", lock.Unlock(), nil)
			cancel()
			end()
		}
	})
}

// Fails when a partition closes a connection: who waits for a message there would be told at once.
func TestAPartitionClosesNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		news := srv.Redis().Subscribe(t.Context(), "news")
		defer news.Close()
		_, err := news.Receive(t.Context())
		rig.Must(t, err)
		defer srv.Partition()()
		began := time.Now()
		said, err := news.ReceiveTimeout(t.Context(), time.Minute)
		if took := time.Since(began); err == nil || took != time.Minute {
			t.Errorf("received %v, %v after %v, want a timeout after 1m", said, err, took)
		}
	})
}
