package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The first majority has the primary whose clock is fast, and the next one, after the time for which
// a counter is kept, has not. Only the second primary is part of both: its counter is all that is left.
// Fails when a counter expires that is ahead of its own server's clock.
func TestQuorumTokensGrowThoughTheFastClockIsGoneForLong(t *testing.T) {
	const ahead, keep = time.Hour, time.Minute
	for what, between := range map[string]func(x *rig.Lab, c *relock.Client){
		"nothing":                      func(*rig.Lab, *relock.Client) {},
		"a lease longer than the keep": func(x *rig.Lab, c *relock.Client) { pair(x, c, relock.TTL(2*keep)) },
		"a short lease":                func(x *rig.Lab, c *relock.Client) { pair(x, c, relock.TTL(time.Second)) },
		"an operator who forces": func(x *rig.Lab, c *relock.Client) {
			rig.Must(x.T, c.NewLock("a", relock.Fair(), relock.NoWatchdog()).Lock(x.T.Context()))
			_, err := c.NewLock("a").ForceUnlock(x.T.Context())
			rig.Must(x.T, err)
		},
		"a rest that is over": func(x *rig.Lab, c *relock.Client) {
			h, err := c.NewLock("a", relock.Fair(), relock.AtLeast(time.Second)).Acquire(x.T.Context())
			rig.Must(x.T, err)
			virtual.Sleep(2 * time.Second)
			rig.Must(x.T, h.Release())
		},
		"a waiter who gives up": func(x *rig.Lab, c *relock.Client) {
			h, err := c.NewLock("a", relock.Fair()).Acquire(x.T.Context())
			rig.Must(x.T, err)
			got, err := c.NewLock("a", relock.Fair()).TryLock(x.T.Context(), time.Second)
			if got || err != nil {
				x.T.Errorf("TryLock beside a holder: %v, %v", got, err)
			}
			rig.Must(x.T, h.Release())
		},
		"a grant that nobody had": func(x *rig.Lab, c *relock.Client) {
			h, err := c.NewLock("a", relock.Fair()).Acquire(x.T.Context())
			rig.Must(x.T, err)
			ctx, cancel := context.WithCancel(x.T.Context())
			done := make(chan error, 1)
			go func() { done <- c.NewLock("a", relock.Fair()).Lock(ctx) }()
			synctest.Wait()
			cancel()
			rig.WantIs(x.T, <-done, context.Canceled)
			rig.Must(x.T, h.Release())
		},
	} {
		t.Run(what, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				p := newPrimaries(x, 3)
				p.all[2].StepClock(ahead)
				q, links := p.process(relock.TokenKeep(keep), relock.Defaults(relock.TTL(time.Second)))
				l := q.NewLock("a")
				heal := links[0].Hole()
				first := take(t, l)
				rig.Must(t, first.Release())
				heal()
				between(x, x.ClientOver(p.all[1].Client(t), relock.TokenKeep(keep)))
				virtual.Sleep(ahead / 2) // no hold keeps the counter meanwhile
				links[2].Hole()
				second := take(t, l)
				rig.WantLater(t, first.Token(), second.Token())
				rig.Must(t, second.Release())
				virtual.Sleep(ahead) // the clock of the second has passed its counter
				third := take(t, l)
				rig.WantLater(t, second.Token(), third.Token())
				rig.Must(t, third.Release())
			})
		})
	}
}

// pair is an acquisition of "a" on one primary, and its release.
func pair(x *rig.Lab, c *relock.Client, opts ...relock.LockOption) {
	h, err := c.NewLock("a", append(opts, relock.Fair())...).Acquire(x.T.Context())
	rig.Must(x.T, err)
	rig.Must(x.T, h.Release())
}

// Fails when what a counter outlives its server's clock by is left out, or is for ever.
func TestRaisedCounterIsForgottenOnceTheClockHasPassedIt(t *testing.T) {
	const ahead, keep = time.Hour, time.Minute
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		p.all[2].StepClock(ahead)
		q, links := p.process(relock.TokenKeep(keep), relock.Defaults(relock.TTL(time.Second)))
		links[0].Hole()
		h := take(t, q.NewLock("a"))
		rig.Must(t, h.Release())
		raw := p.all[1].Client(t)
		for _, at := range []struct {
			after time.Duration
			keys  int
		}{{ahead, 1}, {2 * keep, 0}} {
			virtual.Sleep(at.after)
			names, err := raw.Keys(t.Context(), "relock:*").Result()
			rig.Must(t, err)
			hashes := 0
			for _, name := range names {
				if kind, err := raw.Type(t.Context(), name).Result(); err == nil && kind == "hash" {
					hashes++
				}
			}
			if hashes != at.keys {
				t.Errorf("%v later there are %d hashes (%q), want %d", at.after, hashes, names, at.keys)
			}
		}
	})
}
