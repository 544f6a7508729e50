package relock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// A workflow that fans out: each branch enters what the flow above it holds, and two branches
// exclude each other.
func ExampleWithChildOwner() {
	client, end := newClient()
	defer end()

	needs := map[string][]string{"app": {"api", "web"}, "api": {"log"}, "web": {"log"}}
	var inLog atomic.Int32 // branches that are in "log" at once
	var build func(ctx context.Context, name string) error
	build = func(ctx context.Context, name string) error {
		return client.NewLock("nodes/"+name).Do(ctx, func(ctx context.Context) error {
			errs := make([]error, len(needs[name]))
			var branches sync.WaitGroup
			for i, part := range needs[name] {
				branch := relock.WithChildOwner(ctx)
				branches.Go(func() { errs[i] = build(branch, part) })
			}
			branches.Wait() // under the lock: the branches rely on it
			if name == "log" {
				fmt.Println("in log:", inLog.Add(1))
				defer inLog.Add(-1)
			}
			root := client.NewLock("nodes/app") // held by the root all the time: any branch enters it
			return errors.Join(append(errs, root.Do(ctx, func(context.Context) error { return nil }))...)
		})
	}
	fmt.Println(build(relock.WithNewOwner(context.Background()), "app"))
	// Output:
	// in log: 1
	// in log: 1
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

// try shows what an attempt came to.
func try(who string, got bool, err error) {
	fmt.Println(who, got, err)
}

// Any number of readers, or one writer.
func ExampleRWLock() {
	client, end := newClient()
	defer end()
	ctx := context.Background()
	config := client.NewRWLock("config")

	for range 2 {
		got, err := config.TryRLock(ctx, 0)
		try("reader:", got, err)
	}
	got, err := config.TryLock(ctx, 0)
	try("writer:", got, err)
	fmt.Println(config.RUnlock(), config.RUnlock())

	got, err = config.TryLock(ctx, 0)
	try("writer:", got, err)
	got, err = config.TryRLock(ctx, 0)
	try("reader:", got, err)
	fmt.Println(config.Unlock())
	// Output:
	// reader: true <nil>
	// reader: true <nil>
	// writer: false <nil>
	// <nil> <nil>
	// writer: true <nil>
	// reader: false <nil>
	// <nil>
}

// Who has written reads on without a gap: others may read as well, and nobody
// has written in between.
func ExampleRWLock_Downgrade() {
	client, end := newClient()
	defer end()
	ctx := context.Background()
	config, other := client.NewRWLock("config"), client.NewRWLock("config")

	if err := config.Lock(ctx); err != nil {
		panic(err)
	}
	fmt.Println("downgrade:", config.Downgrade(ctx))
	got, err := other.TryRLock(ctx, 0)
	try("another reader:", got, err)
	got, err = other.TryLock(ctx, 0)
	try("another writer:", got, err)
	fmt.Println(config.RUnlock(), other.RUnlock())
	// Output:
	// downgrade: <nil>
	// another reader: true <nil>
	// another writer: false <nil>
	// <nil> <nil>
}

// An owner that reads cannot write: two of them would wait for each other. It
// unlocks first, and looks again at what it has read.
func ExampleRWLock_upgrade() {
	client, end := newClient()
	defer end()
	ctx := relock.WithOwner(context.Background(), "run-17")
	config := client.NewRWLock("config")

	if err := config.RLock(ctx); err != nil {
		panic(err)
	}
	err := config.Lock(ctx)
	fmt.Println("refused:", errors.Is(err, relock.ErrUpgrade))
	fmt.Println(config.RUnlock())
	fmt.Println(config.Lock(ctx))
	fmt.Println(config.Unlock())
	// Output:
	// refused: true
	// <nil>
	// <nil>
	// <nil>
}

// Each side is a Lock with all that one has: Do, Acquire, tokens, loss.
func ExampleRWLock_RLocker() {
	client, end := newClient()
	defer end()
	ctx := context.Background()
	config := client.NewRWLock("config")

	err := config.RLocker().Do(ctx, func(ctx context.Context) error {
		info, err := config.RLocker().Info(ctx)
		if err != nil {
			return err
		}
		fmt.Println(info.Kind, "held for reading:", info.Holders[0].Read)
		return ctx.Err() // ctx ends when the read hold is lost
	})
	fmt.Println(err)
	// Output:
	// rw held for reading: true
	// <nil>
}

// One of several processes does what only one may do; when it dies, another does.
func ExampleElection() {
	client, end := newClient()
	defer end()
	election := client.NewElection("scheduler")

	err := election.Run(context.Background(), func(ctx context.Context, term relock.Term) error {
		leader, err := election.Leader(ctx)
		fmt.Println("leads:", election.IsLeader(), "by the token that redis tells:", leader.Token == term.Token)
		return err // a leader of long standing returns when ctx ends
	})
	fmt.Println(err, election.IsLeader())
	// Output:
	// leads: true by the token that redis tells: true
	// <nil> false
}

// Each primary is a server of its own, that knows nothing of the others. Here any one of
// them may fail.
func ExampleQuorum() {
	var clients []*relock.Client
	for range 3 {
		client, end := newClient()
		defer end()
		clients = append(clients, client)
	}
	quorum, err := relock.NewQuorum(clients...)
	if err != nil {
		panic(err)
	}

	err = quorum.NewLock("orders/4711").Do(context.Background(), func(ctx context.Context) error {
		got, err := quorum.NewLock("orders/4711").TryLock(context.Background(), 0)
		fmt.Println("another:", got, err)
		return ctx.Err()
	})
	fmt.Println("error:", err)
	// Output:
	// another: false <nil>
	// error: <nil>
}

// Whatever the clocks of the processes say, and however often each asks: it runs once a day.
func ExampleClient_Once() {
	client, end := newClient()
	defer end()
	for range 3 {
		ran, err := client.Once(context.Background(), "reports/daily", 24*time.Hour, func(context.Context) error {
			fmt.Println("the report of the day")
			return nil // an error that wraps relock.ErrUnspent leaves the day to the next call
		})
		fmt.Println(ran, err)
	}
	// Output:
	// the report of the day
	// true <nil>
	// false <nil>
	// false <nil>
}
