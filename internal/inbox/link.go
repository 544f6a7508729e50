package inbox

import (
	"context"
	"errors"
	"time"
)

const (
	minPause    = 20 * time.Millisecond // after the first failure
	maxPause    = time.Second           // also the lifetime after which a link counts as a good one
	refusePause = 5 * time.Second       // after a refusal, which only an operator can end
	dialTimeout = 10 * time.Second      // from the start of an attempt until the command is sent
	ackTimeout  = 2 * time.Second       // from then to the acknowledgement; waiters get no messages during that time
	// maxLinks includes links that are being closed. Without timeouts, a dial to a server that hangs keeps its link.
	maxLinks = 3
)

var (
	errSuspected    = errors.New("link abandoned: an echo did not come back")
	errNoAck        = errors.New("subscription not acknowledged in time")
	errNoAnswer     = errors.New("the subscription has not been acknowledged yet")
	errUnsubscribed = errors.New("unsubscribed by the server")
)

// A feed is where a link reads from: its own connection, or its channel's part of a sharedConn.
type feed interface {
	Subscribe(ctx context.Context, channels ...string) error
	Receive(ctx context.Context) (any, error)
	Close() error
}

// A link is one feed of an Inbox, from its dial to its end. A link that breaks is replaced, never repaired. If go-redis
// reconnects it by itself, the second acknowledgement calls Linked, because messages may have been missed.
type link struct {
	ps      feed
	dialled chan struct{} // closed by the reader when Subscribe has returned
	acked   chan struct{} // closed by the reader at the first acknowledgement
	ended   chan error    // the reader's final error; capacity one, so that the reader never waits
	suspect chan struct{} // capacity one, so that Suspect never waits
	retired bool          // no more callbacks; guarded by Inbox.callbacks
}

// maxQuiet is the longest time between two reports of the same outage.
const maxQuiet = time.Hour

// An outage is a row of failures. It decides which of them are reported.
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

// close closes the connection, which ends the reader. It may take as long as the timeouts of the redis client: during a
// dial go-redis holds the mutex that its Close needs, and its handshake ignores the context. The next link does not
// wait for it.
func (l *link) close() {
	<-l.dialled
	_ = l.ps.Close()
}

// wait waits until l must end, and returns why.
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
