package relock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mini "github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// TestMain has the examples end what they start.
func TestMain(m *testing.M) { rig.Main(m) }

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

// A fair lock goes to those who wait in the order in which they came.
func ExampleFair() {
	client, end := newClient()
	defer end()
	ctx := context.Background()

	printer := client.NewLock("printer", relock.Fair())
	if err := printer.Lock(ctx); err != nil {
		panic(err)
	}
	var jobs sync.WaitGroup
	for n := 1; n <= 3; n++ {
		jobs.Go(func() {
			mine := client.NewLock("printer", relock.Fair()) // may be in another process
			err := mine.Do(ctx, func(context.Context) error {
				fmt.Println("job", n)
				return nil
			})
			if err != nil {
				fmt.Println("job", n, "was not printed:", err)
			}
		})
		for queued := 0; queued < n; { // the next job comes when this one waits
			info, err := printer.Info(ctx)
			if err != nil {
				panic(err)
			}
			queued = info.Waiters
		}
	}

	err := printer.Unlock()
	jobs.Wait()
	fmt.Println(err)
	// Output:
	// job 1
	// job 2
	// job 3
	// <nil>
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

// The client's address is all that a single server needs.
func ExampleNew_standalone() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	client, err := relock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	defer client.Close()
}

// The Sentinels say which server is the primary.
func ExampleNew_sentinel() {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    "mymaster",
		SentinelAddrs: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
	})
	client, err := relock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	defer client.Close()
}

// Some nodes of a cluster are enough to find the others.
func ExampleNew_cluster() {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"node-1:6379", "node-2:6379", "node-3:6379"},
	})
	client, err := relock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	defer client.Close()
}

// A user of its own, and TLS with a certificate of the client's.
func ExampleNew_tls() {
	certificate, err := tls.LoadX509KeyPair("client.crt", "client.key")
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{
		Addr:      "redis.example.com:6380",
		Username:  "app",
		Password:  "secret",
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	})
	client, err := relock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	defer client.Close()
}
