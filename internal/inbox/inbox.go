// Package inbox keeps one client subscribed: to one channel for life ([Inbox]), or to sharded channels while each of
// them is wanted ([Shards]).
//
// Redis drops messages that are published while the subscriber's connection, its link, is down. An Inbox reports such
// gaps. After [Inbox.Ready] has returned nil, the Inbox delivers every message or, later, calls Linked to say that
// messages may have been missed.
//
// A silent link may be idle or dead, and an Inbox cannot tell which. Its owner can: it has a message published to the
// channel, checks that [Inbox.Heard] moves, and calls [Inbox.Suspect] if not.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/ending"
)

// ErrClosed is returned by [Inbox.Ready] after [Inbox.Close].
var ErrClosed = errors.New("inbox closed")

// Config says which channel to subscribe to and which functions to call.
//
// Deliver and Linked are called one at a time, in the order in which messages and acknowledgements arrive, on the
// goroutine that reads the link. They must not block, and must not call Close.
type Config struct {
	// Subscribe is the redis client's method of that name.
	Subscribe func(ctx context.Context, channels ...string) *redis.PubSub
	Channel   string
	// Deliver is called with every message.
	Deliver func(payload string)
	// Linked is called each time Redis acknowledges the subscription: messages before that may have been missed. first: it
	// is the first time. The call comes before Deliver of any later message, and before Up and Ready report the
	// subscription.
	Linked func(first bool)
	// Refused reports whether an error reply of Redis would come again at the next attempt.
	Refused func(err error) bool
	// Failed is called when a link cannot be made, or breaks soon after it was made. It is called for the first failure of
	// an outage, and then in intervals that double up to an hour.
	Failed func(err error)
}

// Inbox is a subscription that outlives its connections. Create one with [New].
type Inbox struct {
	cfg  Config
	open func(ctx context.Context) feed // makes the feed of a new link
	base time.Time                      // the reference point of heard

	wg           sync.WaitGroup
	links        chan struct{}        // a semaphore: one token for each link that is not closed yet
	callbacks    chan struct{}        // a mutex, held during Deliver and Linked and while cur and link.retired change
	linkedBefore bool                 // Linked has been called; guarded by callbacks
	cur          atomic.Pointer[link] // the acknowledged link; nil while there is none
	heard        atomic.Int64         // nanoseconds from base to the last inbound frame; 0: none

	mu      sync.Mutex         // guards the following fields
	cancel  context.CancelFunc // ends the goroutines; nil until started
	closed  bool
	refusal error         // the last attempt's error, if Ready must return it at once; else nil
	last    error         // the last attempt's error
	changed chan struct{} // closed and replaced when Ready must look again
}

// New returns an Inbox. It starts nothing: the first [Inbox.Ready] or [Inbox.Start] does.
func New(cfg Config) *Inbox {
	b := &Inbox{
		cfg:       cfg,
		base:      time.Now(),
		links:     make(chan struct{}, maxLinks),
		callbacks: make(chan struct{}, 1),
		changed:   make(chan struct{}),
	}
	b.open = func(ctx context.Context) feed {
		return cfg.Subscribe(ctx) // without a channel: no I/O yet, and no error swallowed
	}
	return b
}

// Ready waits until the subscription is acknowledged. The first call starts the subscription. If [Inbox.Up] is true,
// Ready returns nil at once. ctx bounds the wait, not the subscription.
//
// Ready returns the last attempt's error without waiting if the redis client is closed, or if Redis refuses the
// credentials, the command or the channel. After a refusal the Inbox tries again every few seconds.
func (b *Inbox) Ready(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.Up() {
			return nil
		}
		changed, err := b.startAndWatch()
		if err != nil {
			return err
		}
		// linked stores cur before it closes changed: this check sees the acknowledgement, or changed ends the wait.
		if b.Up() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// startAndWatch starts the subscription on the first call. It returns a channel that is closed when Ready must look
// again, or the error that Ready must return.
func (b *Inbox) startAndWatch() (<-chan struct{}, error) {
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

// Down returns why the last attempt to subscribe failed, or errNoAnswer if none has failed since the last
// acknowledgement.
func (b *Inbox) Down() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		return errNoAnswer
	}
	// Not wrapped, because a dial that timed out must not look like the end of the caller's context.
	return fmt.Errorf("last attempt: %v", b.last)
}

