// Package transport sends scripts to Redis. It never repeats a script that may have run, and a call ends when its
// context ends. Calls that come together are sent together.
//
// go-redis alone does not do the first two: by default it retries a command whose reply was lost, and a context that
// ends does not interrupt a command on the wire.
//
// A call usually goes out on a [stream], a connection of the Transport's own to the server that has the call's key,
// which calls share. If there is none, the call uses a connection of the client's pool.
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

// Transport sends scripts through a go-redis client, which stays the caller's. It is safe for concurrent use.
//
// Redis may run two concurrent calls of one Transport in either order.
type Transport struct {
	ReadTimeout time.Duration // of the client; 0 or less: none, or not known. A WAIT must be shorter.
	Database    int           // the database that the client selects. A Cluster has only 0.

	rdb           redis.UniversalClient
	single        server        // rdb, if it is a client of one server
	many          cluster       // rdb, if it is a client of a Cluster
	source        *streamSource // of the one server; nil: calls only use the client's pool
	shards        *shards       // the sources of a Cluster's primaries; nil: calls only use the client's pool
	routed        atomic.Bool   // the Cluster client has loaded the layout
	plain         bool          // rdb makes its connections without TLS
	everAnswered  atomic.Bool   // a command has been answered
	everSucceeded atomic.Bool   // a call has succeeded, so Redis accepted the credentials
	rtt           atomic.Int64  // the shortest time of a recent answer, in nanoseconds; 0: not known

	life context.Context // of background work that no call waits for; ends in Wait
	end  context.CancelFunc

	mu      sync.Mutex      // guards the following fields
	running map[string]bool // see spawnUnlessRunning
	closing bool            // Wait has been called: no background work begins any more, but what closes connections
	working int             // the number of goroutines that Wait waits for
	idle    sync.Cond       // working has become 0; its lock is mu
}

// Call is one run of a script. It has at least one key. Keys and Args must not change until Wait has returned, because
// a command may still be on its way after Do has returned.
type Call struct {
	Script *script.Script
	Keys   []string
	Args   []any
	Apart  bool   // Do uses the client's pool unless that is busy, because the stream's connection may have died
	InFull bool   // Do sends the text even if the server knows the script, to check that EVAL is permitted
	Usual  *Usual // how to group the call with others on the stream; nil: it is not grouped
}

// Result is the result of one Call.
type Result struct {
	Reply []any
	Acks  int // how many replicas have the script's writes; only set by DoAcked
	Err   error
}

