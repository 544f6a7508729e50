// Package access checks, before a client acquires anything, that its user may run the scripts and receive their
// messages. A lock that could be acquired but not released must not be acquired. The check itself changes nothing.
package access

import (
	"cmp"
	"context"
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

// Redis is what a Checker needs of the transport. DoAcked sends WAIT after its calls.
type Redis interface {
	Do(ctx context.Context, timeout time.Duration, call transport.Call) ([]any, error)
	DoAcked(ctx context.Context, timeout time.Duration, replicas int, ackTime time.Duration, calls ...transport.Call) []transport.Result
}

// Config is what a checker needs.
type Config struct {
	Prefix   string // of the keys
	Client   string
	Database int // the database that the redis client selects
	Redis    Redis
	Wire     *wire.Encoder
	Open     context.Context // ends when Shutdown or Close begins; missing permissions do not matter then
	Granted  func()          // called once, when the user may run everything that scripts need
	// Hear calls publish, and waits until l hears the echo that it publishes.
	Hear func(ctx context.Context, l *listener.Listener, publish func() error) error
}

// A Checker repeats its check until Redis has answered once and refused nothing.
type Checker struct {
	cfg  Config
	runs atomic.Bool // the user may run everything that scripts need
	acks atomic.Bool // and WAIT, which replicas need
}

// New returns a checker. It does no I/O.
func New(cfg Config) *Checker { return &Checker{cfg: cfg} }

// Assume skips the checks, for tests in virtual time.
func (c *Checker) Assume() {
	c.runs.Store(true)
	c.acks.Store(true)
}

// A refusal is an error that names what the server or the user lacks. transport.Classify returns Refused for it.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError makes a refusal a redis.Error.
func (refusal) RedisError() {}

// Run returns an error if the user may not run what scripts need for the lock with this hash, or not receive messages
// through l. If Redis does not answer, Run returns nil: the request that follows reports that. Run waits for an answer
// as long as a request of a lock with this ttl does.
func (c *Checker) Run(ctx context.Context, hash string, l *listener.Listener, ttl time.Duration) error {
	if c.runs.Load() {
		return nil
	}
	if err := c.ask(ctx, trust.Attempt(ttl), hash, l, true); err != nil {
		if refused(err) {
			return err
		}
		return nil
	}
	if err := c.awaitSubscribed(ctx, l, ttl); err != nil {
		return err
	}
	c.granted()
	return nil
}

// Probe checks at every call what Run checks, and waits until l hears a message that the client has sent to itself. It
// also returns an error if Redis does not answer or l hears nothing. l must be joined. limit bounds each step.
func (c *Checker) Probe(ctx context.Context, limit time.Duration, hash string, l *listener.Listener) error {
	if !c.runs.Load() || !l.Up() { // first, so that Probe returns the error of a dead server, and not of the subscription
		if err := c.ask(ctx, limit, hash, l, true); err != nil {
			return err
		}
	}
	if err := c.subscribed(ctx, limit, l); err != nil {
		return err
	}
	if err := c.cfg.Hear(ctx, l, func() error { return c.ask(ctx, limit, hash, l, false) }); err != nil {
		return err
	}
	c.granted()
	return nil
}

func (c *Checker) granted() {
	if !c.runs.Swap(true) {
		c.cfg.Granted()
	}
}

// ask runs the script that checks permissions, and returns an error if anything is refused. The script also publishes
// an echo to l, for which only Probe waits. With inFull it is sent by EVAL, otherwise by EVALSHA. Users need both, but
// Run only checks EVAL.
func (c *Checker) ask(ctx context.Context, limit time.Duration, hash string, l *listener.Listener, inFull bool) error {
	keys, inbox := key.Of(c.cfg.Prefix, hash), key.Inbox(c.cfg.Prefix, c.cfg.Client)
	if l.Sharded() {
		inbox = ""
	}
	raw, err := c.cfg.Redis.Do(ctx, limit, c.cfg.Wire.Permit(keys, inbox, key.ShardInbox(c.cfg.Prefix, hash, c.cfg.Client), inFull))
	if err != nil {
		if refused(err) {
			return hinted(err, c.needs(keys))
		}
		return err
	}
	switch lacks := wire.DecodePermit(raw); {
	case lacks.Old:
		return refusal("Redis 7.0 or Valkey is needed, this is " + cmp.Or(lacks.Version, "older"))
	case lacks.Sharded != "" && len(lacks.Refused) == 1:
		return refusal(fmt.Sprintf("a script may not publish to the channel %s (PUBLISH: %s), but it may SPUBLISH in the slot of its keys: use the option ShardedPubSub", inbox, lacks.Sharded))
	case len(lacks.Refused) > 0:
		return refusal(fmt.Sprintf("the user may not run, or the server lacks: %s; docs/operations.md lists what is needed", strings.Join(lacks.Refused, ", ")))
	}
	return nil
}

func (c *Checker) subscribed(ctx context.Context, limit time.Duration, l *listener.Listener) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := l.Ready(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return l.Subscribing(l.Down())
	}
	return unheard(l, err)
}

// unheard is the error of a subscription that is refused.
func unheard(l *listener.Listener, err error) error {
	return hinted(l.Subscribing(err), "needed: "+l.Needs()+", and the channel")
}

// needs says which permissions a script needs to run at all.
func (c *Checker) needs(keys key.Keys) string {
	needs := fmt.Sprintf("needed: eval, evalsha, and the keys %s and %s", keys.Hash, keys.Queue)
	if c.cfg.Database != 0 {
		needs += fmt.Sprintf("; and SELECT of database %d, which many hosters refuse: with database 0, KeyPrefix keeps applications apart", c.cfg.Database)
	}
	return needs
}

// hinted adds to a refusal what to do: permit what is needed, or check the credentials if Redis refused those.
func hinted(err error, needs string) error {
	for _, of := range []string{"WRONGPASS", "NOAUTH", "DENIED", "ERR AUTH ", "ERR Client sent AUTH"} {
		if strings.Contains(err.Error(), of) {
			needs = "check the user and the password of the redis client"
		}
	}
	return fmt.Errorf("%w (%s)", err, needs)
}

// awaitSubscribed waits for the subscription, but no longer than for one answer, because a free lock can be taken
// without it. It returns an error only if the subscription is refused.
func (c *Checker) awaitSubscribed(ctx context.Context, l *listener.Listener, ttl time.Duration) error {
	limit := trust.Attempt(ttl)
	if by, bounded := ctx.Deadline(); bounded {
		limit = min(limit, time.Until(by)/2) // the rest of the time is for the lock itself
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer l.Join()()
	if err := l.Ready(ctx); err != nil && ctx.Err() == nil && c.cfg.Open.Err() == nil {
		return unheard(l, err)
	}
	return nil
}

// Wait checks that the user may run WAIT, which replicas need. Scripts cannot run WAIT, so no script can check it.
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

// refused reports whether err is a refusal: asking again would give the same error.
func refused(err error) bool { return transport.Classify(err) == transport.Refused }
