// Package transport sends scripts to Redis so that nothing is sent twice
// behind the caller's back, and so that a call ends when its context does.
// Calls that come while others are on the wire go out together.
//
// go-redis alone gives neither of the first two: by default it sends a command
// whose reply was lost up to three times more, and a context that ends does not
// interrupt a command that is on the wire.
package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/script"
)

// Transport sends scripts through a go-redis client, which stays the
// caller's. It is safe for concurrent use.
//
// Two calls of one Transport have no order, unless one was made after the
// other had returned.
type Transport struct {
	rdb    redis.UniversalClient
	single server  // rdb, if it is of one server
	many   cluster // rdb, if it is of a Cluster
	own    *own    // the way of who is alone; nil: there is none
	// deadlines says that rdb itself ends a command at its context's
	// deadline (ContextTimeoutEnabled).
	deadlines bool
	routed    atomic.Bool  // the Cluster client knows its slots
	plain     bool         // rdb makes its connections without TLS
	met       atomic.Bool  // a command has been answered
	served    atomic.Bool  // a call has succeeded: Redis accepted the credentials
	rtt       atomic.Int64 // the shortest time of a recent answer; 0: none has come

	life context.Context // of what nobody waits for: until Wait
	end  context.CancelFunc

	free sync.Pool // of *request; not of the process: channels and timers of a synctest bubble stay in it

	mu      sync.Mutex // protects following fields
	lanes   map[string]*lane
	probed  map[string]*probing  // servers whose idle connections are being asked
	retired map[string]time.Time // when the idle connections of a server were closed last
	idlers  []*worker            // without a batch, the latest last
	workers int                  // goroutines, idle ones among them
	running int                  // batches that workers are sending
	waiting int                  // goroutines in Wait
	over    bool                 // Wait has been called: nothing is asked any more that nobody waits for
	idle    sync.Cond            // something ended that Wait waits for; its lock is mu
}

// Call is one run of a script. Keys and Args must not change until Wait says
// that the call has ended, which may be after Do returned.
type Call struct {
	Script *script.Script
	Keys   []string
	Args   []any
	Apart  bool   // Do does not send it on the connection that others share, which may fall silent
	InFull bool   // Do sends the text even where the server knows it: both ways are to be permitted
	Usual  *Usual // how it can be made with others, if it can; Do does so on the connection that they share
}

// Result is what one Call of a batch came to.
type Result struct {
	Reply []any
	Err   error
}

