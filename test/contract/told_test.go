package contract_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// What an operator reads of a loss: in the error, in the hook's, and in the log.
func TestALossSaysWhyInTheErrorTheHookAndTheLog(t *testing.T) {
	partition := func(_ *testing.T, _ *rig.Lab, _ *relock.Client, link *redistest.Link) {
		link.Hole()
		virtual.Sleep(time.Minute)
	}
	wait := func(*testing.T, *rig.Lab, *relock.Client, *redistest.Link) { virtual.Sleep(5 * time.Minute) }
	for name, c := range map[string]struct {
		opts  []relock.LockOption
		lose  func(t *testing.T, x *rig.Lab, c *relock.Client, link *redistest.Link)
		level string
		why   string
	}{
		"no answer": {nil, partition, "ERROR", "its lease could not be renewed in time"},
		"data lost": {nil, func(t *testing.T, x *rig.Lab, _ *relock.Client, _ *redistest.Link) {
			x.Redis.FlushAll(t.Context())
			virtual.Sleep(time.Minute)
		}, "ERROR", "redis no longer has it"},
		"forced": {nil, func(t *testing.T, x *rig.Lab, _ *relock.Client, _ *redistest.Link) {
			synctest.Wait() // until the holder has subscribed
			_, err := x.Eye.NewLock("a").ForceUnlock(t.Context())
			rig.Must(t, err)
			synctest.Wait()
		}, "ERROR", "removed by ForceUnlock"},
		"closed":  {nil, func(t *testing.T, _ *rig.Lab, c *relock.Client, _ *redistest.Link) { rig.Must(t, c.Close()) }, "ERROR", "client closed"},
		"MaxHold": {[]relock.LockOption{relock.MaxHold(time.Minute)}, wait, "WARN", "MaxHold of 1m0s is over"},
		"MaxHold shorter than the lease": {
			[]relock.LockOption{relock.MaxHold(100 * time.Millisecond), relock.TTL(time.Second)}, wait, "WARN", "MaxHold of 100ms is over",
		},
		"NoWatchdog": {
			[]relock.LockOption{relock.NoWatchdog(), relock.TTL(300 * time.Millisecond)}, wait, "WARN", "its lease of 300ms has ended (NoWatchdog)",
		},
		"no answer long before MaxHold":    {[]relock.LockOption{relock.MaxHold(time.Hour)}, partition, "ERROR", "its lease could not be renewed in time"},
		"no answer shortly before MaxHold": {[]relock.LockOption{relock.MaxHold(25 * time.Second)}, partition, "ERROR", "its lease could not be renewed in time"},
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			var out lockedBuffer
			var lost []relock.Event
			client, link := x.Linked(relock.Logger(slog.New(slog.NewTextHandler(&out, nil))), relock.Trace(relock.Hooks{
				Lost: func(e relock.Event) { lost = append(lost, e) },
			}))
			h := rig.MustAcquire(t, client.NewLock("a", c.opts...))
			c.lose(t, x, client, link)
			synctest.Wait()
			rig.WantIs(t, h.Err(), relock.ErrLost)
			if got, want := h.Err().Error(), `relock: lock "a" was lost: `+c.why; got != want {
				t.Errorf("%s: Err is %q, want %q", name, got, want)
			}
			if len(lost) != 1 || lost[0].Err.Error() != "lost: "+c.why {
				t.Errorf("%s: the hook was told %+v, want one loss: %s", name, lost, c.why)
			}
			var line string
			for l := range strings.Lines(out.String()) {
				if strings.Contains(l, "lock lost") {
					line += l
				}
			}
			if !strings.Contains(line, "level="+c.level) || !strings.HasSuffix(line, c.why+"\"\n") || strings.Count(line, "\n") != 1 {
				t.Errorf("%s: the log says %q, want one line at %s: %s", name, line, c.level, c.why)
			}
		})
	}
}

// Holds of one owner end for reasons of their own.
func TestHoldsThatEndTogetherSayEachWhy(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		ctx := x.By("me")
		fixed, err := c.NewLock("a", relock.NoWatchdog(), relock.TTL(time.Minute)).Acquire(ctx)
		rig.Must(t, err)
		most, err := c.NewLock("a", relock.MaxHold(time.Second), relock.TTL(time.Minute)).Acquire(ctx)
		rig.Must(t, err)
		virtual.Sleep(time.Hour)
		for h, want := range map[*relock.Hold]string{fixed: "its lease of 1m0s has ended (NoWatchdog)", most: "MaxHold of 1s is over"} {
			if got := h.Err(); got == nil || !strings.HasSuffix(got.Error(), ": "+want) {
				t.Errorf("Err = %v, want %s", got, want)
			}
		}
	})
}

