package relock_test

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
)

// Behind some proxies, and where a hoster refuses CLUSTER, a script cannot see who
// is subscribed: it counts nobody, and cannot be told that it is one server of many.
// Then every waiter looks as if it were gone.

// uncounted is a lock of several processes in such a place, or in an ordinary one.
type uncounted struct {
	*scene
	procs  []*actor
	inside atomic.Int32
	order  []int // who held, guarded by the lock itself
}

func (u *uncounted) asked() (n int) {
	for _, p := range u.procs {
		n += p.sent("acquire")
	}
	return n
}

// pass has each process wait in turn behind a holder, which then releases, and
// returns how many requests were sent from the release on, and how long it took.
func (u *uncounted) pass(kind string) (requests int, took time.Duration) {
	u.t.Helper()
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
	held := u.take(locks[0])
	var calls []going
	for i, l := range locks[1:] {
		calls = append(calls, start(func() error {
			return l.Do(u.t.Context(), func(ctx context.Context) error {
				if n := u.inside.Add(1); n != 1 {
					u.t.Errorf("%s: %d hold at once", kind, n)
				}
				u.order = append(u.order, i)
				time.Sleep(10 * time.Millisecond)
				u.inside.Add(-1)
				return ctx.Err()
			})
		}))
		u.until(u.now() + 10*time.Millisecond)
	}
	before, from := u.asked(), u.now()
	endHold(u.t, held)
	for _, call := range calls {
		must(u.t, <-call)
	}
	return u.asked() - before, u.now() - from
}

// Fails when a waiter that is not counted is not told to look: it would hold only
// after its heartbeat.
func TestF14WaitersThatNobodyCountsHoldSoonAndOneAtATime(t *testing.T) {
	for _, kind := range []string{"plain", "fair", "write"} {
		t.Run(kind, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				const waiters = 5
				u := &uncounted{scene: s}
				for range waiters + 1 {
					u.procs = append(u.procs, s.actor())
				}
				if n, took := u.pass(kind); n != 0 || took > time.Second || !slices.IsSorted(u.order) {
					t.Errorf("where they are counted: %d requests, %v, order %v", n, took, u.order)
				}
				u.order = nil
				s.srv.CountNobody()
				n, took := u.pass(kind)
				// Each hand-off makes all who wait ask again.
				if most := waiters * (waiters + 1) / 2; n > most || took > time.Second || len(u.order) != waiters {
					t.Errorf("%d requests, %v, order %v; want %d requests at most, within a second", n, took, u.order, most)
				}
				t.Logf("%d requests for %d hand-offs, order %v", n, waiters, u.order)
			})
		})
	}
}

// TestClusterThatHidesItselfLosesNoLock takes the permission by which a script knows
// that it is in a cluster from clients that work already: who is subscribed on
// another node is taken for gone then.
func TestClusterThatHidesItselfLosesNoLock(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	everywhere := func(line string) {
		t.Helper()
		must(t, c.Client(t).ForEachShard(t.Context(), func(_ context.Context, node *redis.Client) error {
			permit(t, node, line)
			return nil
		}))
	}
	everywhere(documentedLine(t, clusterLine))
	rdb := func() redis.UniversalClient {
		return c.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "cluster", "secret" })
	}
	a, b := open(t, rdb()), open(t, rdb())
	for _, client := range []*relock.Client{a, b} {
		must(t, mustAcquire(t, client.NewLock("first")).Release())
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
