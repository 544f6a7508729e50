package deploy_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// deployments start a deployment each, and return what makes a client of it, as
// an application of its own would have it.
var deployments = map[string]func(t *testing.T) func() redis.UniversalClient{
	"standalone": func(t *testing.T) func() redis.UniversalClient {
		srv := redistest.Real(t)
		return func() redis.UniversalClient { return srv.Client(t) }
	},
	"sentinel": func(t *testing.T) func() redis.UniversalClient {
		s := redistest.StartSentinel(t)
		return func() redis.UniversalClient { return s.Client(t) }
	},
	"cluster": func(t *testing.T) func() redis.UniversalClient {
		c := redistest.StartCluster(t)
		return func() redis.UniversalClient { return c.Client(t) }
	},
	"cluster, least permissions": func(t *testing.T) func() redis.UniversalClient {
		c := redistest.StartCluster(t)
		// A user is of one node: a cluster does not hand it on.
		rig.Must(t, c.Client(t).ForEachShard(t.Context(), func(_ context.Context, node *redis.Client) error {
			rig.Permit(t, node, rig.Documented(t, rig.ClusterLine))
			return nil
		}))
		return func() redis.UniversalClient {
			return c.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "cluster", "secret" })
		}
	},
	"tls with client certificates": func(t *testing.T) func() redis.UniversalClient {
		srv := redistest.StartTLS(t)
		return func() redis.UniversalClient { return srv.Client(t) }
	},
	"least permissions": func(t *testing.T) func() redis.UniversalClient {
		srv := redistest.Real(t)
		rig.Permit(t, srv.Client(t), rig.DocumentedACL(t))
		return func() redis.UniversalClient {
			return srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "secret" })
		}
	},
}

// promptly is well under the ten seconds after which a waiter would ask by
// itself: who holds by then was woken.
const promptly = 5 * time.Second

// deployed is one case of the suite: two applications on one deployment.
type deployed struct {
	*testing.T
	ctx  context.Context
	a, b *relock.Client
	rdb  func() redis.UniversalClient
	opts []relock.Option // of further clients
	name string          // of the case's lock
}

// suite is what a lock does on every deployment.
var suite = map[string]func(d *deployed){
	"a waiter is woken and holds":         (*deployed).handOff,
	"fair waiters hold in their order":    (*deployed).fairOrder,
	"readers share and a writer waits":    (*deployed).readersAndWriter,
	"a hold is renewed":                   (*deployed).renewal,
	"a removed hold is told":              (*deployed).loss,
	"a dead waiter delays for one lease":  (*deployed).deadWaiter,
	"a dead holder's lock goes to others": (*deployed).deadHolder,
	"locks are listed, with labels":       (*deployed).listing,
	"who is signalled holds":              (*deployed).signalled,
	"a signal is not for the dead":        (*deployed).deadOnCondition,
	"permits go to who waits":             (*deployed).permits,
	"permits of the dead come back":       (*deployed).deadPermits,
	"a ticket is resumed elsewhere":       (*deployed).handOver,
	"it is fit for locks":                 (*deployed).check,
}

func TestLockOnEveryDeployment(t *testing.T) {
	t.Parallel()
	for name, deploy := range deployments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := deploy(t)
			a, b := rig.Open(t, rdb()), rig.Open(t, rdb())
			for what, do := range suite {
				for _, lock := range []string{"job: " + what, "{tenant}: " + what} {
					t.Run(lock, func(t *testing.T) {
						t.Parallel()
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						defer cancel()
						do(&deployed{T: t, ctx: ctx, a: a, b: b, rdb: rdb, name: lock})
					})
				}
			}
		})
	}
}

// soonHolds fails unless the call succeeds before a waiter would ask by itself.
func (d *deployed) soonHolds(g rig.Going) {
	d.Helper()
	late := time.NewTimer(promptly)
	defer late.Stop()
	select {
	case err := <-g:
		rig.Must(d, err)
	case <-late.C:
		d.Fatal("not woken")
	}
}

func (d *deployed) handOff() {
	first, second := d.a.NewLock(d.name), d.b.NewLock(d.name)
	token := int64(0)
	for range 3 {
		rig.Must(d, first.Lock(d.ctx))
		rig.WantLater(d, token, first.Token())
		waits := rig.Beside(func() error { return second.Lock(d.ctx) })
		rig.Queued(d, first, 1)
		token = first.Token()
		rig.Must(d, first.Unlock())
		d.soonHolds(waits)
		rig.WantLater(d, token, second.Token())
		token = second.Token()
		if ok, err := first.TryLock(d.ctx, 0); ok || err != nil {
			d.Errorf("TryLock beside a holder = %v, %v", ok, err)
		}
		rig.Must(d, second.Unlock())
	}
}

