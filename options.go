package relock

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/label"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
)

const (
	defaultTTL            = 30 * time.Second
	minTTL                = 100 * time.Millisecond
	maxTTL                = 24 * time.Hour
	defaultReleaseTimeout = 5 * time.Second
	defaultTokenKeep      = 10 * time.Minute
)

// An Option sets up a Client.
type Option interface{ apply(*config) error }

// A LockOption sets up the locks of one handle, or with Defaults those of a client.
type LockOption interface{ applyLock(*terms) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

type lockOption func(*terms) error

func (o lockOption) applyLock(t *terms) error { return o(t) }

type config struct {
	terms          terms // of locks that say nothing else
	prefix         string
	releaseTimeout time.Duration
	tokenKeep      time.Duration
	log            *slog.Logger
	hooks          Hooks
	sharded        bool // waiters are woken over sharded pub/sub
	label          string
	whoHolds       bool // errors of waits that end say so
}

// terms are what a handle asks of Redis for each of its holds.
type terms struct {
	room.Terms
	owner string
	fair  bool // strict order of arrival
}

// An origin is where locks come from: the client that makes them, and of which kind.
type origin struct {
	c    *Client
	kind string
}

// A spec is what handles have in common that are made alike. It does not change,
// so one record serves any number of them.
type spec struct {
	origin
	terms     terms
	err       error // a bad name or option: what every call returns
	read      bool  // holds are shared with other readers, or of a semaphore
	anonymous bool  // every acquisition is of a new owner, whatever ctx says
}

// specs are the latest that each constructor has made: mostly those of the next
// handle as well.
type specs [4]atomic.Pointer[spec]

const (
	specLock = iota
	specWrite
	specRead
	specSemaphore
)

// shared returns s in a place where handles can share it.
func (c *Client) shared(at int, s spec) *spec {
	if s.err != nil {
		bad := s
		return &bad
	}
	last := c.specs[at].Load()
	if last != nil && *last == s {
		return last
	}
	own := s // only here, so that the usual case allocates nothing
	c.specs[at].Store(&own)
	return &own
}

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
	return c, fits(c.terms.Replicas, c.terms.TTL, 0)
}

// suits refuses what a redis client cannot be relied on for of which it is not
// known where it sends a command.
func (c config) suits(t *transport.Transport) error {
	if c.sharded && !t.Knows() {
		return unknownClient("ShardedPubSub") // channels of several servers would share a connection
	}
	return c.terms.suits(t)
}

// suits is asked for all terms, wherever they come from: a ticket's are of another redis client.
func (t terms) suits(tr *transport.Transport) error {
	if err := fits(t.Replicas, t.TTL, tr.ReadTimeout()); err != nil {
		return err
	}
	if t.Replicas.N > 0 && !tr.Knows() {
		return unknownClient("Replicas") // WAIT may go to another server than the script
	}
	return nil
}

