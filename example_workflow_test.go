package relock_test

import (
	"context"
	"fmt"

	"github.com/relock-go/relock"
)

// A workflow whose steps lock for themselves and call each other: the owner in
// the context makes the inner Lock a re-entry, through any handle.
func ExampleWithOwner() {
	client, end := newClient()
	defer end()

	var visit func(ctx context.Context, depth int) error
	visit = func(ctx context.Context, depth int) error {
		step := client.NewLock("tree") // a handle for each frame costs nothing
		return step.Do(ctx, func(ctx context.Context) error {
			info, err := step.Info(ctx)
			if err != nil {
				return err
			}
			fmt.Println("depth", depth, "holds", info.Holders[0].Holds)
			if depth == 3 {
				return nil
			}
			return visit(ctx, depth+1)
		})
	}

	ctx := relock.WithOwner(context.Background(), "run-17")
	fmt.Println(visit(ctx, 1))
	// Output:
	// depth 1 holds 1
	// depth 2 holds 2
	// depth 3 holds 3
	// <nil>
}

// Without an owner a nested call would wait for itself. Where the context shows
// that, it fails at once.
func ExampleLock_Do_deadlock() {
	client, end := newClient()
	defer end()

	lock := client.NewLock("tree")
	err := lock.Do(context.Background(), func(ctx context.Context) error {
		return lock.Lock(ctx)
	})
	fmt.Println(errorIs(err))
	// Output: deadlock
}
