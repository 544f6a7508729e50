package endings_test

import (
	"context"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/redisson"
)

// A locker is what every kind of lock can do.
type locker interface {
	relock.Locker
	Do(ctx context.Context, fn func(ctx context.Context) error) error
}

// A tryDoer also has TryDo, which redisson has not.
type tryDoer interface {
	TryDo(ctx context.Context, wait time.Duration, fn func(ctx context.Context) error) (bool, error)
}

// A party is one process: a client of each library, over links of its own.
type party struct {
	core     *relock.Client
	quorum   *relock.Quorum
	redisson *redisson.Client
	clients  []*relock.Client
}

// primaries is how many servers a Quorum has. The first one is also the server of all other kinds.
const primaries = 3

func newParty(t *testing.T, servers []*redistest.RealServer, rtt time.Duration) *party {
	t.Helper()
	p := &party{}
	for _, srv := range servers {
		p.clients = append(p.clients, rig.Open(t, srv.Client(t, over(t, srv, rtt))))
	}
	p.core = p.clients[0]
	var err error
	if len(servers) > 1 {
		p.quorum, err = relock.NewQuorum(p.clients...)
		rig.Must(t, err)
	}
	p.redisson, err = redisson.New(servers[0].Client(t, over(t, servers[0], rtt)))
	rig.Must(t, err)
	t.Cleanup(func() { _ = p.redisson.Close() })
	return p
}

// A kind makes handles: on the side that holds first, and on the side that waits behind it.
type kind struct {
	name  string
	locks func(p *party, name string) (holds, waits locker)
}

// one is a kind whose two sides are alike.
func one[L locker](name string, of func(p *party, name string) L) kind {
	return kind{name: name, locks: func(p *party, name string) (locker, locker) { return of(p, name), of(p, name) }}
}

var kinds = []kind{
	one("plain", func(p *party, name string) *relock.Lock { return p.core.NewLock(name) }),
	one("fair", func(p *party, name string) *relock.Lock { return p.core.NewLock(name, relock.Fair()) }),
	one("write", func(p *party, name string) *relock.Lock { return p.core.NewRWLock(name).WLocker() }),
	{name: "read", locks: func(p *party, name string) (locker, locker) {
		return p.core.NewRWLock(name).WLocker(), p.core.NewRWLock(name).RLocker()
	}},
	one("semaphore", func(p *party, name string) *relock.Lock {
		return p.core.NewSemaphore(name, 2, relock.Weight(2))
	}),
	one("local reentry", func(p *party, name string) *relock.Lock { return p.core.NewLock(name, relock.LocalReentry()) }),
	one("multi", func(p *party, name string) *relock.Multi {
		return relock.NewMulti(p.core.NewLock(name), p.core.NewLock(name+" too", relock.Fair()))
	}),
	one("quorum", func(p *party, name string) *relock.QuorumLock { return p.quorum.NewLock(name) }),
	one("redisson", func(p *party, name string) *redisson.Lock { return p.redisson.NewLock(name) }),
	one("redisson fair", func(p *party, name string) *redisson.Lock { return p.redisson.NewLock(name, redisson.Fair()) }),
}

// A call waits for the lock until ctx ends or, where it takes a wait, for so long. It reports
// whether it had the lock, which it has given back by then.
type call struct {
	name string
	by   func(ctx context.Context, l locker, wait time.Duration) (had bool, err error)
}

// ages is a wait that does not end first.
const ages = time.Hour

var calls = []call{
	{"Lock", func(ctx context.Context, l locker, _ time.Duration) (bool, error) {
		if err := l.Lock(ctx); err != nil {
			return false, err
		}
		return true, l.Unlock()
	}},
	{"TryLock", func(ctx context.Context, l locker, wait time.Duration) (bool, error) {
		had, err := l.TryLock(ctx, wait)
		if had {
			err = l.Unlock()
		}
		return had, err
	}},
	{"Do", func(ctx context.Context, l locker, _ time.Duration) (had bool, err error) {
		err = l.Do(ctx, func(context.Context) error { had = true; return nil })
		return had, err
	}},
	{"TryDo", func(ctx context.Context, l locker, wait time.Duration) (had bool, err error) {
		d, is := l.(tryDoer)
		if !is {
			had, err = l.TryLock(ctx, wait)
			if had {
				err = l.Unlock()
			}
			return had, err
		}
		_, err = d.TryDo(ctx, wait, func(context.Context) error { had = true; return nil })
		return had, err
	}},
}
