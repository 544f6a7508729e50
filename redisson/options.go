package redisson

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/relock-go/relock"
)

// An Option sets up a Client, as an argument of New. If one is given twice, the last counts, but several Defaults add
// up. New returns relock.ErrInvalidOption if one is nil or out of its bounds. Durations are whole milliseconds: a
// fraction is refused.
type Option func(*config) error

// A LockOption sets up what one handle asks for, as an argument of NewLock or NewRWLock. In Defaults, an option of New,
// it is for all locks of a client. Durations are whole milliseconds: a fraction is refused. If an option is nil or out
// of its bounds, every call on the handle returns relock.ErrInvalidOption. In Defaults it makes New return that.
type LockOption func(*terms) error

type config struct {
	terms          terms // defaults of the client's locks
	releaseTimeout time.Duration
	fairWait       time.Duration
	readLease      time.Duration // the longest lease of a read hold
	sharded        *bool         // nil: decided as Redisson does
}

// terms are what a handle asks for each of its holds.
type terms struct {
	ttl     time.Duration
	fixed   bool // never renewed
	maxHold time.Duration
	owner   string
	fair    bool
	fenced  bool
}

func newConfig(opts []Option) (config, error) {
	c := config{
		terms:          terms{ttl: 30 * time.Second},
		releaseTimeout: 5 * time.Second,
		fairWait:       5 * time.Minute,
		readLease:      30 * time.Second,
	}
	for _, o := range opts {
		if o == nil {
			return c, fmt.Errorf("%w: an Option is nil; leave it out", relock.ErrInvalidOption)
		}
		if err := o(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (t terms) with(opts []LockOption) (terms, error) {
	for _, o := range opts {
		if o == nil {
			return t, fmt.Errorf("%w: a LockOption is nil; leave it out", relock.ErrInvalidOption)
		}
		if err := o(&t); err != nil {
			return t, err
		}
	}
	if t.fair && t.fenced {
		return t, fmt.Errorf("%w: Fair and Fenced: Redisson has no fair lock with tokens; choose one", relock.ErrInvalidOption)
	}
	return t, nil
}

// toRead returns the terms of a read hold. A reader in Java may shorten its lease to most at any time.
func (t terms) toRead(most time.Duration) (terms, error) {
	if t.fixed && t.ttl > most {
		return t, fmt.Errorf("%w: a read lease of %v with NoWatchdog: readers in Java cut it to their lockWatchdogTimeout, which is taken to be %v; ask for no more, leave NoWatchdog out, or tell New their WatchdogTimeout", relock.ErrInvalidOption, t.ttl, most)
	}
	t.ttl = min(t.ttl, most)
	return t, nil
}

// between checks a duration. Redis counts in ms, so a fraction of a ms is refused rather than rounded.
func between(what string, d, least, most time.Duration) error {
	if d < least || d > most || d%time.Millisecond != 0 {
		return fmt.Errorf("%w: %s of %v; allowed are whole milliseconds from %v to %v", relock.ErrInvalidOption, what, d, least, most)
	}
	return nil
}

// Defaults sets options for every lock of the client. Several Defaults add up. An option of a handle replaces the same
// one of Defaults, but a handle cannot remove one. With Owner, New returns ErrInvalidOption: one owner for a whole
// process would switch exclusion off within it. With Fair or Fenced, every call on a read/write lock of the client
// returns ErrInvalidOption.
func Defaults(opts ...LockOption) Option {
	return func(c *config) error {
		t, err := c.terms.with(opts)
		if err != nil {
			return err
		}
		if t.owner != "" {
			return fmt.Errorf("%w: Owner in Defaults; give it to the handle or use relock.WithOwner", relock.ErrInvalidOption)
		}
		c.terms = t
		return nil
	}
}

// ReleaseTimeout bounds how long an Unlock, a Release or the end of a Do waits for Redis before it returns
// ErrUnconfirmed. The default is 5 s, and the bounds are 1 ms and 1 h. The client goes on telling Redis after that,
// until the lease ends.
func ReleaseTimeout(d time.Duration) Option {
	return func(c *config) error {
		c.releaseTimeout = d
		return between("release timeout", d, time.Millisecond, time.Hour)
	}
}

// FairWait sets how long a waiter at the head of a fair lock's queue may be silent. After that it counts as dead, and
// is passed over. A waiter in Go asks again at least every 10 s, or every third of FairWait if that is shorter. A
// request that is lost is only sent again 2 s later. So with a FairWait of some seconds it may cost the place. A grant
// to a waiter in Java may take that time away from those behind it: they may be passed over before they ask again, and
// come last. The default is five minutes. It is the fairLockWaitTimeout of Redisson's config, and must be the same
// there. With less than a second, or more than a day, New returns ErrInvalidOption.
func FairWait(d time.Duration) Option {
	return func(c *config) error {
		c.fairWait = d
		return between("FairWait", d, time.Second, 24*time.Hour)
	}
}

// WatchdogTimeout tells the client the lockWatchdogTimeout of Redisson's config. The default is 30 s, as there, and the
// bounds are 100 ms and 24 h. If Java's processes differ, it must be the shortest of theirs. It bounds the lease of
// read holds. A reader in Java that renews its own lease cuts that of all readers to this time, and may then die. Locks
// of other kinds have the lease of their TTL.
func WatchdogTimeout(d time.Duration) Option {
	return func(c *config) error {
		c.readLease = d
		return between("WatchdogTimeout", d, 100*time.Millisecond, 24*time.Hour)
	}
}

// ShardedPubSub sets whether unlocks are published with sharded pub/sub. By default it is on in a Cluster whose servers
// have it (Redis 7), as in Redisson. It is the shardedSubscriptionMode of Redisson's config, and must be the same
// there. Otherwise clients do not hear each other's unlocks, and waiters notice them up to 10 s late, in Java up to a
// lease. With true it needs Redis 7.0 or later. A decorator of a Cluster client must embed the *redis.ClusterClient. If
// it hides that, the default is off, and with true some waiters hear no unlocks.
func ShardedPubSub(on bool) Option {
	return func(c *config) error {
		c.sharded = &on
		return nil
	}
}

// Fair makes the lock a fair one, Redisson's getFairLock, which is granted in order of arrival. A dead waiter at the
// head of the queue holds up the others until its deadline, which FairWait sets. All handles of a name must be fair, in
// Go and in Java: a plain or fenced one overtakes the queue, without an error. A fair lock has no tokens: Fair and
// Fenced together are ErrInvalidOption, and so is Fair of a read/write lock.
func Fair() LockOption {
	return func(t *terms) error {
		t.fair = true
		return nil
	}
}

// Fenced makes the lock a fenced one, Redisson's getFencedLock: its holds have tokens, which grow from grant to grant.
// Use it for all handles of a name, in Go and in Java: see NewLock. With Fair, and for a read/write lock, every call on
// the handle returns ErrInvalidOption.
func Fenced() LockOption {
	return func(t *terms) error {
		t.fenced = true
		return nil
	}
}

// Owner names the owner of all holds of the handle. Calls through it re-enter what the same owner holds in this client,
// but not what it holds in another one. Goroutines that share such a handle do not exclude each other: relock.WithOwner
// is usually the better way. id has 1 to 512 bytes of UTF-8, and must not contain "~.". With any other id every call on
// the handle returns ErrInvalidOption. A context that names another owner gets ErrOwnerMismatch.
func Owner(id string) LockOption {
	return func(t *terms) error {
		t.owner = id
		return checkOwner(id)
	}
}

// branchMark is in the names that relock.WithChildOwner makes, and in no other that relock takes.
const branchMark = "~."

func checkOwner(id string) error {
	if strings.Contains(id, branchMark) {
		return fmt.Errorf("%w: owner %q: Redisson has no child owners, and %q stands in their names only; pass a context with the owner of the flow",
			relock.ErrInvalidOption, id, branchMark)
	}
	if id == "" || len(id) > maxName || !utf8.ValidString(id) {
		return fmt.Errorf("%w: an owner has 1 to %d bytes of UTF-8, this one has %d bytes", relock.ErrInvalidOption, maxName, len(id))
	}
	return nil
}

// TTL sets the lease of a hold: how long the lock stays taken if its process dies. A nested hold with a longer TTL
// makes the lease longer, and its unlock does not cut that. The default is 30 s, as Redisson's lockWatchdogTimeout, and
// the bounds are 100 ms and 24 h. With any other d, every call on the handle returns ErrInvalidOption. The watchdog
// renews the lease every third of the TTL. NoWatchdog and MaxHold prevent or end renewal. The lease of a read hold is
// the WatchdogTimeout if that is shorter. With NoWatchdog such a read hold is refused with ErrInvalidOption.
func TTL(d time.Duration) LockOption {
	return func(t *terms) error {
		t.ttl = d
		return between("TTL", d, 100*time.Millisecond, 24*time.Hour)
	}
}

// NoWatchdog switches renewal off, as Redisson's lock(leaseTime): a hold is lost after its TTL unless it was released
// before. If its owner has other holds, the lock then stays with the owner, but this hold is lost all the same. On a
// read/write lock, a TTL above WatchdogTimeout makes every reading call return ErrInvalidOption.
func NoWatchdog() LockOption {
	return func(t *terms) error {
		t.fixed = true
		return nil
	}
}

// MaxHold ends renewal d after the hold was acquired, so that a holder that hangs but lives gives way. Its hold is lost
// when the last lease ends, at most a TTL after d. If its owner has other holds, the lock then stays with the owner. By
// default there is no limit. d is from 1 ms to 10 years.
func MaxHold(d time.Duration) LockOption {
	return func(t *terms) error {
		t.maxHold = d
		return between("MaxHold", d, time.Millisecond, 10*365*24*time.Hour)
	}
}
