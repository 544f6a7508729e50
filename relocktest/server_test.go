package relocktest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

func TestAnHourOfWaitingTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		release := srv.Hold("books")
		time.AfterFunc(time.Hour, release)
		began := time.Now()
		rig.Must(t, srv.Client().NewLock("books").Lock(t.Context()))
		if waited := time.Since(began); waited != time.Hour {
			t.Errorf("waited for %v, want until the release, 1h", waited)
		}
	})
}

func TestSomebodyElseHolds(t *testing.T) {
	everywhere(t, func(t *testing.T, srv *relocktest.Server) {
		l := srv.Client().NewLock("job")
		release := srv.Hold("job")
		srv.AssertHeld("job")
		got, err := l.TryLock(t.Context(), 0)
		wantError(t, "TryLock", err, nil)
		if got {
			t.Error("held by two")
		}
		waited := make(chan error, 1)
		go func() { waited <- l.Lock(t.Context()) }()
		srv.AssertWaiting("job", 1)
		release()
		release() // again does nothing
		wantError(t, "Lock", <-waited, nil)
		wantError(t, "Unlock", l.Unlock(), nil)
		srv.AssertFree("job")
	})
}

func TestAFairLockIsHeldAsOne(t *testing.T) {
	everywhere(t, func(t *testing.T, srv *relocktest.Server) {
		defer srv.Hold("tickets", relock.Fair())()
		got, err := srv.Client().NewLock("tickets", relock.Fair()).TryLock(t.Context(), 0)
		wantError(t, "TryLock", err, nil)
		if got {
			t.Error("held by two")
		}
	})
}

func TestWhoLosesIsTold(t *testing.T) {
	everywhere(t, func(t *testing.T, srv *relocktest.Server) {
		hold, err := srv.Client().NewLock("job").Acquire(t.Context())
		rig.Must(t, err)
		ctx := hold.Context(t.Context())
		srv.Lose("job")
		<-ctx.Done()
		wantError(t, "cause", context.Cause(ctx), relock.ErrLost)
		wantError(t, "Release", hold.Release(), relock.ErrLost)
		srv.Hold("job") // it is free
	})
}

// As that of a process that has died: nobody renews it, and nobody releases it.
func TestTheHoldOfTheDeadEndsWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		srv.Hold("job", relock.NoWatchdog(), relock.TTL(time.Minute))
		began := time.Now()
		rig.Must(t, srv.Client().NewLock("job").Lock(t.Context()))
		if waited := time.Since(began); waited < 59*time.Second || waited > time.Minute {
			t.Errorf("waited for %v, want a lease of 1m", waited)
		}
	})
}

// Code that makes its client by itself is cut off and told as well.
func TestCodeMayMakeItsOwnClient(t *testing.T) {
	everywhere(t, func(t *testing.T, srv *relocktest.Server) {
		c, err := relock.New(srv.Redis())
		rig.Must(t, err)
		defer c.Close()
		l := c.NewLock("job", relock.TTL(200*time.Millisecond))
		hold, err := l.Acquire(t.Context())
		rig.Must(t, err)
		heal := srv.Partition()
		<-hold.Lost()
		heal()
		wantError(t, "Release", hold.Release(), relock.ErrLost)
		wantError(t, "Lock", l.Lock(t.Context()), nil)
	})
}

func TestWhoIsNotTheServersClientHasNoNetwork(t *testing.T) {
	everywhere(t, func(t *testing.T, _ *relocktest.Server) {
		test := &judged{TB: t}
		srv := relocktest.New(test)
		if test.failure(func() { srv.Partition(srv.Other()) }) == "" {
			t.Error("who is beyond every network is cut off")
		}
		if test.failure(func() { srv.Outage(nil) }) == "" {
			t.Error("nil is cut off")
		}
	})
}

