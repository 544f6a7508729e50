package transport_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
)

// traffic is a hook that keeps the keys of the scripts in each command or
// pipeline, in the order in which they left, and can hold replies back.
type traffic struct {
	gate   chan struct{} // if not nil, replies wait until it is closed
	before func(n int)   // if not nil, before the nth command or pipeline leaves

	mu     sync.Mutex
	sent   [][]string
	flying int
	most   int // in flight at once
}

func (f *traffic) pass(cmds []redis.Cmder, send func() error) error {
	var keys []string
	for _, cmd := range cmds {
		if strings.HasPrefix(cmd.Name(), "eval") {
			keys = append(keys, fmt.Sprint(cmd.Args()[3]))
		}
	}
	if keys == nil {
		return send()
	}
	f.mu.Lock()
	f.sent = append(f.sent, keys)
	f.flying++
	f.most = max(f.most, f.flying)
	n := len(f.sent)
	f.mu.Unlock()
	if f.before != nil {
		f.before(n)
	}
	defer func() {
		f.mu.Lock()
		f.flying--
		f.mu.Unlock()
	}()
	err := send()
	if f.gate != nil {
		<-f.gate
	}
	return err
}

func (f *traffic) sizes() (sizes []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, keys := range f.sent {
		sizes = append(sizes, len(keys))
	}
	return sizes
}

func (f *traffic) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *traffic) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return f.pass([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (f *traffic) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return f.pass(cmds, func() error { return next(ctx, cmds) })
	}
}

// crowd makes calls, in the order in which they are started.
type crowd struct {
	tr      *transport.Transport
	wg      sync.WaitGroup
	mu      sync.Mutex
	results map[string]transport.Result
	took    map[string]time.Duration
}

func newCrowd(tr *transport.Transport) *crowd {
	return &crowd{tr: tr, results: make(map[string]transport.Result), took: make(map[string]time.Duration)}
}

// call makes one call on a goroutine of its own, and returns when it waits.
func (c *crowd) call(ctx context.Context, timeout time.Duration, name string, call transport.Call) {
	c.wg.Go(func() {
		begin := time.Now()
		reply, err := c.tr.Do(ctx, timeout, call)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.results[name], c.took[name] = transport.Result{Reply: reply, Err: err}, time.Since(begin)
	})
	synctest.Wait()
}

// held runs f in a bubble where two calls have got their replies from a pool, and wait until open is called.
func held(t *testing.T, f func(t *testing.T, l *link, c *crowd, sent *traffic, open func())) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		rdb := l.client(t)
		c := newCrowd(newTransport(t, wrapped{rdb}))
		if _, err := c.tr.Do(t.Context(), time.Minute, call("warm")); err != nil {
			t.Fatal(err)
		}
		sent := &traffic{gate: make(chan struct{})}
		rdb.AddHook(sent)
		for _, name := range []string{"one", "two"} {
			c.call(t.Context(), time.Minute, name, call(name))
		}
		f(t, l, c, sent, func() { close(sent.gate) })
	})
}
