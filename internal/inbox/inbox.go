// Package inbox keeps one client subscribed: to one channel for life ([Inbox]),
// or to sharded channels while each of them is wanted ([Shards]).
//
// Pub/sub loses what is published while a link is down, and nobody is told. An
// Inbox promises the two facts that make up for it: once [Inbox.Ready] has
// returned nil, every later message is either delivered or followed by a call
// of Linked, which says that some may have been missed.
//
// A link that is silent may be idle or dead, and an Inbox cannot tell which. Its owner can: it publishes to
// the channel itself, checks that [Inbox.Heard] moves, and calls [Inbox.Suspect] if it does not.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrClosed is returned by [Inbox.Ready] after [Inbox.Close].
var ErrClosed = errors.New("inbox closed")

// Config says what to subscribe to and whom to tell.
//
// Deliver and Linked are called one at a time, in the order of the link, on the
// goroutine that reads it. They must not block, and must not call Close.
type Config struct {
	// Subscribe is the method of a redis client.
	Subscribe func(ctx context.Context, channels ...string) *redis.PubSub
	Channel   string
	// Deliver is handed every message.
	Deliver func(payload string)
	// Linked is called at every acknowledged subscription, the first one
	// included, before any message that follows it and before Up and Ready
	// say so: messages may have been missed until now.
	Linked func()
	// Refused reports whether an error of Redis would come again. If Refused is nil, none would.
	Refused func(err error) bool
	// Failed, if not nil, is called when an attempt has failed, or a link that was only just made. It is
	// called for the first failure of an outage, and then in intervals that double up to an hour.
	Failed func(err error)
	// Spread returns a duration from 0 up to the given one. If Spread is nil, it is random.
	Spread func(time.Duration) time.Duration
}

// Inbox is a subscription that outlives its connections. Create one with [New].
type Inbox struct {
	cfg  Config
	open func(ctx context.Context) feed // a new one for each link
	base time.Time                      // the reference point of heard

	wg    sync.WaitGroup
	links chan struct{}        // has a token for each link that is not closed yet
	turn  chan struct{}        // has a token while Deliver, Linked or a change of cur runs
	cur   atomic.Pointer[link] // the acknowledged link; nil while there is none
	heard atomic.Int64         // nanoseconds from base to the last inbound frame; 0: none

	mu      sync.Mutex         // protects following fields
	cancel  context.CancelFunc // ends the goroutines; nil until started
	closed  bool
	refusal error         // why the last attempt failed, if waiting does not help
	last    error         // why the last attempt failed
	changed chan struct{} // closed and replaced when Ready must look again
}

// New returns an Inbox. It starts nothing: the first [Inbox.Ready] does.
func New(cfg Config) *Inbox {
	if cfg.Spread == nil {
		cfg.Spread = func(d time.Duration) time.Duration { return rand.N(d) }
	}
	b := &Inbox{
		cfg:     cfg,
		base:    time.Now(),
		links:   make(chan struct{}, maxLinks),
		turn:    make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
	b.open = func(ctx context.Context) feed {
		return cfg.Subscribe(ctx) // without a channel: no I/O yet, and no error swallowed
	}
	return b
}

// Ready waits until the subscription is acknowledged, and starts it on first
// use. It returns nil at once while [Inbox.Up]. ctx bounds the wait only.
//
// It returns an error without waiting if the last attempt failed for a reason that waiting does not cure: the
// redis client is closed, or Redis refuses the credentials, the command or the channel. Refusals are tried
// again every few seconds.
func (b *Inbox) Ready(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return b.gaveUp(err)
		}
		if b.Up() {
			return nil
		}
		changed, err := b.watch()
		if err != nil {
			return err
		}
		// An acknowledgement stores cur before it closes changed. So one that came before watch is seen here,
		// and a later one wakes the select.
		if b.Up() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// gaveUp adds the last failure of the subscription to err, the end of a wait.
func (b *Inbox) gaveUp(err error) error {
	b.mu.Lock()
	last := b.last
	b.mu.Unlock()
	if last == nil {
		return fmt.Errorf("waiting for the inbox: %w", err)
	}
	return fmt.Errorf("waiting for the inbox: %w (last attempt: %v)", err, last)
}

// watch starts the subscription if nobody has, and returns the channel that is
// closed when its state changes.
func (b *Inbox) watch() (<-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, ErrClosed
	case b.refusal != nil:
		return nil, b.refusal
	case b.cancel == nil:
		var ctx context.Context
		ctx, b.cancel = context.WithCancel(context.Background())
		b.wg.Go(func() { b.run(ctx) })
	}
	return b.changed, nil
}

// Down returns why the last attempt to subscribe failed. If none has ended, it says that.
func (b *Inbox) Down() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		return errNoAnswer
	}
	// Not wrapped: a dial that timed out must not look like the end of the caller's context.
	return fmt.Errorf("last attempt: %v", b.last)
}

// Up reports whether the subscription is acknowledged and not known to be
// broken. It does not wait.
func (b *Inbox) Up() bool { return b.cur.Load() != nil }

// Heard returns when the last message or acknowledgement came in, with a
// monotonic reading, or the zero time if none has.
func (b *Inbox) Heard() time.Time {
	if d := b.heard.Load(); d != 0 {
		return b.base.Add(time.Duration(d))
	}
	return time.Time{}
}

