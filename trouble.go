package relock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/label"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// This file is what a call says at the end of its wait: that the lock is taken, which
// somebody must have told it, or what was the matter with Redis. What a client asks
// before it takes anything stands here too: that it may run what it needs, and hears.

// errLateAnswers is why answers are of no use: clocks that are minutes apart, or a slot
// that is moving.
var errLateAnswers = errors.New("redis has answered nothing but that the request came too late, or to a server that lacks one of its keys")

// errNotSharded is the error of servers before sharded pub/sub.
var errNotSharded = errors.New("the server has no sharded pub/sub: ShardedPubSub needs Redis 7.0 or later")

// unanswered is the error of a request that has waited for so long.
func unanswered(d time.Duration) error {
	return &requestError{fmt.Errorf("redis has not answered for %v", d.Round(time.Microsecond))}
}

// A waitError is the cause with which the wait of a TryLock ends.
type waitError time.Duration

func (waitError) Error() string { return "wait is over" }

// over is the error of a call whose context ends while it stands in line, or while
// the acquisition waits for which it has asked. It says what was the matter with Redis.
func (w *waiting) over(a *acquisition) error {
	k := w.keeper
	var of *room.Acquisition
	if a != nil {
		of = &a.Acquisition
	}
	k.mu.Lock()
	now := k.c.clock.Now()
	taken, trouble := k.room.Hears(w.want(), of, w.began, now)
	k.mu.Unlock()
	w.taken = w.taken || taken
	switch {
	case trouble.Err != nil:
		return w.overOr(trouble.Err)
	case trouble.Is():
		return w.overOr(unanswered(trouble.Silent))
	case !w.taken:
		return w.overOr(unanswered(now.Sub(w.began)))
	}
	return w.overOr(nil)
}

// overOr returns the context's error if that has ended, with err as what was
// the matter until then; else err.
func (w *waiting) overOr(err error) error {
	switch {
	case err == nil:
		return ended(w.ctx)
	case w.ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", ended(w.ctx), err)
	}
	return err
}

// failed is the error of a request that failed: where the context has ended
// meanwhile it went unanswered, since sent.
func failed(ctx context.Context, err error, now, sent clock.Instant) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return unanswered(now.Sub(sent))
	}
	return &requestError{err}
}

// verdict makes of the end of a TryLock's wait what that returns: ErrNotAcquired where
// it was told that the lock is taken, by Redis or by who holds it in this client;
// else an error, as nobody knows who has it.
func (w *waiting) verdict(err error) error {
	wait, bounded := errors.AsType[waitError](context.Cause(w.ctx))
	switch {
	case !bounded || !errors.Is(err, wait):
		return err
	case w.occupied:
		return errOccupied
	case w.taken && wait > 0:
		return fmt.Errorf("%w within %v", ErrNotAcquired, time.Duration(wait))
	case w.taken:
		return ErrNotAcquired
	}
	if trouble, is := errors.AsType[*requestError](err); is {
		return trouble
	}
	return unanswered(w.keeper.c.clock.Now().Sub(w.began))
}

// WhoHolds has the error of a wait that ends without the lock say who holds it: owner, label,
// for how long, and when the lease ends. Such a call asks Redis once more at its end, and so
// returns later by a round trip, by 100 ms at most. TryLock and TryDo, which return no
// error where the lock is taken, ask nothing then.
func WhoHolds() Option {
	return option(func(c *config) error {
		c.whoHolds = true
		return nil
	})
}

// whoWithin bounds how long a call asks at its end who holds the lock.
const whoWithin = 100 * time.Millisecond

// whoHolds says it for the error of a wait that has ended, or "" where nobody does any more
// or Redis does not answer at once.
func (w *waiting) whoHolds() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), whoWithin)
	defer cancel()
	info, err := w.lock.Info(ctx)
	switch {
	case err != nil:
		return ""
	case info.Resting > 0:
		return fmt.Sprintf("taken by nobody for another %v", info.Resting)
	case len(info.Holders) == 0:
		return ""
	}
	h, label, more := info.Holders[0], "", ""
	if h.Label != "" {
		label = fmt.Sprintf(" of %q", h.Label)
	}
	if n := len(info.Holders) - 1; n > 0 {
		more = fmt.Sprintf(", and by %d more", n)
	}
	return fmt.Sprintf("held by %q%s for %v, its lease ends in %v%s", h.Owner, label, h.Held.Round(time.Millisecond), h.TTL, more)
}