func (d *deployed) fairOrder() {
	holder := d.a.NewLock(d.name, relock.Fair())
	rig.Must(d, holder.Lock(d.ctx))
	const waiters = 4
	order := make(chan int, waiters)
	var calls []rig.Going
	for i := range waiters {
		client := []*relock.Client{d.b, d.a}[i%2]
		l := client.NewLock(d.name, relock.Fair())
		calls = append(calls, rig.Beside(func() error {
			err := l.Lock(d.ctx)
			order <- i
			return errors.Join(err, l.Unlock())
		}))
		rig.Queued(d, holder, i+1)
	}
	rig.Must(d, holder.Unlock())
	for i, call := range calls {
		d.soonHolds(call)
		if got := <-order; got != i {
			d.Errorf("waiter %d holds, want %d", got, i)
		}
	}
}

func (d *deployed) readersAndWriter() {
	a, b := d.a.NewRWLock(d.name), d.b.NewRWLock(d.name)
	rig.Must(d, a.RLock(d.ctx))
	rig.Must(d, b.RLock(d.ctx))
	writes := rig.Beside(func() error { return b.Lock(d.ctx) })
	rig.Queued(d, a.WLocker(), 1)
	rig.Must(d, a.RUnlock())
	rig.Must(d, b.RUnlock())
	d.soonHolds(writes)
	reads := rig.Beside(func() error { return a.RLock(d.ctx) })
	rig.Queued(d, a.WLocker(), 1)
	rig.Must(d, b.Downgrade(d.ctx))
	d.soonHolds(reads)
	rig.Must(d, a.RUnlock())
	rig.Must(d, b.RUnlock())
}

func (d *deployed) renewal() {
	const ttl = 2 * time.Second // on a busy machine a second has been too short for three tries
	h := rig.MustAcquire(d, d.a.NewLock(d.name, relock.TTL(ttl)))
	if ok, err := d.b.NewLock(d.name, relock.TTL(ttl)).TryLock(d.ctx, 2*ttl); ok || err != nil {
		d.Errorf("TryLock for two leases = %v, %v", ok, err)
	}
	rig.Must(d, h.Err())
	rig.Must(d, h.Release())
}

func (d *deployed) loss() {
	h := rig.MustAcquire(d, d.a.NewLock(d.name))
	if removed, err := d.b.NewLock(d.name).ForceUnlock(d.ctx); !removed || err != nil {
		d.Fatalf("ForceUnlock = %v, %v", removed, err)
	}
	d.soonHolds(rig.Beside(func() error { <-h.Lost(); return nil }))
	if err := h.Release(); !errors.Is(err, relock.ErrLost) {
		d.Errorf("Release of a removed hold = %v", err)
	}
}

// deadWaiter stands in the queue behind a client that has gone without a word.
// In Cluster nobody can be told that a message reaches no one.
func (d *deployed) deadWaiter() {
	const ttl = time.Second
	holder := d.a.NewLock(d.name, relock.TTL(ttl))
	rig.Must(d, holder.Lock(d.ctx))
	dead := rig.Open(d, d.rdb(), d.opts...)
	gone := rig.Beside(func() error { return dead.NewLock(d.name, relock.TTL(ttl)).Lock(d.ctx) })
	rig.Queued(d, holder, 1)
	next := d.b.NewLock(d.name, relock.TTL(ttl))
	waits := rig.Beside(func() error { return next.Lock(d.ctx) })
	rig.Queued(d, holder, 2)
	rig.Must(d, dead.Close())
	if err := <-gone; !errors.Is(err, relock.ErrClosed) {
		d.Errorf("Lock of a closed client = %v", err)
	}
	rig.Must(d, holder.Unlock())
	d.soonHolds(waits)
	rig.Must(d, next.Unlock())
}

func (d *deployed) deadHolder() {
	const ttl = 500 * time.Millisecond
	dead := rig.Open(d, d.rdb(), d.opts...)
	token := rig.MustAcquire(d, dead.NewLock(d.name, relock.TTL(ttl))).Token()
	rig.Must(d, dead.Close())
	next := d.b.NewLock(d.name, relock.TTL(ttl))
	d.soonHolds(rig.Beside(func() error { return next.Lock(d.ctx) }))
	rig.WantLater(d, token, next.Token())
	rig.Must(d, next.Unlock())
}
