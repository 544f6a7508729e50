package recipes_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// A node is something to be built, after all that it needs.
type node struct {
	name   string
	needs  []*node
	builds atomic.Int32 // how many are under way
}

func (n *node) make(t *testing.T) error {
	if n.builds.Add(1) > 1 {
		t.Errorf("%s is built twice at once", n.name)
	}
	virtual.Sleep(time.Second)
	n.builds.Add(-1)
	return nil
}

// build compiles a node after what it needs, all of it at once. Two builds may need the same node.
func build(ctx context.Context, client *relock.Client, n *node, compile func(ctx context.Context, n *node) error) error {
	return client.NewLock("nodes/"+n.name).Do(ctx, func(ctx context.Context) error {
		group, below := errgroup.WithContext(ctx)
		for _, part := range n.needs {
			branch := relock.WithChildOwner(below)
			group.Go(func() error { return build(branch, client, part, compile) })
		}
		if err := group.Wait(); err != nil { // before the lock is unlocked: the branches rely on it
			return err
		}
		return compile(ctx, n)
	})
}

func TestBuildMakesASharedPartOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		shared := &node{name: "shared"}
		app := &node{name: "app"}
		for _, name := range []string{"a", "b", "c", "d"} {
			app.needs = append(app.needs, &node{name: name, needs: []*node{shared}})
		}
		if err := build(relock.WithNewOwner(t.Context()), srv.Client(), app, func(_ context.Context, n *node) error { return n.make(t) }); err != nil {
			t.Error(err)
		}
		srv.AssertFree("nodes/shared")
	})
}

func TestCompilerIsToldOfALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		app := &node{name: "app", needs: []*node{{name: "part"}}}
		err := build(relock.WithNewOwner(t.Context()), srv.Client(), app, func(ctx context.Context, n *node) error {
			if ctx.Err() != nil {
				t.Errorf("%s: %v before anything is lost", n.name, context.Cause(ctx))
			}
			if n == app {
				srv.Lose("nodes/app")
				<-ctx.Done() // by the next renewal at the latest
				if !errors.Is(context.Cause(ctx), relock.ErrLost) {
					t.Errorf("%v, want ErrLost", context.Cause(ctx))
				}
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, relock.ErrLost) {
			t.Errorf("%v, want ErrLost", err)
		}
	})
}
