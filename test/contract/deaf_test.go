package contract_test

import (
	"bytes"
	"context"
	"errors"
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

// deafKinds are the two ways of hearing, with the command that each subscribes by.
var deafKinds = map[string]struct {
	opts    []relock.Option
	command string
}{
	"inbox":   {nil, "subscribe"},
	"sharded": {[]relock.Option{relock.ShardedPubSub()}, "ssubscribe"},
}

// A waiter that nobody can wake, as its channel cannot be subscribed for a while: it
// has the lock soon after that is free, and the log says why it took so long.
// Fails when a call that waits for the inbox asks for nothing meanwhile.
func TestFreeLockIsHadThoughNothingCanBeHeard(t *testing.T) {
	for name, kind := range deafKinds {
		for mode, opts := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}, "named": nil} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					ctx := t.Context()
					if mode == "named" {
						ctx = x.By("me")
					}
					x.Server.Shard()
					var out bytes.Buffer
					x.Server.FailNext(1_000_000, "LOADING Redis is loading the dataset in memory", func(args []string) bool { return args[0] == kind.command })
					other := x.Client(append(kind.opts, relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))...)
					held := x.Lock("a", opts...)
					rig.Must(t, held.Lock(t.Context()))
					waiter := rig.Beside(func() error { return other.NewLock("a", opts...).Lock(ctx) })
					virtual.Sleep(21 * time.Second)
					rig.StillWaits(t, waiter)
					rig.Must(t, held.Unlock())
					virtual.Sleep(time.Second + time.Millisecond)
					rig.Must(t, rig.Returned(t, waiter))
					if n := strings.Count(out.String(), "inbox cannot be subscribed"); n < 1 || n > 3 || !strings.Contains(out.String(), "LOADING") {
						t.Errorf("the log says so %d times within 22 s, want at once and seldom after:\n%s", n, out.String())
					}
					rig.Must(t, other.Close())
				})
			})
		}
	}
}

// The end of the context says what keeps the channel from being heard.
func TestContextSaysWhyNothingIsHeard(t *testing.T) {
	for name, kind := range deafKinds {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			x.Server.Shard()
			x.Server.FailNext(1_000_000, "LOADING Redis is loading the dataset in memory", func(args []string) bool { return args[0] == kind.command })
			rig.Must(t, x.Lock("a").Lock(t.Context()))
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errReason)
			defer cancel()
			c := x.Client(kind.opts...)
			err := c.NewLock("a").Lock(ctx)
			rig.WantIs(t, err, context.DeadlineExceeded, errReason)
			rig.WantNot(t, err, context.Canceled)
			for _, part := range []string{"until then", "subscribing", "last attempt", "LOADING"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v, want it to say %q", name, err, part)
				}
			}
			if got, err := c.NewLock("a").TryLock(t.Context(), 300*time.Millisecond); got || err != nil {
				t.Errorf("%s: TryLock = %v, %v, want false, nil: Redis says that it is taken", name, got, err)
			}
			rig.Must(t, c.Close())
			synctest.Wait()
		})
	}
}

// A command that the server does not have, or not for this user: waiting is in vain.
func TestRefusedSubscriptionIsToldAtOnce(t *testing.T) {
	for _, text := range []string{"ERR unknown command 'SUBSCRIBE', with args beginning with: ", "NOPERM User app has no permissions to access the 'x' channel"} {
		for name, kind := range deafKinds {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				x.Server.Shard()
				x.Server.FailNext(1_000_000, text, func(args []string) bool { return args[0] == kind.command })
				rig.Must(t, x.Lock("a").Lock(t.Context()))
				c := x.Client(kind.opts...)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := c.NewLock("a").Lock(ctx)
				if took := time.Since(began); !mentions(err, text[:8]) || took > time.Second {
					t.Errorf("%s: %v after %v, want %q at once", name, err, took, text)
				}
				rig.Must(t, c.Close())
			})
		}
	}
}

// A client that hears nothing asks each second. Whether its wait ended in an outage, its latest questions tell.
// Fails when an answer from before the outage counts, or a question of a moment ago as one that nobody answers.
func TestAnOutageThatBeginsWhileACallPollsIsNoContention(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.Must(t, x.Lock("a").Lock(t.Context()))
		for wait, outage := range map[time.Duration]bool{1900 * time.Millisecond: false, 2050 * time.Millisecond: false, 6 * time.Second: true} {
			c, link := x.Linked()
			link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if cmd.Is("subscribe") {
					return redistest.Lose
				}
				return redistest.Pass
			})
			call := rig.Beside(func() error {
				got, err := c.NewLock("a").TryLock(t.Context(), wait)
				if got || errors.Is(err, relock.ErrUnavailable) != outage || !outage && err != nil {
					t.Errorf("TryLock(%v) in an outage after 1.5 s = %v, %v", wait, got, err)
				}
				return nil
			})
			virtual.Sleep(1500 * time.Millisecond)
			heal := link.Hole()
			rig.Must(t, <-call)
			heal()
			rig.Must(t, c.Close())
		}
	})
}
