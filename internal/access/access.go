// Package access asks, before a client takes anything, whether its user may run what the
// scripts need and hear what they tell: what could be taken and not be given back is not
// taken. It takes nothing itself.
package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/listener"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// Redis is asked once for each call.
type Redis interface {
	Do(ctx context.Context, timeout time.Duration, call transport.Call) ([]any, error)
	DoAcked(ctx context.Context, timeout time.Duration, replicas int, ackTime time.Duration, calls ...transport.Call) []transport.Acked
}

// Config is who asks.
type Config struct {
	Prefix   string // of the keys
	Client   string
	Database int // that the redis client selects
	Redis    Redis
	Wire     *wire.Encoder
	Open     context.Context // ends when the client does: then nothing that is lacking matters
	Granted  func()          // called once: the user may run all that scripts need
}

// A Checker asks until it has been answered once.
type Checker struct {
	cfg  Config
	runs atomic.Bool // the user may run all that scripts need
	acks atomic.Bool // and WAIT, which replicas need
}

// New returns a checker that has asked nothing.
func New(cfg Config) *Checker { return &Checker{cfg: cfg} }

// Assume takes for granted what is checked here.
func (c *Checker) Assume() {
	c.runs.Store(true)
	c.acks.Store(true)
}

// errNotSharded is the error of servers before sharded pub/sub.
var errNotSharded = errors.New("the server has no sharded pub/sub: ShardedPubSub needs Redis 7.0 or later")

// Run asks whether the user may run what the scripts need for the lock that has the hash,
// and hear of it by l. An error says what is refused. Where Redis does not answer, the
// call that follows will find out.
func (c *Checker) Run(ctx context.Context, hash string, l *listener.Listener, ttl time.Duration) error {
	if c.runs.Load() {
		return nil
	}
	keys, inbox := key.Of(c.cfg.Prefix, hash), key.Inbox(c.cfg.Prefix, c.cfg.Client)
	if l.Sharded() {
		inbox = ""
	}
	raw, err := c.cfg.Redis.Do(ctx, trust.Attempt(ttl), c.cfg.Wire.Permit(keys, inbox, key.ShardInbox(c.cfg.Prefix, hash, c.cfg.Client)))
	if err != nil {
		if refused(err) {
			return hinted(err, c.needs(keys))
		}
		return nil
	}
	switch lacks := wire.DecodePermit(raw); {
	case lacks.Unsharded:
		return errNotSharded
	case lacks.Old:
		return tooOld(lacks.Version)
	case lacks.Sharded != "" && len(lacks.Refused) == 1:
		return fmt.Errorf("a script may not publish to the channel %s (PUBLISH: %s), but it may SPUBLISH in the slot of its keys: use the option ShardedPubSub", inbox, lacks.Sharded)
	case len(lacks.Refused) > 0:
		return fmt.Errorf("the user may not run, or the server lacks: %s; docs/operations.md lists what is needed", strings.Join(lacks.Refused, ", "))
	}
	if err := c.hear(ctx, l, ttl); err != nil {
		return err
	}
	if !c.runs.Swap(true) {
		c.cfg.Granted()
	}
	return nil
}

// needs is what has to be granted for a script to run at all.
func (c *Checker) needs(keys key.Keys) string {
	needs := fmt.Sprintf("needed: eval, evalsha, and the keys %s and %s", keys.Hash, keys.Queue)
	if c.cfg.Database != 0 {
		needs += fmt.Sprintf("; and SELECT of database %d, which many hosters refuse: with database 0, KeyPrefix keeps applications apart", c.cfg.Database)
	}
	return needs
}

// hinted adds to a refusal what the user must be permitted, unless Redis refused the credentials.
func hinted(err error, needs string) error {
	for _, of := range []string{"WRONGPASS", "NOAUTH", "DENIED", "ERR AUTH ", "ERR Client sent AUTH"} {
		if strings.Contains(err.Error(), of) {
			needs = "check the user and the password of the redis client"
		}
	}
	return fmt.Errorf("%w (%s)", err, needs)
}

// tooOld is the error of a server before Redis 7.0, of that version if it says so.
func tooOld(version string) error {
	if version == "" {
		version = "older"
	}
	return fmt.Errorf("Redis 7.0 or Valkey is needed, this is %s", version)
}

// hear waits until the listener hears, for no longer than for an answer: a lock
// that is free does not depend on it.
func (c *Checker) hear(ctx context.Context, l *listener.Listener, ttl time.Duration) error {
	limit := trust.Attempt(ttl)
	if by, bounded := ctx.Deadline(); bounded {
		limit = min(limit, time.Until(by)/2) // the rest is for the lock itself
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer l.Join()()
	if err := l.Ready(ctx); err != nil && ctx.Err() == nil && c.cfg.Open.Err() == nil {
		return hinted(l.Subscribing(err), "needed: "+l.Needs()+", and the channel")
	}
	return nil
}

// Wait asks whether the user may run WAIT, which replicas need: scripts may not run it,
// so none can say whether the user may.
func (c *Checker) Wait(ctx context.Context, hash string, ttl time.Duration) error {
	if c.acks.Load() {
		return nil
	}
	call := c.cfg.Wire.Where(key.Of(c.cfg.Prefix, hash))
	err := c.cfg.Redis.DoAcked(ctx, trust.Attempt(ttl), 0, time.Millisecond, call)[0].Err
	if err != nil && refused(err) {
		return fmt.Errorf("the user may not run: wait, which Replicas needs; docs/operations.md lists what is needed: %w", err)
	}
	if err == nil {
		c.acks.Store(true)
	}
	return nil
}

// refused says that Redis answered with an error that is not a passing one.
func refused(err error) bool { return transport.Classify(err) == transport.Refused }
