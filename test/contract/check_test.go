package contract_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

func TestCheckCostsTwoScriptsAtFirstAndLaterOne(t *testing.T) {
	for name, kind := range deafKinds {
		t.Run(name, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, x *rig.Lab) { // where the server knows the script
				shard := x.Server.Shard()
				c, link := x.Linked(kind.opts...)
				scripts := func() (n int) {
					sent := link.Commands()
					return sent["eval"] + sent["evalsha"]
				}
				rig.Must(t, c.Check(t.Context()))
				if n := scripts(); n != 2 {
					t.Errorf("the first check sends %d scripts, want 2", n)
				}
				for i := 3; i < 6; i++ {
					rig.Must(t, c.Check(t.Context()))
					if n := scripts(); n != i {
						t.Errorf("%d scripts after %d checks, want one for each later check", n, i-1)
					}
				}
				if n := link.Commands()[kind.command]; n != 1 {
					t.Errorf("%s was sent %d times, want once", kind.command, n)
				}
				virtual.Sleep(5*time.Second + time.Millisecond)
				if n := shard.Channels(); n != 0 {
					t.Errorf("%d sharded channels 5 s after the last check", n)
				}
				before, want := scripts(), 1
				if name == "sharded" {
					want = 2
				}
				if rig.Must(t, c.Check(t.Context())); scripts()-before != want {
					t.Errorf("%d scripts by a check after 5 s, want %d", scripts()-before, want)
				}
				if keys := x.Server.Direct().Keys(); len(keys) > 0 {
					t.Errorf("%q are left in Redis", keys)
				}
			})
		})
	}
}

// A check after which nothing is asked any more by the first lock, except for the lock itself.
func TestCheckAsksForTheFirstLock(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		link := redistest.NewLink(t, x.Server.Dial)
		c := rig.Open(t, x.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }))
		rig.Must(t, c.Check(t.Context()))
		before := link.Commands()["eval"]
		x.Take(c.NewLock("a"))
		if n := link.Commands()["eval"] - before; n > 0 {
			t.Errorf("the first lock asks %d times for what has been checked", n)
		}
		if n := link.Commands()["wait"]; n > 0 {
			t.Errorf("WAIT was sent %d times without Replicas", n)
		}
	})
}

// Fails when a probe asks a server that starts again and again until its time is over.
func TestCheckTriesThreeTimes(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		rig.Must(t, c.Check(t.Context()))
		before := link.Commands()["evalsha"]
		x.Server.FailNext(1000, "LOADING Redis is loading the dataset in memory", func(args []string) bool { return args[0] == "evalsha" })
		rig.WantIs(t, c.Check(t.Context()), relock.ErrUnavailable)
		if n := link.Commands()["evalsha"] - before; n != 3 {
			t.Errorf("%d tries, want 3", n)
		}
	})
}

func TestCheckTellsAnOutage(t *testing.T) {
	for name, begin := range outages {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " first ", first), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					c, link := pooled(x)
					if !first {
						rig.Must(t, c.Check(t.Context()))
					}
					heal := begin(x, link)
					began := time.Now()
					err := c.Check(t.Context())
					rig.WantIs(t, err, relock.ErrUnavailable)
					rig.WantNot(t, err, context.DeadlineExceeded, context.Canceled)
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("it took %v", took)
					}
					heal()
					virtual.Sleep(time.Minute)
					rig.Must(t, c.Check(t.Context()))
				})
			})
		}
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	for _, first := range []bool{true, false} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := pooled(x)
			if !first {
				rig.Must(t, c.Check(t.Context()))
			}
			defer link.Hole()()
			ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errReason)
			defer cancel()
			began := time.Now()
			err := c.Check(ctx)
			rig.WantIs(t, err, relock.ErrUnavailable, context.DeadlineExceeded, errReason)
			if late := time.Since(began) - 300*time.Millisecond; late > 50*time.Millisecond {
				t.Errorf("it returned %v after its context's end", late)
			}
			err = c.Check(ctx)
			rig.WantIs(t, err, context.DeadlineExceeded)
			rig.WantNot(t, err, relock.ErrUnavailable) // nobody was asked
		})
	}
}

