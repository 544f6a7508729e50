package relock

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/label"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// LocalReentry lets nested acquisitions of a named owner succeed without a command, if the owner holds the lock in this
// client. The outer hold must be of the same mode (read or write). Its trust must last for at least a third of the
// nested TTL. The TTL and the Replicas of the outer hold must be at least those of the nested hold. Neither may have
// NoWatchdog or MaxHold. Otherwise Redis is asked.
//
// Set the option on the nested handle; the outer handle does not need it. The nested call does not notice a loss in
// Redis of which the client has not heard.
//
// Redis counts only the outer holds, and so do Info and other processes. The lock is released in Redis when the last
// hold ends in this client, outer or nested, in any order. Calls without an owner are not changed.
func LocalReentry() LockOption {
	return lockOption(func(t *terms) error {
		t.Local = true
		return nil
	})
}

// Replicas makes each hold and each renewal count only after n replicas of the server have acknowledged it. A failover
// to one of these replicas does not grant the lock again while the hold is trusted. If too few replicas answer within
// timeout, the grant is undone, and the call returns ErrReplicas at once, TryLock too. (A QuorumLock goes on asking.) A
// renewal that too few acknowledge extends nothing. So the hold is lost when its last acknowledged lease ends.
//
// The holds of one owner share their renewals, so the largest n among them counts for all. If too few replicas answer,
// nested holds without Replicas can be lost too, and calls for them can return ErrReplicas.
//
// n is 1 to 16. timeout is 1 ms to 10 s, at most a quarter of the TTL, and less than the redis client's ReadTimeout.
// That is 5 s unless it is set. With other values, or a redis client whose type relock does not know, every call
// returns ErrInvalidOption. A failover to a replica that was not among the n, or that lost its data, can still lose the
// lock: see docs/guarantees.md.
func Replicas(n int, timeout time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		if n < 1 || n > maxReplicas {
			return fmt.Errorf("%w: Replicas of %d; allowed are 1 to %d", ErrInvalidOption, n, maxReplicas)
		}
		t.Terms.Replicas = room.Replicas{N: n, Timeout: timeout}
		return between("Replicas timeout", timeout, time.Millisecond, maxAckTime)
	})
}

const (
	maxReplicas = 16
	maxAckTime  = 10 * time.Second
	// ackShare bounds the timeout of Replicas to a quarter of the TTL. If replicas do not acknowledge a renewal in that
	// time, another renewal can still succeed before the trust ends.
	ackShare = 4
)

// terms are what a handle asks of Redis for each of its holds.
type terms struct {
	room.Terms
	owner string
	fair  bool // strict order of arrival
}

func (t terms) with(opts []LockOption) (terms, error) {
	for _, o := range opts {
		if o == nil {
			return t, fmt.Errorf("%w: a LockOption is nil; leave it out", ErrInvalidOption)
		}
		if err := o.applyLock(&t); err != nil {
			return t, err
		}
	}
	return t, nil
}

// suits checks Replicas against the TTL and the redis client. It is called for the terms of tickets too, because a
// ticket may come from a process with another redis client.
func (t terms) suits(tr *transport.Transport) error {
	switch within, readTimeout := t.Replicas.Timeout, tr.ReadTimeout; {
	case within > t.TTL/ackShare:
		return fmt.Errorf("%w: Replicas timeout of %v with a TTL of %v; it may be a quarter of the TTL at most", ErrInvalidOption, within, t.TTL)
	case readTimeout > 0 && within >= readTimeout:
		return fmt.Errorf("%w: Replicas timeout of %v; it must be less than the redis client's ReadTimeout of %v", ErrInvalidOption, within, readTimeout)
	case t.Replicas.N > 0 && !tr.Knows():
		return unknownClient("Replicas") // WAIT could go to another server than the script
	}
	return nil
}

// suitsKind refuses options that are not for this kind of lock, Fair or not. The kind "" is for Defaults: then an
// option must suit every kind. No handle can unset it, so every call on a lock of another kind would fail.
func (t terms) suitsKind(kind string) error {
	plain := kind == wire.KindPlain
	switch {
	case t.Permits.Weight > 0 && kind != wire.KindSemaphore:
		return fmt.Errorf("%w: Weight of %d; only a semaphore has permits, see NewSemaphore", ErrInvalidOption, t.Permits.Weight)
	case t.Rest.For > 0 && !plain:
		return fmt.Errorf("%w: AtLeast of %v is for locks of NewLock only", ErrInvalidOption, t.Rest.For)
	case t.Sticky == 0:
		return nil
	case !plain, t.OneToken:
		return fmt.Errorf("%w: Sticky of %v is for locks of NewLock only", ErrInvalidOption, t.Sticky)
	case t.Fixed:
		return fmt.Errorf("%w: Sticky with NoWatchdog; leave one of them out", ErrInvalidOption)
	case t.Rest.For > 0:
		return fmt.Errorf("%w: Sticky with AtLeast; leave one of them out", ErrInvalidOption)
	case t.Sticky > t.TTL/3:
		return fmt.Errorf("%w: Sticky of %v with a TTL of %v; it may be a third of the TTL at most", ErrInvalidOption, t.Sticky, t.TTL)
	}
	return nil
}

