package recipes_test

import (
	"context"
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

func (n *node) make(t *testing.T) {
	if n.builds.Add(1) > 1 {
		t.Errorf("%s is built twice at once", n.name)
	}
	virtual.Sleep(time.Second)
	n.builds.Add(-1)
}

// build compiles a node after what it needs, all of it at once. Two builds may need the same node.
func build(ctx context.Context, client *relock.Client, n *node, compile func(n *node)) error {
	return client.NewLock("nodes/"+n.name).Do(ctx, func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, part := range n.needs {
			branch := relock.WithChildOwner(ctx)
			group.Go(func() error { return build(branch, client, part, compile) })
		}
		if err := group.Wait(); err != nil { // before the lock is unlocked: the branches rely on it
			return err
		}
		compile(n)
		return nil
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
		if err := build(relock.WithNewOwner(t.Context()), srv.Client(), app, func(n *node) { n.make(t) }); err != nil {
			t.Error(err)
		}
		srv.AssertFree("nodes/shared")
	})
}