// go-redis dials five times before it says that a connection was refused, and the context ends in the middle of a later try.
// Fails when the error says only that Redis has not answered.
func TestAProbeThatItsContextEndsSaysWhyRedisDidNotAnswer(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, c *relock.Client) error{
		"Check": func(ctx context.Context, c *relock.Client) error { return c.Check(ctx) },
		"Info":  func(ctx context.Context, c *relock.Client) error { _, err := c.NewLock("l").Info(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				c, link := x.Linked()
				defer link.Cut()()
				ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
				defer cancel()
				err := ask(ctx, c)
				rig.WantIs(t, err, relock.ErrUnavailable, context.DeadlineExceeded)
				if !strings.Contains(fmt.Sprint(err), "refused") {
					t.Errorf("%v, want it to say that the connection was refused", err)
				}
			})
		})
	}
}

// stray publishes what the client tells itself to a channel that nobody hears.
type stray struct{}

func (stray) DialHook(next redis.DialHook) redis.DialHook { return next }

func (stray) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			lead(cmd)
		}
		return next(ctx, cmds)
	}
}

func (stray) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		lead(cmd)
		return next(ctx, cmd)
	}
}

// lead puts another channel in the place of the inbox.
func lead(cmd redis.Cmder) {
	if args := cmd.Args(); len(args) > 5 && strings.HasPrefix(fmt.Sprint(args[5]), "relock:inbox:") {
		args[5] = "elsewhere"
	}
}

// Subscribed, and nothing comes: a waiter would not be woken.
func TestCheckFailsIfTheInboxHearsNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rdb := x.Server.Client(t)
		rdb.AddHook(stray{})
		err := rig.Open(t, rdb).Check(t.Context())
		rig.WantIs(t, err, relock.ErrUnavailable)
		if err == nil || !strings.Contains(err.Error(), "inbox") || !strings.Contains(err.Error(), "not heard") {
			t.Errorf("%v, want it to say that the inbox hears nothing", err)
		}
	})
}

// The link that hears is half open, as after a firewall has forgotten it: it is made anew.
func TestCheckMendsALinkThatHearsNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		rig.Must(t, c.Check(t.Context()))
		link.HoleSubscribers()
		rig.Must(t, c.Check(t.Context()))
		rig.Must(t, c.Check(t.Context()))
	})
}

func TestCheckOfAClientThatEndsIsErrClosed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		h := x.Take(c.NewLock("a"))
		ending := rig.Beside(func() error { return c.Shutdown(t.Context()) })
		ending.Pending(t, "Shutdown")
		rig.WantIs(t, c.Check(t.Context()), relock.ErrClosed)
		rig.Must(t, h.Release())
		rig.Must(t, rig.Returned(t, ending))
		rig.WantIs(t, c.Check(t.Context()), relock.ErrClosed)

		other, link := x.Linked()
		defer link.Hole()()
		check := rig.Beside(func() error { return other.Check(t.Context()) })
		check.Pending(t, "Check")
		rig.Must(t, other.Close())
		rig.WantIs(t, rig.Returned(t, check), relock.ErrClosed)
	})
}

func TestCheckOfNothingSaysSo(t *testing.T) {
	var none *relock.Client
	rig.WantIs(t, none.Check(t.Context()), relock.ErrInvalidOption)
	rig.WantIs(t, new(relock.Client).Check(t.Context()), relock.ErrInvalidOption)
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.WantIs(t, x.Client().Check(nil), relock.ErrInvalidOption) //nolint:staticcheck // that is what is tried
	})
}

// Fails when what a server lacks for good is told as an outage, which passes.
func TestARefusalIsNoOutage(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for what, call := range map[string]func(c *relock.Client) error{
			"Check":   func(c *relock.Client) error { return c.Check(t.Context()) },
			"TryLock": func(c *relock.Client) error { _, err := c.NewLock("a").TryLock(t.Context(), 0); return err },
		} {
			rdb := x.Server.Client(t)
			rdb.AddHook(oldServer{`'redis_version:6.2.14\r\n'`})
			err := call(rig.Open(t, rdb))
			if err == nil || errors.Is(err, relock.ErrUnavailable) || !strings.Contains(err.Error(), "6.2.14") {
				t.Errorf("%s = %v, want an error that names the version and is not ErrUnavailable", what, err)
			}
		}
	})
}