// Up reports whether the subscription is acknowledged and not known to be broken. It does not wait.
func (b *Inbox) Up() bool { return b.cur.Load() != nil }

// Heard returns when the last message or acknowledgement came in, by the monotonic clock, or the zero time if none has.
func (b *Inbox) Heard() time.Time {
	if d := b.heard.Load(); d != 0 {
		return b.base.Add(time.Duration(d))
	}
	return time.Time{}
}

// Suspect has the current link replaced, because the caller has evidence that the link is dead. The new link is dialled
// at once, or after a pause if the old one was only just made. Without a link, one is being made already, and Suspect
// does nothing. It does not wait.
func (b *Inbox) Suspect() {
	if l := b.cur.Load(); l != nil {
		select {
		case l.suspect <- struct{}{}:
		default: // suspected already
		}
	}
}

// Close ends the subscription, and waits for its goroutines. A dial may take until the redis client's timeouts.
func (b *Inbox) Close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.changed)
		b.changed = nil // from now on startAndWatch returns ErrClosed
	}
	cancel := b.cancel
	b.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	b.wg.Wait()
}

// run makes one link after the other until ctx ends or the redis client is closed. It keeps each failure for Ready,
// which returns a refusal at once.
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
		final, refused := errors.Is(err, redis.ErrClosed), b.isRefusal(err)
		b.failed(err, final || refused)
		if !lasted && !final && told.due(time.Now()) {
			b.cfg.Failed(err)
		}
		wait := jitter(pause)
		switch {
		case final:
			return
		case refused:
			wait = jitter(refusePause)
		case lasted && errors.Is(err, errSuspected):
			wait = 0 // the caller of Suspect has already waited for an echo
		default:
			pause = min(2*pause, maxPause)
		}
		if !ending.Pause(ctx, nil, wait) {
			return
		}
	}
}

// isRefusal reports whether err is an error reply of Redis that would come again at the next attempt.
func (b *Inbox) isRefusal(err error) bool {
	// CROSSSLOT would not come again. It shows that go-redis reconnected and subscribed to several slots in one command.
	return !redis.HasErrorPrefix(err, "CROSSSLOT") && b.cfg.Refused(err)
}

// link makes a link and waits until it must end. It returns whether the link was acknowledged, and why it ends.
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

// retire waits for a running callback of l, and prevents further ones. So all callbacks of the next link come later.
func (b *Inbox) retire(l *link) {
	b.callbacks <- struct{}{}
	l.retired = true
	b.cur.CompareAndSwap(l, nil)
	<-b.callbacks
}

// read subscribes, and handles frames until the link breaks.
//
// ctx has no deadline, because a read that times out inside a frame loses the rest of the stream.
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
		if err := b.handle(l, v); err != nil {
			return err
		}
	}
}

func (b *Inbox) handle(l *link, frame any) error {
	b.callbacks <- struct{}{}
	defer func() { <-b.callbacks }()
	if l.retired {
		return nil // a message is lost here, and the Linked call of the next link makes up for it
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

// linked acts on an acknowledgement. A second one on a link shows that go-redis reconnected. It needs b.callbacks.
func (b *Inbox) linked(l *link) {
	b.cfg.Linked(!b.linkedBefore)
	b.linkedBefore = true
	if b.cur.Swap(l) == l {
		return
	}
	close(l.acked)
	b.mu.Lock()
	b.refusal, b.last = nil, nil
	b.wake()
	b.mu.Unlock()
}

// failed records why an attempt or a link has failed. If refused is true, Ready returns that error at once.
func (b *Inbox) failed(err error, refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.refusal = err, nil
	if refused {
		b.refusal = err
		b.wake()
	}
}

// wake makes every waiting Ready look again. It needs b.mu.
func (b *Inbox) wake() {
	if b.closed {
		return
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// jitter returns a time from half of d to d, so that clients do not all come back to a restarted server at once.
func jitter(d time.Duration) time.Duration { return d/2 + ending.Spread(d/2+1) }

// Start starts the subscription unless it runs. It does not wait.
func (b *Inbox) Start() { _, _ = b.startAndWatch() }
