package relock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// permit asks what the call needs, of that what has not been answered yet.
func (c *Client) permit(w *waiting, keys key.Keys) error {
	if err := c.mayRun(w, keys); err != nil {
		return err
	}
	return c.mayWait(w, keys)
}

// mayRun asks, until it has been answered once, whether the user may run what the
// scripts need: a lock that could be taken and not be given back is not taken. An
// error says what is refused. Where Redis does not answer, the call that follows
// will find out.
func (c *Client) mayRun(w *waiting, keys key.Keys) error {
	if c.permitted.Load() {
		return nil
	}
	shard := ""
	if c.shards != nil {
		shard = w.keeper.ear.channel
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
	return nil
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
func (c *Client) mayWait(w *waiting, keys key.Keys) error {
	if w.lock.terms.Replicas.N == 0 || c.acked.Load() {
		return nil
	}
	err := c.transport.DoAcked(w.ctx, trust.Attempt(w.lock.terms.TTL), 0, time.Millisecond, c.wire.Where(keys))[0].Err
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
	e := w.keeper.ear
	defer e.join()()
	if err := e.Ready(ctx); err != nil && ctx.Err() == nil && !c.isClosing() {
		return fmt.Errorf("%w (needed: %s, and the channel)", e.subscribing(err), e.needs())
	}
	return nil
}
