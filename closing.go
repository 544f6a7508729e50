package relock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

func (c *Client) isClosing() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// drain makes waiters and new calls fail; holds go on.
func (c *Client) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.draining {
		c.draining = true
		c.shut()
	}
}

// Shutdown ends the client in order: waiters and new calls get ErrClosed,
// re-entries still succeed, and when the last hold is released it closes. When
// ctx ends before that it returns ctx's error, and goes on draining; Close
// remains to be called.
func (c *Client) Shutdown(ctx context.Context) error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeClient)
	}
	if ctx == nil {
		return fmt.Errorf("relock: %w: the context is nil; pass context.Background()", ErrInvalidOption)
	}
	c.drain()
	for {
		c.mu.Lock()
		// What a Close has cut short stays among the sessions.
		idle, quiet := c.idle, c.closed || len(c.sessions) == 0 && c.tasks == 0
		c.mu.Unlock()
		if quiet {
			return c.Close()
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("relock: shutdown: %w", ended(ctx))
		}
	}
}

// closeGrace is how long Close goes on leaving queues and releasing what its
// callers have unlocked.
const closeGrace = 250 * time.Millisecond

// Close ends the client now: holds are lost, with ErrLost and ErrClosed as
// their error, and waiters get ErrClosed. Their leases in Redis run out by
// themselves. What has been unlocked before, and the places of waiters, it
// goes on telling Redis for a quarter of a second at most. It returns when the
// client's goroutines have ended; one
// that waits for a silent server ends by the redis client's own timeouts. So it
// must not be called from a hook. Closing again does nothing.
func (c *Client) Close() error {
	if c.unmade() {
		return fmt.Errorf("relock: %w", errUnmadeClient)
	}
	c.drain()
	again := c.ending.Swap(true)
	c.loseAll()
	if !again {
		c.leaveAll()
	}
	c.mu.Lock()
	c.closed = true
	c.notifyLocked()
	c.mu.Unlock()
	c.loseAll() // what was granted meanwhile
	c.cancel()
	c.watchdog.Close()
	c.inbox.Close()
	if c.shards != nil {
		c.shards.Close()
	}
	c.wg.Wait()
	c.transport.Wait()
	return nil
}

// loseAll ends what is held.
func (c *Client) loseAll() {
	why := errors.Join(ErrLost, ErrClosed)
	var todo []func()
	for _, a := range c.known() {
		at := a.keeper.begin()
		if a.Held() || a.Away() {
			a.Session.Lose(why, &at)
		}
		todo = append(todo, a.keeper.endFirst(&at)...)
	}
	runAll(todo)
}

// leaveAll waits until no session is left that has a place or a release under
// way: an entry that nobody waits for holds up others for up to a lease.
func (c *Client) leaveAll() {
	limit := time.NewTimer(closeGrace)
	defer limit.Stop()
	for {
		c.mu.Lock()
		idle, none := c.idle, len(c.sessions) == 0
		c.mu.Unlock()
		if none {
			return
		}
		select {
		case <-idle:
		case <-limit.C:
			return
		}
	}
}

func (c *Client) known() []*acquisition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.sessions))
}

// spawn runs fn on a goroutine that Close waits for, unless it is too late.
func (c *Client) spawn(fn func(ctx context.Context)) (spawned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tasks++
	c.wg.Go(func() {
		defer func() {
			c.mu.Lock()
			c.tasks--
			c.notifyLocked()
			c.mu.Unlock()
		}()
		fn(c.ctx)
	})
	return true
}

// beside is spawn for what is quickly over where the client has been closed: then it
// runs on the caller's goroutine.
func (c *Client) beside(fn func()) {
	if !c.spawn(func(context.Context) { fn() }) {
		fn()
	}
}

// tellApart calls hooks and the logger for the watchdog and the inbox: one that blocks,
// or ends its goroutine, stops neither.
func (c *Client) tellApart(todo ...func()) {
	if len(todo) > 0 {
		c.beside(func() { runAll(todo) })
	}
}

// background is spawn for at most the given time.
func (c *Client) background(limit time.Duration, fn func(ctx context.Context)) {
	c.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		fn(ctx)
	})
}

// notifyLocked wakes a Shutdown that waits for holds and tasks to end. It needs c.mu.
func (c *Client) notifyLocked() {
	if c.draining {
		close(c.idle)
		c.idle = make(chan struct{})
	}
}