// New returns a Transport over rdb. It does no I/O.
func New(rdb redis.UniversalClient) *Transport {
	t := &Transport{rdb: rdb, running: make(map[string]bool)}
	switch c := rdb.(type) {
	case server:
		t.single, t.plain, t.ReadTimeout, t.Database = c, c.Options().TLSConfig == nil, c.Options().ReadTimeout, c.Options().DB
	case cluster:
		t.many, t.plain, t.ReadTimeout = c, c.Options().TLSConfig == nil, c.Options().ReadTimeout
	}
	switch c := rdb.(type) { // not for decorators, whose methods may do more than those of the client
	case *redis.Client:
		t.source = newStreamSource(t, c)
	case *redis.ClusterClient:
		t.shards = &shards{}
	}
	t.idle.L = &t.mu
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// Do runs one script, at most once, and returns its reply: integers as int64, strings as string. A reply that is not an
// array is returned as the only element.
//
// Do returns when the reply has come, ctx has ended, or timeout, which is more than 0, has passed. If several are true,
// the reply wins. A command on the wire cannot be recalled: Classify tells whether the script may have run. The error
// matches ctx.Err() only if ctx has ended, and ErrNoReply if the timeout passed.
//
// If Do had to wait for a dial, which may take long, at least two thirds of the timeout remain for the stream. The
// client's pool gets what is left. If the stream must send the script's text, too, it gets that time again.
//
// Hooks of the redis client see the values of ctx. A pipeline has one context: that of its first call.
func (t *Transport) Do(ctx context.Context, timeout time.Duration, c Call) ([]any, error) {
	if ctx.Err() != nil {
		return nil, inScript(&c, notSent(ctx))
	}
	o := t.sourceFor(&c)
	var w sharedCall
	var waited time.Duration
	var err error
	if !c.Apart || o.poolBusy() {
		w, waited, err = o.join(ctx, timeout)
	}
	var r Result
	switch {
	case err != nil:
		r.Err = inScript(&c, err)
	case w.stream != nil:
		r = t.doShared(ctx, &w, &c) // a pointer keeps stacks small: the garbage collector scans those of all waiting callers
	default:
		r = t.pooled(ctx, timeout-waited, o, &c)
	}
	return r.Reply, t.concluded(&c, r.Err)
}

// sourceFor returns the source of the stream to the server that has the call's key, and makes it if needed. It returns
// nil if the call must use the client's pool: the Cluster client has hooks or may have some, the primary is not known
// yet, the client cannot have a stream, or the Transport closes. It does no I/O.
func (t *Transport) sourceFor(c *Call) *streamSource {
	switch {
	case t.shards == nil:
		return t.source
	case !t.shards.hooks.absent.Load():
		return nil
	}
	_, at, known := t.nodeOf(c.Keys[0])
	if !known {
		return nil
	}
	if o, ok := t.shards.of.Load(at); ok {
		return o.(*streamSource)
	}
	return t.newShard(at.(*redis.Client))
}

// Knows reports whether the Transport can know which server has a key: the client is a redis.Client or ClusterClient,
// or embeds one. Any other [redis.UniversalClient] sends a command to a server of its choice, so Replicas refuse it.
func (t *Transport) Knows() bool { return t.single != nil || t.many != nil }

// OneServer reports whether all keys are on one server, so that one script may use the keys of several locks.
func (t *Transport) OneServer() bool { return t.single != nil }

// Server names the server that has the key, as the Cluster client knows the layout now. It returns "" if there is only
// one server, or if the layout is not known yet. It does no I/O.
func (t *Transport) Server(key string) string {
	if t.many == nil {
		return ""
	}
	name, _, _ := t.nodeOf(key)
	return name
}

// nodeOf returns the name ("" if there is only one server) and the client of the server that has the key. It does no
// I/O, so ok is false until a Cluster's layout is loaded. It also is for a client whose servers are not known (Knows).
func (t *Transport) nodeOf(key string) (name string, at server, ok bool) {
	switch {
	case t.many == nil:
		return "", t.single, t.single != nil
	case !t.routed.Load():
		return "", nil, false // the client would first ask for the layout and wait for the answer
	}
	master, err := t.many.MasterForKey(context.Background(), key)
	if err != nil {
		return "", nil, false
	}
	return master.Options().Addr, master, true
}

// pooled sends a call on a connection of the client's pool. o is the source of streams to the call's server, or nil.
func (t *Transport) pooled(ctx context.Context, timeout time.Duration, o *streamSource, c *Call) Result {
	if o != nil && o.stream.Load() == nil && !o.slow.Load() {
		// If this takes long, the client is probably dialling. Then dial for a stream as well: that dial may outlast this
		// call, so that a later try finds a connection.
		ready := time.AfterFunc(stall, o.connect)
		defer ready.Stop()
	}
	began := time.Now()
	own := *c // fn may go on after pooled has returned
	r, err := runDetached(t, ctx, timeout, func(ctx context.Context) (Result, error) { return t.run(ctx, nil, &own), nil })
	switch {
	case err != nil:
		r.Err = inScript(c, err)
	case r.Err == nil:
		t.noteRTT(time.Since(began))
		t.succeeded(o)
	}
	return r
}

// succeeded records that a call on the pool succeeded: the server of o is not slow, and a Cluster's layout is known.
func (t *Transport) succeeded(o *streamSource) {
	if o != nil {
		o.slow.Store(false)
	}
	t.routed.Store(true)
}

// noteRTT updates rtt with the time that an answer took.
func (t *Transport) noteRTT(took time.Duration) {
	best := t.rtt.Load()
	if best == 0 || int64(took) < best {
		t.rtt.Store(max(int64(took), 1))
	} else if more := best + best/16; more < int64(took) {
		t.rtt.Store(more) // grow slowly: the network path may have become longer
	}
}

// DoAll runs scripts, each at most once, and returns their results in the order of calls. Calls to one server share a
// pipeline of the client's pool, unless that is busy. A call that fails does not fail the others. Once ctx has ended or
// timeout has passed, each call without an answer has an error, and may have run.
func (t *Transport) DoAll(ctx context.Context, timeout time.Duration, calls []Call) []Result {
	parts := make(map[string][]int) // by server: one that hangs must not delay the calls to others
	for i := range calls {
		server, _, _ := t.nodeOf(calls[i].Keys[0])
		parts[server] = append(parts[server], i)
	}
	return inParts(calls, parts, func(_ string, own []Call) []Result {
		if len(own) > 1 && !t.sourceFor(&own[0]).poolBusy() {
			return t.pipeline(ctx, timeout, own)
		}
		results := make([]Result, len(own))
		var wg sync.WaitGroup
		for i := range own {
			wg.Go(func() { results[i].Reply, results[i].Err = t.Do(ctx, timeout, own[i]) })
		}
		wg.Wait()
		return results
	})
}

// inParts runs all parts of the calls at the same time. A part is given by the indexes of its calls. inParts returns
// the results in the order of calls.
func inParts[K comparable](calls []Call, parts map[K][]int, run func(of K, own []Call) []Result) []Result {
	results := make([]Result, len(calls))
	var wg sync.WaitGroup
	for of, part := range parts {
		own := make([]Call, len(part))
		for n, i := range part {
			own[n] = calls[i]
		}
		wg.Go(func() {
			for n, r := range run(of, own) {
				results[part[n]] = r
			}
		})
	}
	wg.Wait()
	return results
}

// concluded acts on the outcome of a call, and returns nil or the error for the caller: if credentials that once worked
// are refused, one after which callers try again (barred). After a timeout it probes the idle connections, and after an
// answer that the server takes no writes it closes them. It also makes a Cluster client reload the layout: the primary
// may be gone, and the client itself reloads only now and then, and after redirections.
func (t *Transport) concluded(c *Call, err error) error {
	if err == nil {
		if !t.everSucceeded.Load() {
			t.everAnswered.Store(true)
			t.everSucceeded.Store(true)
		}
		return nil
	}
	err = t.hinted(t.barred(err))
	name, at, known := t.nodeOf(c.Keys[0])
	if known && errors.Is(err, ErrNoReply) && !errors.Is(err, errConnecting) {
		t.probe(name, at, c.Keys[0])
	}
	if known && takesNoWrites(err) {
		t.retireIdle(name, at)
	}
	switch Classify(err) {
	case Unknown, NotExecuted:
		t.Reload()
	}
	return err
}

// Reload makes a Cluster client load the layout again. It does not wait. Calls that come close together are merged.
func (t *Transport) Reload() {
	if t.many != nil {
		t.many.ReloadState(context.Background())
	}
}

// Wait waits until all goroutines of the Transport have ended, including those whose callers have left. If no new calls
// are made, that takes no longer than the client's own timeouts. A stream that a call still uses ends with the call. Wait
// does not wait for that call, because it may hang in a hook of the client.
func (t *Transport) Wait() {
	t.source.close()
	t.end()
	t.mu.Lock()
	t.closing = true
	t.mu.Unlock()
	t.shards.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.working > 0 {
		t.idle.Wait()
	}
}

// Outstanding returns how many goroutines Wait would wait for. It is for tests.
func (t *Transport) Outstanding() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.working
}

// spawn runs fn on a goroutine that Wait waits for. It needs t.mu.
func (t *Transport) spawn(fn func()) {
	t.working++
	go func() {
		defer func() { // deferred, because a hook of the client may end the goroutine
			t.mu.Lock()
			defer t.mu.Unlock()
			t.working--
			t.idle.Broadcast()
		}()
		fn()
	}()
}
