package inbox

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

var errLeft = errors.New("nobody is subscribed over this connection any more")

// wire is one connection to one server. Any number of channels are subscribed over it. One goroutine writes,
// one reads.
//
// A wire that breaks ends all its taps. It is not used again, even if go-redis reconnects it.
type wire struct {
	s      *Shards
	name   string
	node   Node
	ps     *redis.PubSub
	ctx    context.Context
	cancel context.CancelFunc
	work   chan struct{} // capacity one: there is something to send

	mu     sync.Mutex // protects following fields
	err    error      // why the wire has ended
	taps   map[string]*tap
	todo   []order // to send
	sent   []order // sent and not answered; the server answers in this order
	probed bool    // an unsubscription was tried
}

// order is one command for one channel.
type order struct {
	channel string
	ends    bool // unsubscribe rather than subscribe
	tap     *tap // ends if the order is refused; nil: nothing ends
}

// add subscribes a tap. It returns false if w has ended.
func (w *wire) add(t *tap) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return false
	}
	w.taps[t.channel] = t
	if !w.probed {
		// Probe the permission to unsubscribe now: a user without it should learn that before it matters.
		w.probed = true
		w.do(order{t.channel, true, t})
	}
	w.do(order{t.channel, false, t})
	return true
}

// do queues an order for the writer. It needs w.mu.
func (w *wire) do(o order) {
	w.todo = append(w.todo, o)
	select {
	case w.work <- struct{}{}:
	default:
	}
}

// leave unsubscribes a tap.
func (w *wire) leave(t *tap) {
	w.mu.Lock()
	if w.taps[t.channel] != t {
		w.mu.Unlock()
		return // ended with its wire, or its channel was joined again
	}
	w.do(order{t.channel, true, nil})
	left := w.drop(t)
	w.mu.Unlock()
	w.endIf(left)
}

// drop removes a tap and reports whether it was the last one. If so, the caller must call endIf without the
// mutex. drop needs w.mu.
func (w *wire) drop(t *tap) (left bool) {
	delete(w.taps, t.channel)
	if len(w.taps) > 0 || w.err != nil {
		return false
	}
	w.err = errLeft
	return true
}

func (w *wire) endIf(left bool) {
	if left {
		w.s.retire(w)
		w.cancel()
	}
}

// write sends the orders; the first one dials. write also closes the connection, because during a dial
// go-redis holds the mutex that Close needs.
func (w *wire) write() {
	reading := false
	for {
		o, ok := w.next()
		if !ok {
			break
		}
		if err := w.send(o); err != nil {
			w.fail(err)
			break
		}
		if !reading {
			reading = true
			w.s.wg.Go(w.read)
		}
	}
	_ = w.ps.Close()
}

func (w *wire) send(o order) error {
	subscribe, unsubscribe := w.ps.SSubscribe, w.ps.SUnsubscribe
	if w.s.cfg.Plain {
		subscribe, unsubscribe = w.ps.Subscribe, w.ps.Unsubscribe
	}
	if o.ends {
		return unsubscribe(w.ctx, o.channel)
	}
	return subscribe(w.ctx, o.channel)
}

// next returns what to send, or false when w has ended.
func (w *wire) next() (order, bool) {
	for {
		w.mu.Lock()
		if w.err != nil {
			w.mu.Unlock()
			return order{}, false
		}
		if len(w.todo) > 0 {
			o := w.todo[0]
			w.todo = w.todo[1:]
			w.sent = append(w.sent, o) // before it is sent, so that its answer finds it here
			w.mu.Unlock()
			return o, true
		}
		w.mu.Unlock()
		select {
		case <-w.work:
		case <-w.ctx.Done():
			return order{}, false
		}
	}
}

// read passes what comes in to the taps. ctx has no deadline, for the reason given at Inbox.read.
func (w *wire) read() {
	for {
		frame, err := w.ps.Receive(w.ctx)
		switch {
		case err == nil:
			w.take(frame)
		case !w.refused(err):
			w.fail(err)
			return
		}
	}
}

// take acts on one inbound frame.
func (w *wire) take(frame any) {
	switch v := frame.(type) {
	case *redis.Message:
		w.mu.Lock()
		defer w.mu.Unlock()
		if t := w.taps[v.Channel]; t != nil {
			t.push(v)
		}
	case *redis.Subscription:
		if v.Kind == "ssubscribe" || v.Kind == "subscribe" {
			w.acknowledged(v.Channel)
		} else {
			w.unsubscribed(v.Channel)
		}
	}
}

// acknowledged tells the tap. If the tap did not ask, go-redis has reconnected by itself, and messages may be
// missing.
func (w *wire) acknowledged(channel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered(channel, false)
	if t := w.taps[channel]; t != nil {
		t.push(&redis.Subscription{Kind: "subscribe", Channel: channel})
	}
}

// unsubscribed ends a tap that did not ask for it: its slot has moved to another server.
func (w *wire) unsubscribed(channel string) {
	w.mu.Lock()
	t := w.taps[channel]
	if w.answered(channel, true) || t == nil {
		w.mu.Unlock()
		return
	}
	left := w.drop(t)
	t.end(errUnsubscribed)
	w.mu.Unlock()
	w.endIf(left)
	w.s.cfg.Moved()
}

// answered removes the order that an acknowledgement answers, and reports whether there was one. It needs
// w.mu.
func (w *wire) answered(channel string, ends bool) bool {
	for i, o := range w.sent {
		if o.channel == channel && o.ends == ends {
			w.sent = append(w.sent[:i:i], w.sent[i+1:]...)
			return true
		}
	}
	return false
}

// refused reports whether err is the server's answer to one order. Such an answer ends only that order's tap.
// An answer after which go-redis reconnects does not count.
func (w *wire) refused(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) || redis.IsReadOnlyError(err) || redis.HasErrorPrefix(err, "CROSSSLOT") {
		return false
	}
	if addr, moved := redis.IsMovedError(err); moved && addr == w.name {
		return false
	}
	w.mu.Lock()
	if len(w.sent) == 0 {
		w.mu.Unlock()
		return false
	}
	o, left := w.sent[0], false
	w.sent = w.sent[1:]
	if o.tap != nil && w.taps[o.channel] == o.tap {
		left = w.drop(o.tap)
		o.tap.end(err)
	}
	w.mu.Unlock()
	w.endIf(left)
	w.s.cfg.Moved()
	return true
}

// fail ends w and all its taps.
func (w *wire) fail(err error) {
	closed := errors.Is(err, redis.ErrClosed)
	if closed {
		err = errNodeClosed
	}
	w.mu.Lock()
	ours := w.err != nil // we closed the connection ourselves
	if !ours {
		w.err = err
	}
	for _, t := range w.taps {
		t.end(err)
	}
	clear(w.taps)
	w.mu.Unlock()
	w.cancel()
	if ours {
		return
	}
	w.s.retire(w)
	if closed {
		w.s.mu.Lock()
		w.s.gone[w.name] = w.node
		w.s.mu.Unlock()
	}
	w.s.cfg.Moved()
}
