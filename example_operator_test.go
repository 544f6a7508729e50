package relock_test

import (
	"context"
	"fmt"

	"github.com/relock-go/relock"
)

// What an operator does with a lock whose holder is gone: look, then remove.
func ExampleLock_ForceUnlock() {
	client, end := newClient()
	defer end()

	ctx := relock.WithOwner(context.Background(), "deploy-42")
	lock := client.NewLock("production")
	if err := lock.Lock(ctx); err != nil {
		panic(err)
	}

	info, err := lock.Info(ctx)
	if err != nil {
		panic(err)
	}
	holder := info.Holders[0]
	fmt.Println(info.Kind, holder.Owner, holder.Holds, holder.Token == lock.Token(), info.Waiters)

	removed, err := lock.ForceUnlock(ctx)
	fmt.Println(removed, err)
	removed, err = lock.ForceUnlock(ctx)
	fmt.Println(removed, err)
	<-lock.Lost()
	fmt.Println(errorIs(lock.Unlock()))
	// Output:
	// plain deploy-42 1 true 0
	// true <nil>
	// false <nil>
	// lost
}
