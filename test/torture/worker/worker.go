// Package worker is a process that locks: it does what its workloads say, and
// writes down what it asked for, what it was given and when it lost it.
package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/proxy"
	"github.com/relock-go/relock/test/torture/server"
	"github.com/relock-go/relock/test/torture/store"
)

// Env carries the Config of a worker, as JSON.
const Env = "RELOCK_TORTURE_WORKER"

// The deployments that a worker can connect to.
const (
	Standalone = "standalone" // one address, wherever that leads
	Cluster    = "cluster"
	Sentinel   = "sentinel"
)

// Config says who a worker is.
type Config struct {
	N       int
	Seed    uint64
	Prefix  string // of its locks' names: the deployment
	Mode    string
	Addrs   []string // of the cluster or the sentinels
	Link    string   // of its proxy
	Store   string   // the path of the store's socket
	Dir     string
	Actors  map[string]int // how many goroutines of each workload
	MaxTTL  time.Duration
	Clients int
}

// Stop is the line on a worker's standard input that ends it in peace.
const Stop = "stop"

// A Report is what a worker says when it has stopped, as JSON on its standard output.
type Report struct {
	Stuck      int    // calls that did not return though nothing was in their way
	Shutdown   string // the error of it
	Goroutines int    // that are left
	Stacks     string // of them, if there are any
	Panic      string
}

// patience bounds the end of a worker: waiters return, Shutdown, goroutines.
const patience = 20 * time.Second

// worker is the process.
type worker struct {
	Config
	out     *history.Writer
	clients []*relock.Client
	ids     atomic.Int64
	stop    chan struct{} // closed: begin nothing new
	lost    lostAt

	mu     sync.Mutex // guards the following fields
	holds  map[string]map[*held]struct{}
	common map[string]*handles // that all actors share
}

// Run is the main function of a worker process.
func Run() int {
	var cfg Config
	if err := json.Unmarshal([]byte(os.Getenv(Env)), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 2
	}
	report, err := run(cfg, os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	_ = json.NewEncoder(os.Stdout).Encode(report)
	return 0
}

func run(cfg Config, in io.Reader) (Report, error) {
	var report Report
	w := &worker{Config: cfg, stop: make(chan struct{}), holds: map[string]map[*held]struct{}{}, common: map[string]*handles{}}
	out, err := history.Create(filepath.Join(cfg.Dir, fmt.Sprintf("worker-%d.jsonl", cfg.N)))
	if err != nil {
		return report, err
	}
	w.out = out
	defer func() { _ = out.Close() }()
	go w.obey(in)
	flushed := make(chan struct{})
	go w.out.FlushEvery(20*time.Millisecond, flushed)
	go w.watchStalls(flushed)
	base := runtime.NumGoroutine()
	var conns []redis.UniversalClient
	for range max(cfg.Clients, 1) {
		rdb := w.connect()
		conns = append(conns, rdb)
		client, err := relock.New(rdb, relock.TokenKeep(time.Minute), relock.ReleaseTimeout(time.Second), relock.Trace(w.hooks()))
		if err != nil {
			return report, err
		}
		w.clients = append(w.clients, client)
	}
	report.Stuck, err = w.work()
	if err != nil {
		return report, err
	}
	if err := w.shutdown(conns); err != nil {
		report.Shutdown = err.Error()
	}
	report.Goroutines, report.Stacks = leftOver(base)
	close(flushed)
	return report, nil
}

// shutdown ends the clients, and their connections. It returns the last client's error.
func (w *worker) shutdown(conns []redis.UniversalClient) (last error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, c := range w.clients {
		if err := c.Shutdown(ctx); err != nil {
			last = err
		}
		_ = c.Close()
		_ = conns[i].Close()
	}
	return last
}

// obey ends the work when it is told to, and the process when the rig has gone.
func (w *worker) obey(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if lines.Text() == Stop {
			close(w.stop)
		}
	}
	select {
	case <-w.stop:
	default:
		os.Exit(3)
	}
}

func (w *worker) stopping() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// connect returns a redis client over the worker's link. Its time-outs are
// short, as its leases are.
func (w *worker) connect() redis.UniversalClient {
	const timeout = 400 * time.Millisecond
	switch w.Mode {
	case Cluster:
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: w.Addrs, Dialer: proxy.Dialer(w.Link, ""), PoolSize: 32,
			DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, DialerRetries: 1,
		})
	case Sentinel:
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: server.MasterName, SentinelAddrs: w.Addrs, Dialer: proxy.Dialer(w.Link, ""), PoolSize: 32,
			DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, DialerRetries: 1,
		})
	}
	return redis.NewClient(&redis.Options{
		Addr: "primary:0", Dialer: proxy.Dialer(w.Link, "primary"), PoolSize: 32,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, DialerRetries: 1,
	})
}

// work runs the actors until it is stopped. It returns how many did not end.
func (w *worker) work() (stuck int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	var open atomic.Int64
	n := uint64(0)
	for _, name := range order {
		for i := range w.Actors[name] {
			n++
			a, err := w.actor(n, i)
			if err != nil {
				return 0, err
			}
			open.Add(1)
			running.Go(func() {
				defer open.Add(-1)
				defer a.store.Close()
				for !w.stopping() {
					loads[name](ctx, a)
				}
			})
		}
	}
	<-w.stop
	all := make(chan struct{})
	go func() { running.Wait(); close(all) }()
	over := time.NewTimer(patience)
	defer over.Stop()
	select {
	case <-all:
	case <-over.C:
		stuck = int(open.Load())
		cancel() // what waits now, would wait for ever
		<-all
	}
	return stuck, nil
}

// actor makes the worker's nth actor, with a connection to the store.
func (w *worker) actor(n uint64, index int) (*actor, error) {
	c, err := store.Dial(w.Store)
	if err != nil {
		return nil, err
	}
	return &actor{
		worker: w, store: c, client: w.clients[n%uint64(len(w.clients))], name: fmt.Sprintf("w%d-%d", w.N, n), index: index,
		rand: rand.New(rand.NewPCG(w.Seed, uint64(w.N)<<16|n)), locks: map[string]*handles{},
	}, nil
}

// leftOver waits until no more goroutines are left than there were, and returns
// the surplus with their stacks.
func leftOver(base int) (n int, stacks string) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for begin := time.Now(); time.Since(begin) < patience; <-again.C {
		if n = runtime.NumGoroutine() - base; n <= 0 {
			return 0, ""
		}
	}
	buf := make([]byte, 1<<20)
	return n, string(buf[:runtime.Stack(buf, true)])
}

// short is how the history calls an error.
func short(err error) string {
	for name, known := range map[string]error{
		"lost": relock.ErrLost, "not acquired": relock.ErrNotAcquired, "unconfirmed": relock.ErrUnconfirmed,
		"closed": relock.ErrClosed, "kind": relock.ErrKind, "deadlock": relock.ErrDeadlock, "upgrade": relock.ErrUpgrade,
	} {
		if errors.Is(err, known) {
			return name
		}
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "ctx"
	case errors.Is(err, relock.ErrNotHeld):
		return "not held"
	case strings.Contains(err.Error(), "redis could not be asked"):
		return "unreachable"
	}
	return strings.ToValidUTF8(err.Error(), "?")
}