// unknownClient is the error of an option that needs to know on which server a key is.
func unknownClient(option string) error {
	return fmt.Errorf("%w: %s with a redis client of a type that relock does not know; pass a *redis.Client or *redis.ClusterClient, or a decorator that embeds one of these and not redis.UniversalClient", ErrInvalidOption, option)
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

// between checks a duration. Redis counts in milliseconds, so a fraction of one
// is refused rather than rounded.
func between(what string, d, least, most time.Duration) error {
	if d < least || d > most || d%time.Millisecond != 0 {
		return fmt.Errorf("%w: %s of %v; allowed are whole milliseconds from %v to %v", ErrInvalidOption, what, d, least, most)
	}
	return nil
}

// Defaults sets options for every lock of the client that does not set them itself. Owner is not
// allowed: one owner for a whole process would switch exclusion off within it. Weight and AtLeast
// are not allowed, because they are not for every kind of lock.
func Defaults(opts ...LockOption) Option {
	return option(func(c *config) error {
		t, err := c.terms.with(opts)
		if err != nil {
			return err
		}
		if t.owner != "" {
			return fmt.Errorf("%w: Owner in Defaults; give it to the handle or use WithOwner", ErrInvalidOption)
		}
		if err := cmp.Or(t.weightless(), t.restless()); err != nil {
			return fmt.Errorf("%w; Defaults are of all kinds", err)
		}
		c.terms = t
		return nil
	})
}

// KeyPrefix sets the beginning of every key and channel name, by default "relock". Clients with
// different prefixes have different locks, and an access list by prefix keeps tenants apart. A
// prefix has 1 to 128 bytes of UTF-8 without control characters, braces and the characters of Redis
// patterns.
func KeyPrefix(prefix string) Option {
	return option(func(c *config) error {
		if err := key.CheckPrefix(prefix); err != nil {
			return fmt.Errorf("%w: key prefix: %w", ErrInvalidOption, err)
		}
		c.prefix = prefix
		return nil
	})
}

// ReleaseTimeout bounds how long Unlock tries before it returns ErrUnconfirmed. The default is 5 s,
// and the bounds are 1 ms and 1 h. The client goes on trying after that, until the lease ends.
func ReleaseTimeout(d time.Duration) Option {
	return option(func(c *config) error {
		c.releaseTimeout = d
		return between("release timeout", d, time.Millisecond, time.Hour)
	})
}

// TokenKeep sets how long a lock's token counter stays in Redis after the last holder's lease. The
// default is 10 min, and the bounds are 1 min and 24 h. The counter keeps tokens growing if the
// server's clock steps back by less than this. Each name that was used costs memory for that time.
func TokenKeep(d time.Duration) Option {
	return option(func(c *config) error {
		c.tokenKeep = d
		return between("token keep time", d, time.Minute, 24*time.Hour)
	})
}

// Logger receives what an operator may want to know: retries, lost holds, a goroutine that waits
// for itself. By default nothing is logged.
//
// The library calls the logger's handler on a goroutine of its own, so a handler that is slow or
// hangs delays no lock. The handler gets the records in order and one at a time, with the level and
// the context of the call. Up to 1,024 records wait for it. Later ones are dropped and counted in
// one warning. Records can come after the call that logged them has returned. Close waits for them
// for 100 ms at most. It cannot end a goroutine that is stuck in a handler.
func Logger(l *slog.Logger) Option {
	return option(func(c *config) error {
		if l == nil {
			return fmt.Errorf("%w: Logger is nil; leave it out to log nothing", ErrInvalidOption)
		}
		c.log = l
		return nil
	})
}

// ShardedPubSub wakes waiters over sharded pub/sub. In a Cluster a message then goes only to the
// server of the lock's slot, while plain pub/sub sends it to all servers. The client has a
// subscription for each lock, or hash tag, that it waits for, and one connection for those of a
// server. Clients with and without the option wake each other.
//
// Scripts then publish only in the slot of their keys. Some hosted servers allow no more than that:
// docs/servers.md lists them.
//
// It needs Redis 7.0, and permissions that docs/operations.md lists. A hold that ForceUnlock ends
// learns of it at its next renewal, unless its client waits for the same lock.
func ShardedPubSub() Option {
	return option(func(c *config) error {
		c.sharded = true
		return nil
	})
}

// WhoHolds makes errors of waits that ended without the lock say who holds it: owner, label, for
// how long, and when the lease ends. Such a call asks Redis once more, which takes a round trip,
// and at most 100 ms. TryLock, TryDo and Once do not ask when they return no error. Errors of a
// QuorumLock do not say it.
func WhoHolds() Option {
	return option(func(c *config) error {
		c.whoHolds = true
		return nil
	})
}

// Label sets a text that tells people which client this is. Info, Waiters and the command show it
// for what the client holds and waits for. It decides nothing, and two clients may have the same.
// By default it is the host's name and the process' ID, such as "web-1:4711". It has 1 to 128 bytes
// of UTF-8 without control characters. Everybody who may read the locks can read it.
//
// The client stores its label in Redis with its first request for a lock, and again from time to
// time while it is used. A lock does not cost more for it.
func Label(text string) Option {
	return option(func(c *config) error {
		if err := key.CheckLabel(text); err != nil {
			return fmt.Errorf("%w: Label: %w", ErrInvalidOption, err)
		}
		c.label = text
		return nil
	})
}

// TTL sets the lease of a hold: how long the lock stays taken if its process dies. The default is
// 30 s, and the bounds are 100 ms and 24 h. The watchdog renews the lease every third of the TTL. A
// short lease frees a dead holder's lock sooner, and is lost by a shorter pause or network fault.
func TTL(d time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		t.TTL = d
		return between("TTL", d, minTTL, maxTTL)
	})
}
