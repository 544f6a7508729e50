package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	minPause    = 20 * time.Millisecond // after the first failure
	maxPause    = time.Second           // also: a link that lived this long was a good one
	refusePause = 5 * time.Second       // after a refusal, which only an operator can end
	dialTimeout = 10 * time.Second      // from the start of an attempt to its subscription
	ackTimeout  = 2 * time.Second       // from then to the acknowledgement; waiters stand still that long
	// with those that are being closed: a dial without a timeout to a server that hangs keeps its link
	maxLinks = 3
)

var (
	errSuspected    = errors.New("link abandoned: an echo did not come back")
	errNoAck        = errors.New("subscription not acknowledged in time")
	errNoAnswer     = errors.New("the subscription has not been acknowledged yet")
	errUnsubscribed = errors.New("unsubscribed by the server")
)

// A feed is what a link reads from: a connection of its own, or a part in one.
type feed interface {
	Subscribe(ctx context.Context, channels ...string) error
	Receive(ctx context.Context) (any, error)
	Close() error
}

// link is one connection, from its dial to its end. A link that breaks is never
// mended: what go-redis reconnects and resubscribes by itself is dropped with
// the rest, so that no gap goes unseen.
type link struct {
	ps      feed
	dialled chan struct{} // closed by the reader when Subscribe has returned
	acked   chan struct{} // closed by the reader at the first acknowledgement
	ended   chan error    // the reader's last word; room for one, so that it never waits
	suspect chan struct{} // room for one: Suspect never waits
	retired bool          // no more callbacks; guarded by the inbox's turn
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

// maxQuiet is the longest time between two reports of the same outage.
const maxQuiet = time.Hour

// An outage says when the next failure in a row is reported.
type outage struct {
	next  time.Time
	quiet time.Duration
}

// due reports whether a failure must be reported now.
func (o *outage) due(now time.Time) bool {
	if now.Before(o.next) {
		return false
	}
	o.quiet = min(max(2*o.quiet, 10*time.Second), maxQuiet)
	o.next = now.Add(o.quiet)
	return true
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

// close ends the reader. It may take as long as the timeouts of the redis client:
// go-redis holds the mutex that Close waits for while it dials, and shakes hands
// without looking at a context. The next link does not wait for that.
func (l *link) close() {
	<-l.dialled
	_ = l.ps.Close()
}

// wait returns why l must end.
func (l *link) wait(ctx context.Context) error {
	late := time.NewTimer(dialTimeout)
	defer late.Stop()
	dialled, acked, expired := l.dialled, l.acked, late.C
	for {
		select {
		case <-dialled:
			dialled = nil
			late.Reset(ackTimeout)
		case <-acked:
			acked, expired = nil, nil
		case <-expired:
			return errNoAck
		case <-l.suspect:
			return errSuspected
		case err := <-l.ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
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

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter returns between half of d and d: the clients of a server that comes
// back do not all come at once.
func (b *Inbox) jitter(d time.Duration) time.Duration { return d/2 + b.cfg.Spread(d/2+1) }