// The one question of a hanging deploy is which holds are left.
func TestShutdownThatRunsOutOfTimeNamesTheHoldsThatAreLeft(t *testing.T) {
	const said = "relock: shutdown: context deadline exceeded; "
	for want, held := range map[string][]string{
		`1 hold is left, of "a"`:                                         {"a"},
		`3 holds are left, of "a", "b"`:                                  {"b", "a", "b"},
		`7 holds are left, of "a", "b", "c", "d", "e" and 2 other locks`: {"g", "f", "e", "d", "c", "b", "a"},
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c := x.Client()
			for _, name := range held {
				rig.Must(t, c.NewLock(name).Lock(x.By("me")))
			}
			rig.Must(t, c.NewLock("released").Do(t.Context(), func(context.Context) error { return nil }))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := c.Shutdown(ctx)
			rig.WantIs(t, err, context.DeadlineExceeded)
			if got := err.Error(); got != said+want {
				t.Errorf("Shutdown says\n\t%s\nwant\n\t%s", got, said+want)
			}
		})
	}
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked(relock.ReleaseTimeout(100 * time.Millisecond))
		l := c.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		link.Hole()
		rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Shutdown(ctx)
		if want := said + "no hold is left, but Redis has not confirmed every release"; err == nil || err.Error() != want {
			t.Errorf("Shutdown says\n\t%v\nwant\n\t%s", err, want)
		}
	})
}

// One try that goes unanswered is no outage yet.
func TestARequestThatIsAnsweredAtTheSecondTryIsNotInTheLog(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		var out lockedBuffer
		a := x.Actor(relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))
		a.Fate("acquire", 1, redistest.CutReply)
		rig.Must(t, a.NewLock("a").Lock(t.Context()))
		if text := out.String(); strings.Contains(text, "asking for a lock again") {
			t.Error(text)
		}
	})
}

// Ten minutes of outage with fifty calls: a line for each of their tries would be tens of thousands.
func TestTheLogOfAnOutageHasFewLinesAndTheNumberOfCalls(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const calls = 50
		var out lockedBuffer
		c, link := x.Linked(relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))
		rig.Must(t, c.NewLock("before").Do(t.Context(), func(context.Context) error { return nil }))
		lines := func() (all []string) {
			for line := range strings.Lines(out.String()) {
				if strings.Contains(line, "asking for a lock again") {
					all = append(all, line)
				}
			}
			return all
		}
		for round := 1; round <= 2; round++ {
			before := len(lines())
			mend := link.Cut()
			done := make(chan error, calls)
			for i := range calls {
				go func() {
					l := c.NewLock(fmt.Sprint("lock", i))
					if err := l.Lock(t.Context()); err != nil {
						done <- err
						return
					}
					done <- l.Unlock()
				}()
			}
			virtual.Sleep(10 * time.Second)
			if n := len(lines()) - before; n < 2 || n > 5 {
				t.Errorf("outage %d: %d lines in ten seconds, want 2 to 5:\n%s", round, n, strings.Join(lines()[before:], ""))
			}
			virtual.Sleep(10 * time.Minute)
			told := lines()[before:]
			if n := len(told); n < 8 || n > 20 {
				t.Errorf("outage %d: %d lines in ten minutes, want 8 to 20", round, n)
			}
			if last := told[len(told)-1]; !strings.Contains(last, " calls=50 ") || !strings.Contains(last, "level=WARN") {
				t.Errorf("outage %d: the last line says %q, want calls=50", round, last)
			}
			mend()
			for range calls {
				rig.Must(t, <-done)
			}
			virtual.Sleep(2 * time.Second)
		}
	})
}

// Fails when each try of an outage has a line, when a line names a key and not the lock, or when one that tells of no
// loss is more than a warning.
func TestWhatFailsInAnOutageIsLoggedEverLessOftenAndByItsName(t *testing.T) {
	for fault, want := range map[string][]string{
		"refused": {"renewal failed, trying again\" lock=alone ", "heartbeat of waiters failed, trying again\" lock=queued "},
		"silent":  {"renewal failed, trying again\" locks=10 ", "heartbeat of waiters failed, trying again\" lock=queued "},
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			var out lockedBuffer
			c, link := x.Linked(relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))
			held := []*relock.Lock{c.NewRWLock("alone").RLocker()}
			for i := range 10 {
				held = append(held, c.NewLock(fmt.Sprint("lock", i)))
			}
			for _, l := range held {
				rig.Must(t, l.Lock(t.Context()))
			}
			other := x.Lock("queued")
			rig.Must(t, other.Lock(t.Context()))
			waits := rig.Beside(func() error { return c.NewLock("queued").Lock(t.Context()) })
			rig.StillWaits(t, waits)
			virtual.Sleep(12 * time.Second)
			begin := link.Cut
			if fault == "silent" {
				begin = link.Hole
			}
			end := begin()
			virtual.Sleep(19 * time.Second)
			end()
			for _, line := range want {
				if n := strings.Count(out.String(), line); n < 2 || n > 6 {
					t.Errorf("%s: %q in %d lines of 19 s, want 2 to 6:\n%s", fault, line, n, out.String())
				}
			}
			if strings.Contains(out.String(), "relock:h:") {
				t.Errorf("%s: a line names a key:\n%s", fault, out.String())
			}
			if strings.Count(out.String(), "\n") != strings.Count(out.String(), "level=WARN") {
				t.Errorf("%s: nothing is lost, and not every line is a warning:\n%s", fault, out.String())
			}
			virtual.Sleep(30 * time.Second)
			rig.Must(t, other.Unlock())
			rig.Must(t, <-waits)
			for _, l := range held {
				rig.Must(t, l.Unlock())
			}
		})
	}
}
