package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// TestJTREG_FlakyMutex: calls that fail do not break the queue for others. Theirs
// throws; here one command in six is lost, or its reply is.
func TestJTREG_FlakyMutex(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		const threads, rounds = 6, 8
		c, link := g.over()
		steady := g.threadOf(c, "warm")
		g.ok(steady.excl.Lock(steady.ctx))
		g.ok(steady.excl.Unlock())
		link.OnCommand(oneInSixIsLost)
		in := &inside{t: t}
		var calls []*attempt
		for i := range threads {
			th := g.threadOf(c, fmt.Sprint("t", i))
			if i%2 == 0 {
				th = g.thread(th.owner) // on a link that works
			}
			calls = append(calls, th.begin(func(ctx context.Context) error {
				th.ctx = ctx
				return visitOften(th, in, rounds)
			}))
		}
		for _, a := range calls {
			g.ok(a.ends())
		}
		link.OnCommand(nil)
		g.queue()
		if got := in.visits.Load(); got != threads*rounds {
			t.Errorf("%d visits, want %d", got, threads*rounds)
		}
	})
}

// oneInSixIsLost, or its reply is.
func oneInSixIsLost(cmd redistest.Command) redistest.Verdict {
	switch {
	case !cmd.Is("evalsha") || rand.N(6) > 0:
		return redistest.Pass
	case rand.N(2) == 0:
		return redistest.CutReply
	}
	return redistest.CutBefore
}

// visitOften locks in any way, looks who else is inside, and unlocks.
func visitOften(th *thread, in *inside, rounds int) error {
	for range rounds {
		if err := persist(anyWay(), th); err != nil {
			return err
		}
		in.visit(th)
		if err := th.excl.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

// persist tries again where one attempt could not ask Redis.
func persist(lock way, th *thread) error {
	for {
		err := lock(th, th.excl)
		if err == nil || th.ctx.Err() != nil || errors.Is(err, relock.ErrClosed) {
			return err
		}
		pauseFor(th.ctx, time.Millisecond)
	}
}