// Suspect abandons the current link and makes a new one: the caller has
// evidence that it is dead. It does not wait. The new link is dialled at once,
// or after a pause if the old one was only just made. Without a link Suspect
// does nothing, since one is being made already.
func (b *Inbox) Suspect() {
	if l := b.cur.Load(); l != nil {
		select {
		case l.suspect <- struct{}{}:
		default: // suspected already
		}
	}
}

// Close ends the subscription and returns when all its goroutines have. One
// that is dialling ends with its attempt, within the timeouts of the redis
// client.
func (b *Inbox) Close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.changed)
		b.changed = nil // nothing waits for it: watch returns ErrClosed
	}
	cancel := b.cancel
	b.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	b.wg.Wait()
}

// run makes one link after the other until ctx ends or the client is closed.
func (b *Inbox) run(ctx context.Context) {
	pause := minPause
	var told outage
	for {
		begin := time.Now()
		up, err := b.link(ctx)
		if ctx.Err() != nil {
			return
		}
		lasted := up && time.Since(begin) >= maxPause
		if lasted {
			pause, told = minPause, outage{}
		}
		final, refused := errors.Is(err, redis.ErrClosed), b.refuses(err)
		b.failed(err, final || refused)
		if !lasted && !final && told.due(time.Now()) && b.cfg.Failed != nil {
			b.cfg.Failed(err)
		}
		wait := b.jitter(pause)
		switch {
		case final:
			return
		case refused:
			wait = b.jitter(refusePause)
		case lasted && errors.Is(err, errSuspected):
			wait = 0 // the caller that suspects it has waited long enough
		default:
			pause = min(2*pause, maxPause)
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// refuses reports whether Redis has answered with an error that it would give again.
func (b *Inbox) refuses(err error) bool {
	// go-redis subscribed to several slots in one command after a reconnect of its own
	return b.cfg.Refused != nil && !redis.HasErrorPrefix(err, "CROSSSLOT") && b.cfg.Refused(err)
}

// link makes a link and waits until it has ended. It returns why it ended, never nil, and whether it was ever
// acknowledged.
func (b *Inbox) link(ctx context.Context) (up bool, err error) {
	select {
	case b.links <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &link{
		ps:      b.open(ctx),
		dialled: make(chan struct{}),
		acked:   make(chan struct{}),
		ended:   make(chan error, 1),
		suspect: make(chan struct{}, 1),
	}
	b.wg.Go(func() { l.ended <- b.read(ctx, l) })
	err = l.wait(ctx)
	b.retire(l)
	cancel() // ends a dial
	b.wg.Go(func() {
		l.close()
		<-b.links
	})
	select {
	case <-l.acked:
		return true, err
	default:
		return false, err
	}
}

// retire returns when l makes no more callbacks, so that the callbacks of the next link come after them.
func (b *Inbox) retire(l *link) {
	b.turn <- struct{}{}
	l.retired = true
	b.cur.CompareAndSwap(l, nil)
	<-b.turn
}

// read subscribes and hands on what comes in until the link breaks.
//
// ctx has no deadline: a read that times out inside a frame loses the rest of
// the stream.
func (b *Inbox) read(ctx context.Context, l *link) error {
	err := l.ps.Subscribe(ctx, b.cfg.Channel)
	close(l.dialled)
	if err != nil {
		return err
	}
	for {
		v, err := l.ps.Receive(ctx)
		if err != nil {
			return err
		}
		if err := b.take(l, v); err != nil {
			return err
		}
	}
}

// take acts on one inbound frame of l.
func (b *Inbox) take(l *link, frame any) error {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if l.retired {
		return nil // the next Linked makes up for a message that is dropped here
	}
	b.heard.Store(max(1, int64(time.Since(b.base))))
	switch v := frame.(type) {
	case *redis.Message:
		if v.Channel == b.cfg.Channel && v.PayloadSlice == nil {
			b.cfg.Deliver(v.Payload)
		}
	case *redis.Subscription:
		if v.Kind != "subscribe" {
			return errUnsubscribed
		}
		b.linked(l)
	}
	return nil
}

// linked acts on an acknowledgement. A second one on the same link shows that go-redis has reconnected by
// itself. The caller holds the turn.
func (b *Inbox) linked(l *link) {
	b.cfg.Linked()
	if b.cur.Swap(l) == l {
		return
	}
	close(l.acked)
	b.mu.Lock()
	b.refusal, b.last = nil, nil
	b.wake()
	b.mu.Unlock()
}

// failed records why an attempt failed. Ready returns it if it was a refusal.
func (b *Inbox) failed(err error, refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.refusal = err, nil
	if refused {
		b.refusal = err
		b.wake()
	}
}

// wake makes every Ready look again. Caller holds b.mu.
func (b *Inbox) wake() {
	if b.closed {
		return
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// jitter returns between half of d and d: the clients of a server that comes
// back do not all come at once.
func (b *Inbox) jitter(d time.Duration) time.Duration { return d/2 + b.cfg.Spread(d/2+1) }

// Start starts the subscription if nobody has. It does not wait.
func (b *Inbox) Start() { _, _ = b.watch() }
