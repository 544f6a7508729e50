package inbox

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

var errLeft = errors.New("nobody is subscribed over this connection any more")

// A sharedConn is one connection to one server, for any number of channels. One goroutine writes, one reads.
//
// When the connection breaks, all its feeds end. It is not used again, even if go-redis reconnects it.
type sharedConn struct {
	s       *Shards
	name    string
	node    Node
	ps      *redis.PubSub
	ctx     context.Context
	cancel  context.CancelFunc
	work    chan struct{} // capacity one: there is something to send
	dialled chan struct{} // closed when the first command has been sent

	mu                sync.Mutex // guards the following fields
	err               error      // why the connection has ended; nil: it has not
	feeds             map[string]*channelFeed
	unsent            []subCommand
	unanswered        []subCommand // sent and not answered; the server answers in this order
	unsubscribeProbed bool         // an unsubscription was sent to check that it is permitted
}

// A subCommand subscribes or unsubscribes one channel.
type subCommand struct {
	channel     string
	unsubscribe bool
	feed        *channelFeed // the feed to end if the server refuses the command; nil: none
}

// add subscribes a feed. It returns false if c has ended.
func (c *sharedConn) add(f *channelFeed) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.feeds[f.channel] = f
	if !c.unsubscribeProbed {
		// Probe the permission to unsubscribe now, so that a missing one is reported before it matters.
		c.unsubscribeProbed = true
		c.enqueue(subCommand{f.channel, true, f})
	}
	c.enqueue(subCommand{f.channel, false, f})
	return true
}

// enqueue queues a command for the writer. It needs c.mu.
func (c *sharedConn) enqueue(o subCommand) {
	c.unsent = append(c.unsent, o)
	select {
	case c.work <- struct{}{}:
	default:
	}
}

// leave unsubscribes a feed.
func (c *sharedConn) leave(f *channelFeed) {
	c.mu.Lock()
	if c.feeds[f.channel] != f {
		c.mu.Unlock()
		return // the feed ended with its connection, or another feed has the channel now
	}
	c.enqueue(subCommand{f.channel, true, nil})
	last := c.remove(f)
	c.mu.Unlock()
	c.endIfLast(last)
}

// remove removes a feed and reports whether it was the last one. It needs c.mu. If it returns true, the caller must
// call endIfLast after it has released c.mu.
func (c *sharedConn) remove(f *channelFeed) (last bool) {
	delete(c.feeds, f.channel)
	if len(c.feeds) > 0 || c.err != nil {
		return false
	}
	c.err = errLeft
	return true
}

// endIfLast ends c if last, which remove returned, is true. The caller must not hold c.mu: s.mu is taken before c.mu.
func (c *sharedConn) endIfLast(last bool) {
	if last {
		c.s.retire(c)
		c.cancel()
	}
}

// write sends the commands. The first one dials. write also closes the connection: during a dial go-redis holds the
// mutex that Close needs, so closing elsewhere would block.
func (c *sharedConn) write() {
	reading := false
	for {
		o, ok := c.next()
		if !ok {
			break
		}
		if err := c.send(o); err != nil {
			c.fail(err)
			break
		}
		if !reading {
			reading = true
			close(c.dialled)
			c.s.wg.Go(c.read)
		}
	}
	_ = c.ps.Close()
}

func (c *sharedConn) send(o subCommand) error {
	subscribe, unsubscribe := c.ps.SSubscribe, c.ps.SUnsubscribe
	if c.s.cfg.Plain {
		subscribe, unsubscribe = c.ps.Subscribe, c.ps.Unsubscribe
	}
	if o.unsubscribe {
		return unsubscribe(c.ctx, o.channel)
	}
	return subscribe(c.ctx, o.channel)
}

// next returns what to send, or false when c has ended.
func (c *sharedConn) next() (subCommand, bool) {
	for {
		c.mu.Lock()
		if c.err != nil {
			c.mu.Unlock()
			return subCommand{}, false
		}
		if len(c.unsent) > 0 {
			o := c.unsent[0]
			c.unsent = c.unsent[1:]
			c.unanswered = append(c.unanswered, o) // before it is sent, so that its answer finds it here
			c.mu.Unlock()
			return o, true
		}
		c.mu.Unlock()
		select {
		case <-c.work:
		case <-c.ctx.Done():
			return subCommand{}, false
		}
	}
}

