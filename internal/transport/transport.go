// Package transport sends scripts to Redis so that nothing is sent twice
// behind the caller's back, and so that a call ends when its context does.
//
// go-redis alone gives neither: by default it sends a command whose reply was
// lost up to three times more, and a context that ends does not interrupt a
// command that is on the wire.
package transport

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/script"
)

// Transport sends scripts through a go-redis client, which stays the
// caller's. It is safe for concurrent use.
type Transport struct {
	rdb redis.UniversalClient
	// deadlines says that rdb itself ends a command at its context's
	// deadline (ContextTimeoutEnabled).
	deadlines bool

	mu      sync.Mutex // protects following fields
	running int        // goroutines that are in a call
	idle    sync.Cond  // running fell to zero; its lock is mu
}

// Call is one run of a script. Keys and Args must not change until Wait says
// that the call has ended, which may be after Do returned.
type Call struct {
	Script *script.Script
	Keys   []string
	Args   []any
	InFull bool // Do sends the text even where the server knows it: both ways are to be permitted
}

// Result is what one Call of a batch came to.
type Result struct {
	Reply []any
	Err   error
}

// New returns a Transport over rdb. It does no I/O.
func New(rdb redis.UniversalClient) *Transport {
	t := &Transport{rdb: rdb, deadlines: endsAtDeadline(rdb)}
	t.idle.L = &t.mu
	return t
}

func endsAtDeadline(rdb redis.UniversalClient) bool {
	switch c := rdb.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	}
	return false
}

// Do runs one script, at most once, and returns its reply: integers as int64,
// strings as string, a reply that is no array as its only element.
//
// It returns when the reply is there, ctx ends, or timeout has passed (none
// if timeout <= 0), whichever is first; a reply that is there wins. What is
// on the wire by then is not recalled: Classify says of every error whether
// the script may have run. The error matches ctx.Err() only if ctx ended, and
// ErrNoReply if the timeout passed.
func (t *Transport) Do(ctx context.Context, timeout time.Duration, c Call) ([]any, error) {
	r, err := await(ctx, t, timeout, func(ctx context.Context) Result {
		return t.run(ctx, c)
	})
	if err != nil {
		r.Err = named(c, err)
	}
	t.failed(r.Err)
	return r.Reply, r.Err
}

// DoAll runs scripts in one pipeline, each at most once, and returns their
// results in the order of calls. One that fails does not fail the others. It
// returns when Do would; then all have the same error, and some may have run.
func (t *Transport) DoAll(ctx context.Context, timeout time.Duration, calls []Call) []Result {
	if len(calls) == 0 {
		return nil
	}
	results, err := await(ctx, t, timeout, func(ctx context.Context) []Result {
		return t.runAll(ctx, calls)
	})
	if err != nil {
		results = make([]Result, len(calls))
		for i, c := range calls {
			results[i].Err = named(c, err)
		}
	}
	for _, r := range results {
		t.failed(r.Err)
	}
	return results
}

// failed makes a Cluster client ask for the layout anew when a call may have met
// a primary that is gone. By itself it asks every ten seconds, and of commands
// that fail only after those that it sends again.
func (t *Transport) failed(err error) {
	if err == nil {
		return
	}
	switch Classify(err) {
	case Unknown, NotExecuted:
		t.Reload()
	}
}

// Reload makes a Cluster client ask for the layout anew, and does not wait. Calls
// that come close together are one.
func (t *Transport) Reload() {
	if c, ok := t.rdb.(interface{ ReloadState(ctx context.Context) }); ok {
		c.ReloadState(context.Background())
	}
}

// await returns what fn returns, or an error once ctx ends or timeout has
// passed; fn then goes on alone, as long as the client's own timeouts let it.
//
// The context fn gets has ctx's values, for tracing, but not its deadline,
// which would make some clients drop a good connection. It ends with await:
// what is still waiting for a connection then is never sent.
func await[T any](ctx context.Context, t *Transport, timeout time.Duration, fn func(context.Context) T) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, notSent(ctx)
	}
	if ctx.Done() == nil && timeout <= 0 {
		return fn(ctx), nil // nothing to watch beside the client itself
	}
	run, cancel := detach(ctx, timeout)
	defer cancel()
	if ctx.Done() == nil && t.deadlines {
		return fn(run), nil // the client watches
	}
	reply := make(chan T, 1) // so that fn's goroutine ends when nobody listens
	t.begin()
	go func() {
		defer t.end()
		reply <- fn(run)
	}()
	select {
	case v := <-reply:
		return v, nil
	case <-ctx.Done():
	case <-run.Done():
	}
	select {
	case v := <-reply: // both were ready: a known outcome is worth more
		return v, nil
	default:
	}
	if ctx.Err() != nil {
		return none, ended(ctx)
	}
	return none, ErrNoReply
}

// detach returns a context with ctx's values that ends after timeout, or when
// cancelled.
func detach(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	run := context.WithoutCancel(ctx)
	if timeout <= 0 {
		return context.WithCancel(run)
	}
	return context.WithTimeout(run, timeout)
}

// Wait blocks until no call is on a goroutine of its own: those that their
// callers left have ended, too. That takes no longer than the client's own
// timeouts, if no new calls are made.
func (t *Transport) Wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.running > 0 {
		t.idle.Wait()
	}
}

// Outstanding returns how many calls Wait would wait for.
func (t *Transport) Outstanding() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

// begin and end count instead of a sync.WaitGroup, which forbids the first
// Add beside a Wait.
func (t *Transport) begin() {
	t.mu.Lock()
	t.running++
	t.mu.Unlock()
}

func (t *Transport) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.running == 0 {
		t.idle.Broadcast()
	}
}
