package relock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	mini "github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// redisAddr stands for the address of your Redis, such as "localhost:6379". The
// examples run in any `go test`: each gets a server of its own, inside the
// process, that ends with its last connection.
func redisAddr() string {
	server := mini.NewMiniRedis()
	if err := server.Start(); err != nil {
		panic(err)
	}
	var open atomic.Int64
	server.Server().SetPreHook(func(c *miniserver.Peer, cmd string, _ ...string) bool {
		if cmd == "HELLO" { // the first word on a connection
			open.Add(1)
			c.OnDisconnect(func() {
				if open.Add(-1) == 0 {
					go server.Close() // waits for the connection that calls this
				}
			})
		}
		return false
	})
	return server.Addr()
}

// newClient returns a client on a server of its own, and what ends both.
func newClient(opts ...relock.Option) (client *relock.Client, end func()) {
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr()})
	client, err := relock.New(rdb, opts...)
	if err != nil {
		panic(err)
	}
	return client, func() {
		client.Close()
		rdb.Close()
	}
}

// The shortest program: run a function while nobody else, in any process, runs
// it under that name.
func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr()})
	defer rdb.Close()
	client, err := relock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer client.Close()

	lock := client.NewLock("orders/4711")
	err = lock.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("nobody else works on this order")
		return ctx.Err() // ctx ends when the lock is lost
	})
	fmt.Println("error:", err)
	// Output:
	// nobody else works on this order
	// error: <nil>
}

// Do hands on the function's error; after a loss the result is always ErrLost, too.
func ExampleLock_Do() {
	client, end := newClient()
	defer end()

	broke := errors.New("printer on fire")
	err := client.NewLock("printer").Do(context.Background(), func(context.Context) error {
		return broke
	})
	fmt.Println(errors.Is(err, broke), errors.Is(err, relock.ErrLost))
	// Output: true false
}

// TryLock answers "taken" by false, and keeps errors for what went wrong.
func ExampleLock_TryLock() {
	client, end := newClient()
	defer end()
	ctx := context.Background()

	lock := client.NewLock("nightly-report")
	first, err := lock.TryLock(ctx, 0) // one attempt
	fmt.Println(first, err)
	second, err := lock.TryLock(ctx, 20*time.Millisecond) // for at most so long
	fmt.Println(second, err)
	fmt.Println(lock.Unlock())
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
}

// SyncLocker serves code that knows sync.Locker only. It has no place for an
// error, so it panics.
func ExampleLock_SyncLocker() {
	client, end := newClient()
	defer end()

	mu := client.NewLock("config").SyncLocker(context.Background())
	mu.Lock()
	fmt.Println("alone")
	mu.Unlock()
	// Output: alone
}