// What cannot be done fails the test, which would be about nothing otherwise.
func TestWhatIsNotSoFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		test := &judged{TB: t}
		srv := relocktest.New(test)
		wants := func(fails string, f func()) {
			t.Helper()
			if said := test.failure(f); (said == "") != (fails == "") || !strings.Contains(said, fails) {
				t.Errorf("failed with %q, want %q", said, fails)
			}
		}
		wants("nobody holds", func() { srv.Lose("job") })
		wants("nobody holds", func() { srv.AssertHeld("job") })
		wants("", func() { srv.AssertFree("job") })
		l := srv.Client().NewLock("job")
		rig.Must(t, l.Lock(t.Context()))
		wants("nobody else can hold", func() { srv.Hold("job") })
		wants("is not free", func() { srv.AssertFree("job") })
		wants("wait for", func() { srv.AssertWaiting("job", 1) })
		wants("", func() { srv.AssertWaiting("job", 0) })
		wants("", func() { srv.AssertHeld("job") })
		leave, left := context.WithCancel(t.Context())
		queued := rig.Beside(func() error { return srv.Client().NewLock("job").Lock(leave) })
		wants("", func() { srv.AssertWaiting("job", 1) })
		wants("wait for", func() { srv.AssertWaiting("job", 0) }) // neither fewer nor more
		left()
		rig.WantIs(t, <-queued, context.Canceled)
		wait, wake := context.WithCancel(t.Context())
		waits := rig.Beside(func() error { return l.NewCond("done").Wait(wait) })
		wants("on conditions", func() { srv.AssertFree("job") })
		wake()
		rig.WantIs(t, <-waits, context.Canceled)
		rig.Must(t, l.Unlock())
	})
}

// Fails when a test goes on that the documentation says is ended, or ends that is to go on.
func TestWhatEndsATestAndWhatLetsItGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		test := &judged{TB: t}
		srv := relocktest.New(test)
		srv.Hold("held")
		rig.Must(t, srv.Redis().Set(t.Context(), key.Hash("relock", "theirs"), "no lock", 0).Err())
		defer srv.Redis().Del(t.Context(), key.Hash("relock", "theirs"))
		for what, row := range map[string]struct {
			f    func()
			ends bool
		}{
			"Hold of a name that is taken":    {func() { srv.Hold("held") }, true},
			"Lose of a name that is free":     {func() { srv.Lose("free") }, true},
			"a client with a bad option":      {func() { srv.Client(relock.KeyPrefix("{")) }, true},
			"AssertFree, and it is held":      {func() { srv.AssertFree("held") }, false},
			"AssertHeld, and it is free":      {func() { srv.AssertHeld("free") }, false},
			"AssertWaiting, and nobody waits": {func() { srv.AssertWaiting("held", 1) }, false},
			"AssertFree, unreadable":          {func() { srv.AssertFree("theirs") }, true},
			"AssertHeld, unreadable":          {func() { srv.AssertHeld("theirs") }, true},
			"AssertWaiting, unreadable":       {func() { srv.AssertWaiting("theirs", 0) }, true},
		} {
			wentOn := false
			if said := test.failure(func() { row.f(); wentOn = true }); said == "" || wentOn == row.ends {
				t.Errorf("%s: failed with %q, goes on: %v; want that it fails, and ends: %v", what, said, wentOn, row.ends)
			}
		}
	})
}

// A hold is lost to an operator, or ends with its lease. Fails when its release ends the hold that came after it, or
// fails the test.
func TestAReleaseAfterALossDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		test := &judged{TB: t}
		srv := relocktest.New(test)
		for _, lose := range []func(){func() { srv.Lose("job") }, func() { virtual.Sleep(time.Minute) }} {
			release := srv.Hold("job", relock.NoWatchdog(), relock.TTL(time.Minute))
			lose()
			next := srv.Hold("job")
			if said := test.failure(release); said != "" {
				t.Errorf("the release failed the test: %s", said)
			}
			srv.AssertHeld("job")
			next()
		}
	})
}

// In real time an assertion waits a little for what goes on in the background.
func TestAnAssertionInRealTimeWaitsAndGivesUp(t *testing.T) {
	test := &judged{TB: t}
	srv := relocktest.New(test)
	release := srv.Hold("job")
	time.AfterFunc(50*time.Millisecond, release)
	if said := test.failure(func() { srv.AssertFree("job") }); said != "" {
		t.Errorf("a lock that is released within a second is said not to be free: %s", said)
	}
	if test.failure(func() { srv.AssertHeld("job") }) == "" {
		t.Error("a lock that nobody holds is said to be held")
	}
}

