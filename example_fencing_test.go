package relock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/relock-go/relock"
)

// An account is a resource that remembers the largest token it has seen.
type account struct {
	mu      sync.Mutex
	highest int64
	balance int
}

var errStale = errors.New("write of an earlier holder")

func (a *account) deposit(token int64, amount int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if token < a.highest {
		return errStale
	}
	a.highest = token
	a.balance += amount
	return nil
}

// A lease can end while its holder still works: in a pause, or cut off from
// Redis. A resource that checks tokens refuses what such a holder writes late.
func ExampleHold_Token() {
	client, end := newClient()
	defer end()
	ctx := context.Background()
	lock, acct := client.NewLock("account"), &account{}

	slow, err := lock.Acquire(ctx)
	if err != nil {
		panic(err)
	}
	// The operator takes the first holder for dead, and it is not.
	if _, err := lock.ForceUnlock(ctx); err != nil {
		panic(err)
	}
	<-slow.Lost()
	fmt.Println("first holder unlocks:", errorIs(slow.Release()))

	next, err := lock.Acquire(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("second holder writes:", acct.deposit(next.Token(), 100))
	fmt.Println("first holder writes: ", acct.deposit(slow.Token(), 100))
	fmt.Println("second holder unlocks:", next.Release())
	// Output:
	// first holder unlocks: lost
	// second holder writes: <nil>
	// first holder writes:  write of an earlier holder
	// second holder unlocks: <nil>
}

// Code that is called under a lock, however deep below, takes the token from its context.
func ExampleFromContext() {
	client, end := newClient()
	defer end()
	acct := &account{}

	deposit := func(ctx context.Context, amount int) error {
		hold, ok := relock.FromContext(ctx, "account")
		if !ok {
			return errors.New("called without the lock")
		}
		return acct.deposit(hold.Token(), amount)
	}
	err := client.NewLock("account").Do(context.Background(), func(ctx context.Context) error {
		return deposit(ctx, 100)
	})
	fmt.Println("under the lock:", err, acct.balance)
	fmt.Println("without:", deposit(context.Background(), 100))
	// Output:
	// under the lock: <nil> 100
	// without: called without the lock
}
