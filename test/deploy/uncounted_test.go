package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Behind some proxies, and where a hoster refuses CLUSTER, a script cannot see who
// is subscribed: it counts nobody, and cannot be told that it is one server of many.
// Then every waiter looks as if it were gone, until one says that it hears.

// uncounted is a lock of several processes in such a place, or in an ordinary one.
type uncounted struct {
	*rig.Lab
	procs  []*rig.Actor
	inside atomic.Int32
	order  []int // who held, guarded by the lock itself
}

func (u *uncounted) asked() (n int) {
	for _, p := range u.procs {
		n += p.Sent("acquire")
	}
	return n
}

// pass has each process wait in turn behind a holder, which then releases, and
// returns how many requests were sent from the release on, and how long it took.
func (u *uncounted) pass(kind string) (requests int, took time.Duration) {
	u.T.Helper()
	locks := make([]*relock.Lock, len(u.procs))
	for i, p := range u.procs {
		switch kind {
		case "fair":
			locks[i] = p.NewLock(kind, relock.Fair())
		case "write":
			locks[i] = p.NewRWLock(kind).WLocker()
		default:
			locks[i] = p.NewLock(kind)
		}
	}
	held := u.Take(locks[0])
	var calls []rig.Going
	for i, l := range locks[1:] {
		calls = append(calls, rig.Beside(func() error {
			return l.Do(u.T.Context(), func(ctx context.Context) error {
				if n := u.inside.Add(1); n != 1 {
					u.T.Errorf("%s: %d hold at once", kind, n)
				}
				u.order = append(u.order, i)
				virtual.Sleep(10 * time.Millisecond)
				u.inside.Add(-1)
				return ctx.Err()
			})
		}))
		u.Until(u.Now() + 10*time.Millisecond)
	}
	before, from := u.asked(), u.Now()
	rig.End(u.T, held)
	for _, call := range calls {
		rig.Must(u.T, <-call)
	}
	return u.asked() - before, u.Now() - from
}

// uncountedKinds are locks that are granted in order.
var uncountedKinds = []string{"plain", "fair", "write"}

func newUncounted(s *rig.Lab, procs int, opts ...relock.Option) *uncounted {
	u := &uncounted{Lab: s}
	for range procs {
		u.procs = append(u.procs, s.Actor(opts...))
	}
	return u
}

// inOrder fails unless all that wait are handed the lock in their order, and need not ask.
func (u *uncounted) inOrder(kind string) {
	u.T.Helper()
	u.order = nil
	if n, took := u.pass(kind); n != 0 || took > time.Second || len(u.order) != len(u.procs)-1 || !slices.IsSorted(u.order) {
		u.T.Errorf("%s: %d requests, %v, order %v", kind, n, took, u.order)
	}
}

func TestF14WaitersThatNobodyCountsHoldInTheirOrder(t *testing.T) {
	for how, opts := range map[string][]relock.Option{"": nil, " on sharded channels": {relock.ShardedPubSub()}} {
		for _, kind := range uncountedKinds {
			t.Run(kind+how, func(t *testing.T) {
				rig.Play(t, func(t *testing.T, s *rig.Lab) {
					s.Server.Shard()
					s.Server.CountNobody()
					u := newUncounted(s, 6, opts...)
					for range 3 {
						u.inOrder(kind)
						s.Until(s.Now() + time.Minute) // what the waiters said has ended
					}
				})
			})
		}
	}
}

// TestAnEchoOfPermissionsSaysNothingOfWhoIsCounted: clients that have subscribed before their
// first lock hear that echo first. Clients of a lab ask for no permissions; these do.
func TestAnEchoOfPermissionsSaysNothingOfWhoIsCounted(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		s.Server.CountNobody()
		u := &uncounted{Lab: s}
		for range 6 {
			link := redistest.NewLink(t, s.Server.Dial)
			c := rig.Open(t, s.Server.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }))
			rig.ListenNow(t, c)
			u.procs = append(u.procs, &rig.Actor{Client: c, Link: link, T: t})
		}
		u.inOrder("fair")
	})
}

// TestADeadWaiterCostsItsLeaseWhereNobodyIsCounted: there nobody can tell that it is dead,
// as in a cluster.
func TestADeadWaiterCostsItsLeaseWhereNobodyIsCounted(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		s.Server.CountNobody()
		u := newUncounted(s, 3)
		const lease = 3 * time.Second
		lock := func(i int) *relock.Lock { return u.procs[i].NewLock("l", relock.Fair(), relock.TTL(lease)) }
		held := u.Take(lock(0))
		ctx, cancel := context.WithCancel(t.Context())
		dead := rig.Beside(func() error { return lock(1).Lock(ctx) })
		s.Until(s.Now() + 10*time.Millisecond)
		next := rig.Beside(func() error { return lock(2).Lock(t.Context()) })
		s.Until(s.Now() + 10*time.Millisecond)
		u.procs[1].Link.Cut()
		from := s.Now()
		rig.End(t, held)
		rig.Must(t, <-next)
		if took := s.Now() - from; took == 0 || took > lease {
			t.Errorf("after %v, want one lease at most", took)
		}
		cancel()
		rig.WantIs(t, <-dead, context.Canceled)
	})
}