// read passes frames to the feeds until the connection breaks. Inbox.read says why c.ctx has no deadline.
func (c *sharedConn) read() {
	for {
		frame, err := c.ps.Receive(c.ctx)
		switch {
		case err == nil:
			c.handle(frame)
		case !c.refused(err):
			c.fail(err)
			return
		}
	}
}

func (c *sharedConn) handle(frame any) {
	switch v := frame.(type) {
	case *redis.Message:
		c.mu.Lock()
		defer c.mu.Unlock()
		if f := c.feeds[v.Channel]; f != nil {
			f.push(v)
		}
	case *redis.Subscription:
		if v.Kind == "ssubscribe" || v.Kind == "subscribe" {
			c.acknowledged(v.Channel)
		} else {
			c.unsubscribed(v.Channel)
		}
	}
}

// acknowledged tells the feed that its channel is subscribed. It does so even if no subscription was pending: then
// go-redis has reconnected by itself, and the inbox must call Linked again.
func (c *sharedConn) acknowledged(channel string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeAnswered(channel, false)
	if f := c.feeds[channel]; f != nil {
		f.push(&redis.Subscription{Kind: "subscribe", Channel: channel})
	}
}

// unsubscribed ends the feed if no unsubscription was pending: then the slot has moved to another server.
func (c *sharedConn) unsubscribed(channel string) {
	c.mu.Lock()
	f := c.feeds[channel]
	if c.removeAnswered(channel, true) || f == nil {
		c.mu.Unlock()
		return
	}
	last := c.remove(f)
	f.end(errUnsubscribed)
	c.mu.Unlock()
	c.endIfLast(last)
	c.s.cfg.Moved()
}

// removeAnswered removes the command that an acknowledgement answers, and reports whether there was one. It needs c.mu.
func (c *sharedConn) removeAnswered(channel string, unsubscribe bool) bool {
	for i, o := range c.unanswered {
		if o.channel == channel && o.unsubscribe == unsubscribe {
			c.unanswered = append(c.unanswered[:i:i], c.unanswered[i+1:]...)
			return true
		}
	}
	return false
}

// refused reports whether err is the server's refusal of one command. If so, it ends only that command's feed. Any
// other error ends the connection. Among these are answers after which go-redis reconnects, and CROSSSLOT, which shows
// that go-redis has reconnected.
func (c *sharedConn) refused(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) || redis.IsReadOnlyError(err) || redis.HasErrorPrefix(err, "CROSSSLOT") {
		return false
	}
	if addr, moved := redis.IsMovedError(err); moved && addr == c.name {
		return false
	}
	c.mu.Lock()
	if len(c.unanswered) == 0 {
		c.mu.Unlock()
		return false
	}
	o, last := c.unanswered[0], false
	c.unanswered = c.unanswered[1:]
	if o.feed != nil && c.feeds[o.channel] == o.feed {
		last = c.remove(o.feed)
		o.feed.end(err)
	}
	c.mu.Unlock()
	c.endIfLast(last)
	c.s.cfg.Moved()
	return true
}

// fail ends c and all its feeds.
func (c *sharedConn) fail(err error) {
	closed := errors.Is(err, redis.ErrClosed)
	if closed {
		err = errNodeClosed
	}
	c.mu.Lock()
	ended := c.err != nil // c had ended before: its last feed left, or the other goroutine called fail
	if !ended {
		c.err = err
	}
	for _, f := range c.feeds {
		f.end(err)
	}
	clear(c.feeds)
	c.mu.Unlock()
	c.cancel()
	if ended {
		return
	}
	c.s.retire(c)
	if closed {
		c.s.mu.Lock()
		c.s.closedClients[c.name] = c.node
		c.s.mu.Unlock()
	}
	c.s.cfg.Moved()
}