// New returns a Transport over rdb. It does no I/O.
func New(rdb redis.UniversalClient) *Transport {
	t := &Transport{rdb: rdb, lanes: make(map[string]*lane), probed: make(map[string]*probing)}
	switch c := rdb.(type) {
	case server:
		t.single, t.deadlines, t.plain = c, c.Options().ContextTimeoutEnabled, c.Options().TLSConfig == nil
	case cluster:
		t.many, t.deadlines, t.plain = c, c.Options().ContextTimeoutEnabled, c.Options().TLSConfig == nil
	}
	t.own = newOwn(rdb)
	if t.own != nil {
		t.own.rtt = &t.rtt
	}
	t.idle.L = &t.mu
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// Do runs one script, at most once, and returns its reply: integers as int64,
// strings as string, a reply that is no array as its only element.
//
// It returns when the reply is there, ctx ends, or timeout has passed (none
// if timeout <= 0), whichever is first; a reply that is there wins. What is
// on the wire by then is not recalled: Classify says of every error whether
// the script may have run. The error matches ctx.Err() only if ctx ended, and
// ErrNoReply if the timeout passed. A call for which a connection was made first has two thirds of
// the timeout at least from then on: making one may take much longer than an answer.
//
// Hooks of the redis client see the values of ctx; where calls go out in one
// pipeline, which has one context, those of the call that came first.
func (t *Transport) Do(ctx context.Context, timeout time.Duration, c Call) ([]any, error) {
	if ctx.Err() != nil {
		return nil, named(&c, notSent(ctx))
	}
	r := t.do(ctx, timeout, &c)
	return r.Reply, t.hinted(t.failed(&c, r.Err))
}

// Database is the database that the redis client selects.
func (t *Transport) Database() int {
	if t.single == nil {
		return 0 // a Cluster has no other
	}
	return t.single.Options().DB
}

// do sends a call in the way that costs least. It is handed on by its address: the stacks of
// a thousand callers that wait are read by each collection of garbage.
func (t *Transport) do(ctx context.Context, timeout time.Duration, c *Call) Result {
	if !c.Apart || t.busy() {
		f, waited, err := t.own.take(ctx, timeout)
		if err != nil {
			return Result{Err: named(c, err)}
		}
		if f != nil {
			return t.alone(ctx, timeout, f, c)
		}
		timeout = less(timeout, waited)
	}
	return t.pooled(ctx, timeout, c)
}

// less is what is left of a timeout, if there is one.
func less(timeout, spent time.Duration) time.Duration {
	if timeout <= 0 {
		return timeout
	}
	return max(timeout-spent, 1)
}

// pooled sends a call on a connection of the client's.
func (t *Transport) pooled(ctx context.Context, timeout time.Duration, c *Call) Result {
	server, known := t.server(c)
	began := time.Now()
	if err := t.asked(ctx, timeout, server, known); err != nil {
		return Result{Err: named(c, err)}
	}
	timeout = less(timeout, time.Since(began))
	if t.own.lacks() {
		// The client may be connecting. So that the next try does not have to begin again:
		ready := time.AfterFunc(stall, func() { t.own.connect(timeout) })
		defer ready.Stop()
	}
	began = time.Now()
	r, ok := t.inline(ctx, timeout, c, server, known)
	if !ok {
		q := t.request(ctx, c)
		t.submit(q, server, known)
		r = t.await(ctx, timeout, q)
	}
	if r.Err == nil {
		t.measured(time.Since(began))
	}
	return r
}

// measured keeps the shortest time of a recent answer.
func (t *Transport) measured(took time.Duration) {
	best := t.rtt.Load()
	if best == 0 || int64(took) < best {
		t.rtt.Store(max(int64(took), 1))
	} else if more := best + best/16; more < int64(took) {
		t.rtt.Store(more) // the way may have become longer
	}
}

// DoAll runs scripts in one pipeline for each server, each script at most once,
// and returns their results in the order of calls. One that fails does not fail
// the others. It returns when Do would; those that are not answered by then have
// an error each, and may have run.
func (t *Transport) DoAll(ctx context.Context, timeout time.Duration, calls []Call) []Result {
	results := make([]Result, len(calls))
	if len(calls) == 0 {
		return results
	}
	if ctx.Err() != nil {
		for i, c := range calls {
			results[i].Err = named(&c, notSent(ctx))
		}
		return results
	}
	if len(calls) == 1 || t.busy() {
		t.doEach(ctx, timeout, calls, results)
		return results
	}
	requests, parts := t.byServer(ctx, calls)
	t.sendAll(ctx, timeout, parts)
	var over time.Time
	if timeout > 0 {
		over = time.Now().Add(timeout)
	}
	for i, r := range requests {
		left := timeout
		if timeout > 0 {
			left = max(time.Until(over), 1)
		}
		results[i] = t.await(ctx, left, r)
	}
	for i, r := range results {
		results[i].Err = t.failed(&calls[i], r.Err)
	}
	return results
}

// busy says that the client has no connection to spare, but the Transport one of its own: the
// client's user may have them all in use for long, and a new one may cost more than a lease lasts.
func (t *Transport) busy() bool {
	if t.own == nil || t.own.slow.Load() || t.own.stream.Load() == nil {
		return false
	}
	stats := t.own.rdb.PoolStats()
	return stats.IdleConns == 0 && (stats.PipelineStats == nil || stats.PipelineStats.IdleConns == 0)
}

// doEach makes calls by themselves, all at once.
func (t *Transport) doEach(ctx context.Context, timeout time.Duration, calls []Call, results []Result) {
	one := func(i int) {
		results[i] = t.do(ctx, timeout, &calls[i])
		results[i].Err = t.failed(&calls[i], results[i].Err)
	}
	var wg sync.WaitGroup
	for i := range calls[1:] {
		wg.Go(func() { one(i + 1) })
	}
	one(0)
	wg.Wait()
}

// byServer makes a request of each call, and a batch of those of each server.
func (t *Transport) byServer(ctx context.Context, calls []Call) ([]*request, map[string]*batch) {
	requests := make([]*request, len(calls))
	parts := make(map[string]*batch)
	for i, c := range calls {
		requests[i] = &request{ctx: ctx, call: c, done: make(chan struct{}, 1)}
		server, _ := t.server(&c)
		b := parts[server]
		if b == nil {
			b = &batch{}
			parts[server] = b
		}
		b.add(requests[i])
	}
	return requests, parts
}

// sendAll sends the only batch here where nobody has to watch it, and others on
// goroutines of their own.
func (t *Transport) sendAll(ctx context.Context, timeout time.Duration, parts map[string]*batch) {
	if len(parts) == 1 {
		if run, cancel, ok := t.unwatched(ctx, timeout); ok {
			defer cancel()
			for _, b := range parts {
				t.send(run, b)
			}
			return
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range parts {
		t.start(b)
	}
}

// failed returns the error of a call as its caller gets it, and acts on it. It makes a Cluster
// client ask for the layout again when a call may have met a primary that is gone: by itself the
// client asks every ten seconds, and of failed commands only after those that it sends again. It
// also sees to it that the next call does not use a connection that is as silent.
func (t *Transport) failed(c *Call, err error) error {
	if err == nil {
		if !t.served.Load() {
			t.served.Store(true)
		}
		return nil
	}
	err = t.barred(err)
	if errors.Is(err, ErrNoReply) && !errors.Is(err, errConnecting) && len(c.Keys) > 0 {
		t.probe(c.Keys[0])
	}
	if takesNoWrites(err) && len(c.Keys) > 0 {
		t.retireIdle(c.Keys[0])
	}
	switch Classify(err) {
	case Unknown, NotExecuted:
		t.Reload()
	}
	return err
}

// Reload makes a Cluster client ask for the layout anew, and does not wait. Calls
// that come close together are one.
func (t *Transport) Reload() {
	if t.many != nil {
		t.many.ReloadState(context.Background())
	}
}

// Wait blocks until no call is on a goroutine of the Transport's: those that
// their callers left have ended, too. That takes no longer than the client's own
// timeouts, if no new calls are made.
func (t *Transport) Wait() {
	t.own.close()
	t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.waiting++
	for _, w := range t.idlers {
		w.next <- nil
	}
	t.idlers = nil
	for t.workers > 0 {
		t.idle.Wait()
	}
	t.waiting--
}

// Outstanding returns how many calls or pipelines Wait would wait for.
func (t *Transport) Outstanding() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}