const (
	defaultTTL            = 30 * time.Second
	minTTL                = 100 * time.Millisecond
	maxTTL                = 24 * time.Hour
	defaultReleaseTimeout = 5 * time.Second
	defaultTokenKeep      = 10 * time.Minute
)

// An Option sets up a Client, as an argument of New. If one is given twice, the last counts, but several Defaults add
// up. New returns ErrInvalidOption if one is nil, out of its bounds, or a duration with a fraction of a millisecond.
type Option interface{ apply(*config) error }

// A LockOption sets up what one handle asks for, as an argument of NewLock or another constructor. In Defaults it is
// for all locks of a client. Durations are whole milliseconds: a fraction is refused. If an option is nil or out of its
// bounds, every call on the handle returns ErrInvalidOption. If it is in Defaults, New returns that error.
type LockOption interface{ applyLock(*terms) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

type lockOption func(*terms) error

func (o lockOption) applyLock(t *terms) error { return o(t) }

type config struct {
	terms          terms // of Defaults: the terms that every handle begins with
	prefix         string
	releaseTimeout time.Duration
	tokenKeep      time.Duration
	log            *slog.Logger
	hooks          Hooks
	sharded        bool // waiters are woken by sharded pub/sub
	label          string
	whoHolds       bool // the error of a wait that ended without the lock names the holder
}

// An origin is the client and the kind of a lock.
type origin struct {
	c    *Client
	kind string
}

// A spec is all that a handle asks for, except its name. It never changes, so handles that are made alike share one.
type spec struct {
	origin
	terms     terms
	err       error // a bad name or option; every call returns it
	read      bool  // a reading side or a semaphore: several owners may hold at once
	anonymous bool  // each acquisition has a new owner, whatever ctx says
}

// specs keeps the latest spec of each constructor: a handle that is made alike shares it.
type specs [4]atomic.Pointer[spec]

const (
	specLock = iota
	specWrite
	specRead
	specSemaphore
)

func newConfig(opts []Option) (config, error) {
	c := config{
		terms:          terms{Terms: room.Terms{TTL: defaultTTL}},
		prefix:         "relock",
		releaseTimeout: defaultReleaseTimeout,
		tokenKeep:      defaultTokenKeep,
		log:            slog.New(slog.DiscardHandler),
		label:          label.HostAndProcess(),
	}
	for _, o := range opts {
		if o == nil {
			return c, fmt.Errorf("%w: an Option is nil; leave it out", ErrInvalidOption)
		}
		if err := o.apply(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// suits refuses options that need a redis client of a known type, for which relock knows which server gets a command.
func (c config) suits(t *transport.Transport) error {
	if c.sharded && !t.Knows() {
		return unknownClient("ShardedPubSub") // channels of several servers would share one connection
	}
	return c.terms.suits(t)
}

// unknownClient returns the error of an option or call that must know which server has a key.
func unknownClient(option string) error {
	return fmt.Errorf("%w: %s with a redis client of a type that relock does not know; pass a *redis.Client or *redis.ClusterClient, or a decorator that embeds one of these and not redis.UniversalClient", ErrInvalidOption, option)
}

// between checks a duration. Redis counts in ms, so a fraction of a ms is refused rather than rounded.
func between(what string, d, least, most time.Duration) error {
	if d < least || d > most || d%time.Millisecond != 0 {
		return fmt.Errorf("%w: %s of %v; allowed are whole milliseconds from %v to %v", ErrInvalidOption, what, d, least, most)
	}
	return nil
}

// Defaults sets options for every lock of the client, of any kind. Several Defaults add up: the last of the same option
// counts. A handle's own option replaces the same one of the Defaults. But no handle can remove one: with Fair in
// Defaults, every lock is fair. New returns ErrInvalidOption if one is out of its bounds, or is Owner, Weight, AtLeast
// or Sticky. One owner for a process would end exclusion within it, and the others are not for every kind of lock.
func Defaults(opts ...LockOption) Option {
	return option(func(c *config) error {
		t, err := c.terms.with(opts)
		if err != nil {
			return err
		}
		if t.owner != "" {
			return fmt.Errorf("%w: Owner in Defaults; give it to the handle or use WithOwner", ErrInvalidOption)
		}
		if err := t.suitsKind(""); err != nil {
			return fmt.Errorf("%w; Defaults are of all kinds", err)
		}
		c.terms = t
		return nil
	})
}

// KeyPrefix sets the prefix of every key and channel in Redis. A colon follows it. The default is "relock". Clients
// with different prefixes do not share locks. Access lists for PREFIX:* keep tenants apart, unless one prefix begins
// with another prefix and a colon. A prefix has 1 to 128 bytes of UTF-8, no control character, and no {}*?[] or \.
func KeyPrefix(prefix string) Option {
	return option(func(c *config) error {
		if err := key.CheckPrefix(prefix); err != nil {
			return fmt.Errorf("%w: key prefix: %w", ErrInvalidOption, err)
		}
		c.prefix = prefix
		return nil
	})
}

// ReleaseTimeout bounds how long an Unlock, a Release or the end of a Do waits for Redis before it returns
// ErrUnconfirmed. The default is 5 s, and the bounds are 1 ms and 1 h. With ErrUnconfirmed the hold has ended for its
// caller, and the client goes on telling Redis until the lease ends. Detach and Downgrade are bounded by ctx alone.
func ReleaseTimeout(d time.Duration) Option {
	return option(func(c *config) error {
		c.releaseTimeout = d
		return between("release timeout", d, time.Millisecond, time.Hour)
	})
}

// TokenKeep sets how long a lock's token counter stays in Redis after the last hold was released or its lease ended.
// The default is 10 min, and the bounds are 1 min and 24 h. Tokens come from the server's clock. The counter keeps them
// growing if that clock steps back by less than this time. Each used name costs memory in Redis for as long.
func TokenKeep(d time.Duration) Option {
	return option(func(c *config) error {
		c.tokenKeep = d
		return between("token keep time", d, time.Minute, 24*time.Hour)
	})
}

// Logger sets the logger for what an operator may want to know: retries, lost holds, a goroutine that waits for itself.
// A loss is logged as an error, or as a warning if MaxHold or NoWatchdog ended the hold. Everything else is a warning.
// By default nothing is logged. With nil, New returns ErrInvalidOption.
//
// The library calls the logger's handler on a goroutine of its own, so a handler that is slow or hangs delays no lock.
// The handler gets the records in order and one at a time. Its context is always context.Background(). Up to 1,024
// records wait for it. Later ones are dropped and counted in one warning. Records can come after the call that logged
// them has returned. Close waits for them for 100 ms at most. It cannot end a goroutine that is stuck in a handler.
func Logger(l *slog.Logger) Option {
	return option(func(c *config) error {
		if l == nil {
			return fmt.Errorf("%w: Logger is nil; leave it out to log nothing", ErrInvalidOption)
		}
		c.log = l
		return nil
	})
}

// ShardedPubSub wakes waiters over sharded pub/sub. In a Cluster a message then goes only to the server of the lock's
// slot, while plain pub/sub sends it to all. The client has a subscription for each lock, or hash tag, that it waits
// for, and one connection to each server for them. Clients with and without the option wake each other if all their
// users may PUBLISH and SPUBLISH. If not, waiters notice an unlock by heartbeat, up to 10 s late.
//
// If all clients have the option, scripts publish only in the slot of their keys. Some hosted servers allow no more
// than that: docs/servers.md lists them. The option needs no newer server than relock itself, but the permissions that
// docs/operations.md lists. A client with the option notices a ForceUnlock at its hold's next renewal or end, or at
// once if it waits for the lock. New returns ErrInvalidOption if a decorator hides the redis client's type.
func ShardedPubSub() Option {
	return option(func(c *config) error {
		c.sharded = true
		return nil
	})
}

// WhoHolds makes the error of a wait that ended without the lock say who holds it: owner, label, for how long, and when
// the lease ends. For that the call asks Redis once more, which takes a round trip, and at most 100 ms. TryLock, TryDo
// and Once do not ask when they return no error. The option does not change the errors of a QuorumLock.
func WhoHolds() Option {
	return option(func(c *config) error {
		c.whoHolds = true
		return nil
	})
}

// Label sets a text that tells people which client this is. Info, Waiters and the relock command show it for what the
// client holds and waits for. No decision depends on it, and two clients may have the same. By default it is the host's
// name and the process' ID, such as "web-1:4711". It has 1 to 128 bytes of UTF-8 without control characters. Everybody
// who may read the locks can read it.
//
// The client stores its label in Redis with its first request for a lock, and again from time to time while it is used.
// A lock does not cost more for it.
func Label(text string) Option {
	return option(func(c *config) error {
		if err := key.CheckLabel(text); err != nil {
			return fmt.Errorf("%w: Label: %w", ErrInvalidOption, err)
		}
		c.label = text
		return nil
	})
}

// TTL sets the lease of a hold: how long the lock stays taken if its process dies. The default is 30 s, and the bounds
// are 100 ms and 24 h. The watchdog renews the lease every third of the TTL while the hold lasts, so the TTL need not
// cover the work. With any other d every call on the handle returns ErrInvalidOption. NoWatchdog and MaxHold prevent or
// end renewal. A short lease frees a dead holder's lock sooner, but a shorter pause or network fault loses the hold.
//
// A lease in Redis never gets shorter. If a process dies after a nested hold with a longer TTL, the lock stays taken
// for the rest of that TTL.
func TTL(d time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		t.TTL = d
		return between("TTL", d, minTTL, maxTTL)
	})
}