// TestWhoWaitsForLongIsTakenForOneThatHearsAfterWhoWaitsBriefly: the one with the shorter lease
// has said later that it is subscribed, and has left since.
func TestWhoWaitsForLongIsTakenForOneThatHearsAfterWhoWaitsBriefly(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		s.Server.CountNobody()
		u := newUncounted(s, 3)
		held := u.Take(u.procs[0].NewLock("l", relock.Fair()))
		long := s.Begin(u.procs[1].NewLock("l", relock.Fair()))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		rig.WantIs(t, u.procs[2].NewLock("l", relock.Fair(), relock.TTL(time.Second)).Lock(ctx), context.DeadlineExceeded)
		s.Until(s.Now() + 3*time.Second)
		before := u.asked()
		rig.End(t, held)
		rig.End(t, long.Holds())
		if n := u.asked() - before; n > 0 {
			t.Errorf("it has asked %d times, want it to be told", n)
		}
	})
}

func TestSignalsWakeInOrderWhereNobodyIsCounted(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		x.Server.CountNobody()
		var waits []*rig.Sleep
		var locks []*relock.Lock
		for range 3 {
			l := x.Actor().NewLock("l") // which has subscribed, and has no reason to ask again
			rig.Must(t, l.Lock(t.Context()))
			locks = append(locks, l)
			waits = append(waits, x.Sleeps(t.Context(), l.NewCond("c"), 0))
		}
		by := x.Lock("l")
		for i, w := range waits {
			rig.Must(t, by.Lock(t.Context()))
			rig.Must(t, by.NewCond("c").Signal(t.Context()))
			rig.Must(t, by.Unlock())
			w.Woken()
			rig.Must(t, locks[i].Unlock())
			for _, other := range waits[i+1:] {
				other.Waits()
			}
		}
	})
}

// Fails when a waiter that is not counted is not told to look: it would hold only
// after its heartbeat. Here it is so from some time on, which no client knows before it
// hears of it by an echo.
func TestF14WaitersThatNobodyCountsHoldSoonAndOneAtATime(t *testing.T) {
	for _, kind := range uncountedKinds {
		t.Run(kind, func(t *testing.T) {
			rig.Play(t, func(t *testing.T, s *rig.Lab) {
				const waiters = 5
				u := newUncounted(s, waiters+1)
				u.inOrder(kind)
				u.order = nil
				s.Server.CountNobody()
				n, took := u.pass(kind)
				// Each hand-off makes all who wait ask again.
				if most := waiters * (waiters + 1) / 2; n > most || took > time.Second || len(u.order) != waiters {
					t.Errorf("%d requests, %v, order %v; want %d requests at most, within a second", n, took, u.order, most)
				}
				t.Logf("%d requests for %d hand-offs, order %v", n, waiters, u.order)
				s.Until(s.Now() + time.Minute) // the next who wait ask for an echo
				u.inOrder(kind)
			})
		})
	}
}

// TestWaitersThatConnectToAServerThatCountsNobodyHoldInTheirOrder: they were seen before.
func TestWaitersThatConnectToAServerThatCountsNobodyHoldInTheirOrder(t *testing.T) {
	rig.Play(t, func(t *testing.T, s *rig.Lab) {
		u := newUncounted(s, 6)
		u.inOrder("fair")
		s.Server.CountNobody()
		for _, p := range u.procs {
			heal := p.Link.Cut()
			heal()
			p.Warm()
		}
		s.Until(s.Now() + time.Second)
		u.inOrder("fair")
	})
}

// TestClusterThatHidesItselfLosesNoLock takes the permission by which a script knows
// that it is in a cluster from clients that work already: who is subscribed on
// another node is taken for gone then.
func TestClusterThatHidesItselfLosesNoLock(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	everywhere := func(line string) {
		t.Helper()
		rig.Must(t, c.Client(t).ForEachShard(t.Context(), func(_ context.Context, node *redis.Client) error {
			rig.Permit(t, node, line)
			return nil
		}))
	}
	everywhere(rig.Documented(t, rig.ClusterLine))
	rdb := func() redis.UniversalClient {
		return c.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "cluster", "secret" })
	}
	a, b := rig.Open(t, rdb()), rig.Open(t, rdb())
	for _, client := range []*relock.Client{a, b} {
		rig.Must(t, rig.MustAcquire(t, client.NewLock("first")).Release())
	}
	everywhere("ACL SETUSER cluster -cluster|myid")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for i := range 6 { // whose slots are on all three primaries
		d := &deployed{T: t, ctx: ctx, a: a, b: b, rdb: rdb, name: fmt.Sprint("job ", i, strings.Repeat("x", i))}
		d.handOff()
		d.name += " rw"
		d.readersAndWriter()
	}
}