// permit asks what the call needs, of that what has not been answered yet.
func (c *Client) permit(w *waiting) error {
	if err := c.mayRun(w); err != nil {
		return err
	}
	if err := c.mayWait(w); err != nil {
		return err
	}
	c.introduce(w.ctx, w.lock.terms.TTL)
	return nil
}

// mayRun asks, until it has been answered once, whether the user may run what the
// scripts need: a lock that could be taken and not be given back is not taken. An
// error says what is refused. Where Redis does not answer, the call that follows
// will find out.
func (c *Client) mayRun(w *waiting) error {
	if c.permitted.Load() {
		return nil
	}
	keys, shard := w.keeper.keys(), ""
	if l := w.keeper.listener; l.Sharded() {
		shard = l.Channel
	}
	raw, err := c.transport.Do(w.ctx, trust.Attempt(w.lock.terms.TTL), c.wire.Permit(keys, key.Inbox(c.cfg.prefix, c.id), shard))
	if err != nil {
		if isRefused(err) {
			return fmt.Errorf("%w (needed: eval, evalsha, and the keys %s and %s)", err, keys.Hash, keys.Queue)
		}
		return nil
	}
	switch lacks := wire.DecodePermit(raw); {
	case lacks.Unsharded:
		return errNotSharded
	case lacks.Old:
		return tooOld(lacks.Version)
	case len(lacks.Refused) > 0:
		return fmt.Errorf("the user may not run, or the server lacks: %s; docs/operations.md lists what is needed", strings.Join(lacks.Refused, ", "))
	}
	if err := c.mayHear(w); err != nil {
		return err
	}
	c.permitted.Store(true)
	c.labels.Open()
	return nil
}

// introduce has the client's label stored, once, before it takes anything: so who looks
// after the first Lock sees who holds. It waits for that, but not for long.
func (c *Client) introduce(ctx context.Context, ttl time.Duration) {
	now := c.clock.Now()
	if !c.labels.First(ttl, now) {
		return
	}
	stored := make(chan struct{})
	if !c.storeLabel(now, func() { close(stored) }) {
		return
	}
	limit := time.NewTimer(label.FirstWithin)
	defer limit.Stop()
	select {
	case <-stored:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// keepLabel has the client's label stored again where it is time, or where a lease is
// asked for that is longer than all before.
func (c *Client) keepLabel(ttl time.Duration, now instant) {
	if c.labels.Due(ttl, now) {
		c.storeLabel(now, func() {})
	}
}

func (c *Client) storeLabel(now instant, done func()) (begun bool) {
	return c.spawn(func(ctx context.Context) {
		defer done()
		if err := c.labels.Store(ctx, now); err != nil {
			c.cfg.log.Warn("label not stored, trying again", slog.Any("err", err))
		}
	})
}

// tooOld is the error of a server before Redis 7.0, of that version if it says so.
func tooOld(version string) error {
	if version == "" {
		version = "older"
	}
	return fmt.Errorf("Redis 7.0 or Valkey is needed, this is %s", version) //nolint:staticcheck // a name
}

// mayWait asks the same for what Replicas needs besides: scripts may not run WAIT,
// so none can say whether the user may.
func (c *Client) mayWait(w *waiting) error {
	if w.lock.terms.Replicas.N == 0 || c.acked.Load() {
		return nil
	}
	err := c.transport.DoAcked(w.ctx, trust.Attempt(w.lock.terms.TTL), 0, time.Millisecond, c.wire.Where(w.keeper.keys()))[0].Err
	if err != nil && isRefused(err) {
		return fmt.Errorf("the user may not run: wait, which Replicas needs; docs/operations.md lists what is needed: %w", err)
	}
	if err == nil {
		c.acked.Store(true)
	}
	return nil
}

// mayHear waits until the inbox hears, for no longer than for an answer: a lock
// that is free does not depend on it.
func (c *Client) mayHear(w *waiting) error {
	limit := trust.Attempt(w.lock.terms.TTL)
	if by, bounded := w.ctx.Deadline(); bounded {
		limit = min(limit, time.Until(by)/2) // the rest is for the lock itself
	}
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	e := w.keeper.listener
	defer e.Join()()
	if err := e.Ready(ctx); err != nil && ctx.Err() == nil && !c.tracker.Draining() {
		return fmt.Errorf("%w (needed: %s, and the channel)", e.Subscribing(err), e.Needs())
	}
	return nil
}
