package relock_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// TestMain has the examples end what they start. Nothing here imports a module that the
// library does not: what the tests of a package import comes into the go.sum of who imports it.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	status := m.Run()
	servers.end()
	for patience := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(patience) {
			fmt.Fprintln(os.Stderr, "the examples leave goroutines behind:")
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
			os.Exit(1)
		}
	}
	os.Exit(status)
}

// servers are Redis in memory, in a process of its own that ends with its input.
var servers process

type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (p *process) begin() (err error) {
	if p.cmd != nil {
		return nil
	}
	p.cmd = exec.Command("go", "run", "./test/serve")
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	p.out = bufio.NewReader(out)
	return errors.Join(err, p.cmd.Start())
}

func (p *process) end() {
	if p.cmd != nil {
		_ = p.in.Close()
		_ = p.cmd.Wait()
	}
}

// redisAddr stands for the address of your Redis, such as "localhost:6379". The
// examples run in any `go test`: each gets a server of its own.
func redisAddr() string {
	if err := servers.begin(); err != nil {
		panic(err)
	}
	_, err := fmt.Fprintln(servers.in)
	addr, noAddr := servers.out.ReadString('\n')
	if err = errors.Join(err, noAddr); err != nil {
		panic(err)
	}
	return strings.TrimSpace(addr)
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
