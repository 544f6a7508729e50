package relock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

// Who takes the request locks the order; the worker that gets the request from a queue goes
// on under the same hold.
func ExampleHold_Detach() {
	client, end := newClient()
	defer end()
	ctx := context.Background()
	hold, err := client.NewLock("orders/4711").Acquire(ctx)
	if err != nil {
		panic(err)
	}
	ticket, err := hold.Detach(ctx, time.Minute) // to be sent with the request
	fmt.Println("detached:", err, errorIs(hold.Err()))

	again, err := client.Resume(ctx, ticket)
	if err != nil {
		panic(err)
	}
	fmt.Println("the same token:", again.Token() == hold.Token())
	_, err = client.Resume(ctx, ticket)
	fmt.Println("a second time:", errorIs(err))
	fmt.Println("released:", again.Release())
	// Output:
	// detached: <nil> not held
	// the same token: true
	// a second time: lost
	// released: <nil>
}

// A buffer that processes share: who finds it empty waits on a condition, and who fills it
// wakes one of them. A signal whose receiver dies goes to the next.
func ExampleLock_NewCond() {
	client, end := newClient()
	defer end()
	var buffer []string // in a database, say

	taken := make(chan string)
	go func() {
		lock := client.NewLock("buffer")
		notEmpty := lock.NewCond("not empty")
		_ = lock.Do(context.Background(), func(ctx context.Context) error {
			for len(buffer) == 0 {
				if err := notEmpty.Wait(ctx); err != nil { // gives up the lock, and has it again
					return err
				}
			}
			taken <- buffer[0]
			buffer = buffer[1:]
			return nil
		})
	}()

	lock := client.NewLock("buffer")
	notEmpty := lock.NewCond("not empty")
	err := lock.Do(context.Background(), func(ctx context.Context) error {
		buffer = append(buffer, "an item")
		return notEmpty.Signal(ctx)
	})
	fmt.Println("error:", err)
	fmt.Println("taken:", <-taken)
	// Output:
	// error: <nil>
	// taken: an item
}

// At most two at a time, in all processes. A dead one's permit comes back with its lease.
func ExampleClient_NewSemaphore() {
	client, end := newClient()
	defer end()

	encoders := client.NewSemaphore("encoders", 2)
	first, err := encoders.Acquire(context.Background())
	fmt.Println(err)
	second, err := encoders.Acquire(context.Background())
	fmt.Println(err)
	_, err = encoders.TryAcquire(context.Background(), 0)
	fmt.Println(errors.Is(err, relock.ErrNotAcquired))

	fmt.Println(first.Release(), second.Release())
	both := client.NewSemaphore("encoders", 2, relock.Weight(2)) // uses both
	fmt.Println(both.TryLock(context.Background(), 0))
	fmt.Println(both.Unlock())
	// Output:
	// <nil>
	// <nil>
	// true
	// <nil> <nil>
	// true <nil>
	// <nil>
}

// A transfer needs both accounts. Another one that needs the same two in the
// other order does not wait for this one in a circle.
func ExampleNewMulti() {
	client, end := newClient()
	defer end()

	both := relock.NewMulti(client.NewLock("account:17"), client.NewLock("account:4"))
	err := both.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("both accounts are ours while", ctx.Err() == nil)
		return nil
	})
	fmt.Println(err)
	// Output:
	// both accounts are ours while true
	// <nil>
}

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

// An upload in parts gives way as soon as another process waits for the bucket. It goes on
// where it stopped when it has the lock again.
func ExampleHold_Wanted() {
	client, end := newClient()
	defer end()
	bucket := client.NewLock("bucket")
	ctx := context.Background()

	sent, asked, waits := 0, false, make(chan error, 1)
	upload := func(parts int) error {
		hold, err := bucket.Acquire(ctx)
		if err != nil {
			return err
		}
		for wanted := hold.Wanted(); sent < parts; sent++ {
			if sent == 2 && !asked {
				asked = true
				go func() { waits <- client.NewLock("bucket").Do(ctx, urgent) }()
				<-wanted
			}
			select {
			case <-wanted:
				fmt.Println("gives way after part", sent)
				return hold.Release()
			default: // upload one part, with hold.Token()
			}
		}
		return hold.Release()
	}
	fmt.Println("first try:", errorIs(upload(5)))
	fmt.Println("the other:", errorIs(<-waits))
	fmt.Println("goes on:", errorIs(upload(5)), sent)
	// Output:
	// gives way after part 2
	// first try: none
	// the other: none
	// goes on: none 5
}

func urgent(context.Context) error { return nil }

// In a rolling deployment the new process campaigns while the old one leads. The old one
// gives up its term between two pieces of work, and the new one leads at once.
func ExampleTerm_Wanted() {
	client, end := newClient()
	defer end()
	ctx := context.Background()

	leads := make(chan struct{})
	old := make(chan error, 1)
	go func() {
		old <- client.NewElection("compactor").Run(ctx, func(ctx context.Context, term relock.Term) error {
			close(leads)
			for {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-term.Wanted():
					fmt.Println("the old process gives up its term")
					return nil
				}
			}
		})
	}()
	<-leads
	done := errors.New("done")
	err := client.NewElection("compactor").Run(ctx, func(context.Context, relock.Term) error {
		fmt.Println("the new process leads")
		return done
	})
	fmt.Println(errors.Is(err, done), <-old)
	// Output:
	// the old process gives up its term
	// the new process leads
	// true <nil>
}