// Nobody holds the name, and a call waits for it, or on a condition of it.
// Fails when AssertFree waits for the end of holds alone.
func TestAssertFreeInRealTimeWaitsForWhoWaits(t *testing.T) {
	test := &judged{TB: t}
	srv := relocktest.New(test)
	becomesFree := func(name string) {
		t.Helper()
		if said := test.failure(func() { srv.AssertFree(name) }); said != "" {
			t.Errorf("%q, for which nobody waits any more within a second, is said not to be free: %s", name, said)
		}
	}
	l := srv.Client().NewLock("signalled")
	rig.Must(t, l.Lock(t.Context()))
	slept := rig.Beside(func() error {
		_, err := l.NewCond("done").WaitFor(t.Context(), 50*time.Millisecond)
		return errors.Join(err, l.Unlock())
	})
	becomesFree("signalled")
	rig.Must(t, <-slept)

	rests := srv.Client().NewLock("rests", relock.AtLeast(time.Hour))
	rig.Must(t, rests.Do(t.Context(), func(context.Context) error { return nil }))
	ctx, leave := context.WithCancel(t.Context())
	queued := rig.Beside(func() error { return rests.Lock(ctx) })
	srv.AssertWaiting("rests", 1)
	time.AfterFunc(50*time.Millisecond, leave)
	becomesFree("rests")
	rig.WantIs(t, <-queued, context.Canceled)
}

func TestAssertionsSeeTheLocksOfEveryKeyPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		test := &judged{TB: t}
		srv := relocktest.New(test)
		passes := func(f func()) {
			if said := test.failure(f); said != "" {
				t.Errorf("the assertion failed: %s", said)
			}
		}
		l := srv.Client(relock.KeyPrefix("billing")).NewLock("job")
		rig.Must(t, l.Lock(t.Context()))
		passes(func() { srv.AssertHeld("job") })
		if test.failure(func() { srv.AssertFree("job") }) == "" {
			t.Error("a lock of a client with a KeyPrefix of its own is said to be free")
		}
		waits := srv.Client(relock.KeyPrefix("billing")).NewLock("job")
		done := rig.Beside(func() error { return waits.Lock(t.Context()) })
		passes(func() { srv.AssertWaiting("job", 1) })
		rig.Must(t, l.Unlock())
		rig.Must(t, <-done)
		rig.Must(t, waits.Unlock())
		passes(func() { srv.AssertFree("job") })
	})
}

// The machine may be slow: what a test computes takes no time of its bubble.
func TestComputingCostsNoLease(t *testing.T) {
	begin, computed := make(chan struct{}), make(chan struct{}) // of no bubble
	go func() {
		<-begin
		<-time.After(300 * time.Millisecond)
		close(computed)
	}()
	synctest.Test(t, func(t *testing.T) {
		l := relocktest.New(t).Client().NewLock("job", relock.TTL(100*time.Millisecond))
		hold, err := l.Acquire(t.Context())
		rig.Must(t, err)
		close(begin)
		<-computed // meanwhile time stands still in this bubble
		virtual.Sleep(20 * time.Millisecond)
		rig.Must(t, hold.Err())
	})
}

// Whoever waits is no holder, and a lock that is waited for is not free.
func TestARestIsWaitedForByAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		test := &judged{TB: t}
		srv := relocktest.New(test)
		rests := srv.Client().NewLock("job", relock.AtLeast(time.Minute))
		rig.Must(t, rests.Lock(t.Context()))
		rig.Must(t, rests.Unlock())
		go func() { _ = srv.Client().NewLock("job").Lock(t.Context()) }()
		if test.failure(func() { srv.AssertFree("job") }) == "" {
			t.Error("a lock that is waited for is said to be free")
		}
		virtual.Sleep(time.Minute)
		srv.AssertHeld("job")
	})
}

// A test may end in the middle of anything.
func TestWhatIsLeftEndsWithTheTest(t *testing.T) {
	everywhere(t, func(t *testing.T, srv *relocktest.Server) {
		srv.Hold("job")
		for _, fault := range []func(...*relock.Client) func(){srv.Partition, srv.Outage} {
			c := srv.Client()
			rig.Must(t, c.NewLock("another").Lock(relock.WithOwner(t.Context(), "me")))
			go func() { _ = c.NewLock("job").Lock(t.Context()) }()
			fault(c)
		}
	})
}

func TestNobodyWaitsForAFaultAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		t.Cleanup(func() {
			if took := time.Since(began); took > 11*time.Second { // 10 s are for dials
				t.Errorf("the end of a test takes %v", took)
			}
		})
		srv := relocktest.New(t)
		l := srv.Client().NewLock("job")
		rig.Must(t, l.Lock(t.Context()))
		srv.Partition()
		go func() { _ = l.Unlock() }()
		synctest.Wait() // it is under way
	})
}
