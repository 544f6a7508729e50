package conformance_test

import (
	"context"
	"slices"
	"testing"

	"github.com/relock-go/relock"
)

// TestEveryGrantOfEitherModeHasALargerToken: re-entries of it share its token.
func TestEveryGrantOfEitherModeHasALargerToken(t *testing.T) {
	inBothModes(t, func(t *testing.T, g *ground) {
		x := &grants{g: g}
		for range 3 {
			me, r1, r2, w := g.thread("me"), g.thread("r1"), g.thread("r2"), g.thread("w")
			x.grant(r1.ctx, r1.RLocker())
			x.grant(r2.ctx, r2.RLocker())
			x.reenter(r2.ctx, r2.RLocker())
			a := w.begin(func(ctx context.Context) error { x.grant(ctx, w.WLocker()); return nil })
			g.queue("w")
			g.unlock(r1.RLocker(), r2.RLocker(), r2.RLocker())
			g.ok(a.ends())
			x.reenter(w.ctx, w.RLocker())
			a = r1.begin(func(ctx context.Context) error { x.grant(ctx, r1.RLocker()); return nil })
			g.queue("r1")
			token := w.Token(t)
			g.ok(w.Downgrade(w.ctx))
			g.ok(a.ends())
			if got := w.RLocker().Token(); got != token {
				t.Errorf("token %d after the downgrade, %d before", got, token)
			}
			g.unlock(w.RLocker(), w.RLocker(), r1.RLocker())
			x.grant(me.ctx, me.WLocker())
			g.ok(me.Unlock())
		}
		if len(x.tokens) != 15 || !slices.IsSorted(x.tokens) || len(slices.Compact(x.tokens)) != 15 {
			t.Errorf("tokens %d, want 15 that grow", x.tokens)
		}
	})
}

// grants are the tokens of all grants so far.
type grants struct {
	g      *ground
	tokens []int64
}

func (x *grants) grant(ctx context.Context, l *relock.Lock) {
	x.tokens = append(x.tokens, x.acquire(ctx, l))
}

// reenter acquires by the newest grant.
func (x *grants) reenter(ctx context.Context, l *relock.Lock) {
	x.g.t.Helper()
	if got, newest := x.acquire(ctx, l), x.tokens[len(x.tokens)-1]; got != newest {
		x.g.t.Errorf("a re-entry has token %d, its grant %d", got, newest)
	}
}

func (x *grants) acquire(ctx context.Context, l *relock.Lock) (token int64) {
	x.g.t.Helper()
	h, err := l.Acquire(ctx)
	x.g.ok(err)
	if l.Token() != h.Token() {
		x.g.t.Errorf("the handle says %d, the hold %d", l.Token(), h.Token())
	}
	return h.Token()
}

// unlock ends one hold of each side.
func (g *ground) unlock(sides ...*relock.Lock) {
	g.t.Helper()
	for _, side := range sides {
		g.ok(side.Unlock())
	}
}

// Token is that of the write hold.
func (th *thread) Token(t *testing.T) int64 {
	t.Helper()
	token := th.WLocker().Token()
	if token == 0 {
		t.Error("no token")
	}
	return token
}
