package relock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/relock-go/relock"
)

// errorIs names the error that a caller would tell apart.
func errorIs(err error) string {
	switch {
	case err == nil:
		return "none"
	case errors.Is(err, relock.ErrLost):
		return "lost"
	case errors.Is(err, relock.ErrNotHeld):
		return "not held"
	case errors.Is(err, relock.ErrDeadlock):
		return "deadlock"
	}
	return err.Error()
}

// A hold without a watchdog lasts for its TTL and no longer. Its context ends
// then, and says why.
func ExampleHold_Context() {
	client, end := newClient()
	defer end()

	lock := client.NewLock("batch", relock.TTL(150*time.Millisecond), relock.NoWatchdog())
	hold, err := lock.Acquire(context.Background())
	if err != nil {
		panic(err)
	}
	ctx := hold.Context(context.Background())
	fmt.Println("before:", ctx.Err(), hold.Err())

	<-ctx.Done() // work that takes too long
	fmt.Println("context:", ctx.Err(), "because:", errorIs(context.Cause(ctx)))
	fmt.Println("hold:", errorIs(hold.Err()))
	fmt.Println("release:", errorIs(hold.Release()))
	fmt.Println("again:", errorIs(hold.Release()))
	// Output:
	// before: <nil> <nil>
	// context: context canceled because: lost
	// hold: lost
	// release: lost
	// again: not held
}

// Lost is for code that selects on channels.
func ExampleLock_Lost() {
	client, end := newClient()
	defer end()
	ctx := context.Background()

	lock := client.NewLock("leader")
	if err := lock.Lock(ctx); err != nil {
		panic(err)
	}
	if _, err := lock.ForceUnlock(ctx); err != nil {
		panic(err)
	}
	select {
	case <-lock.Lost():
		fmt.Println("stepping down")
	case <-time.After(time.Minute):
		fmt.Println("still the leader")
	}
	fmt.Println("unlock:", errorIs(lock.Unlock()))
	// Output:
	// stepping down
	// unlock: lost
}
