package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// goOn is how long after a new primary everything that can go on has done so.
const goOn = 5 * time.Second

func TestWaitersGoOnAfterAFailover(t *testing.T) {
	t.Parallel()
	for where, deploy := range replicatedDeployments {
		for how := range ends {
			t.Run(where+", primary "+how, func(t *testing.T) {
				t.Parallel()
				goOnAfterAFailover(t, deploy(t), how)
			})
		}
	}
}

func goOnAfterAFailover(t *testing.T, r *replicated, how string, opts ...relock.Option) {
	t.Helper()
	c := driveWith(t, r.rdb, opts, "a", "b", "c", "d")
	defer c.disperse()
	rig.Soon(t, func() string {
		if n := c.grants.Load(); n < 200 {
			return fmt.Sprint(n, " grants")
		}
		return ""
	})
	c.twoServe(how == "relieved")
	old := ends[how](r, "a")
	r.promoted("a", old)
	back := time.Now()
	goesOn := func(since time.Time) func() string {
		return func() string {
			if names := c.quiet(since); len(names) > 0 {
				return fmt.Sprint("nobody has got ", names)
			}
			return ""
		}
	}
	within(t, goOn, back, goesOn(back))
	c.twoServe(false)
	rig.Soon(t, goesOn(time.Now()))
	t.Logf("%d grants; all went on %v after the new primary", c.grants.Load(), time.Since(back))
}

// cutReplication makes a primary refuse its replicas from now on, and returns when
// they are gone: what it writes is lost when it fails.
func cutReplication(t *testing.T, primary *redistest.RealServer) {
	t.Helper()
	admin := primary.Client(t)
	rig.Must(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "-psync", "-sync").Err())
	rig.Must(t, admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica").Err())
	rig.Soon(t, func() string {
		info, err := admin.Info(t.Context(), "replication").Result()
		if err != nil || !strings.Contains(info, "connected_slaves:0") {
			return fmt.Sprint(info, err)
		}
		return ""
	})
}

// thatKnow returns the replicas, once all of them have the lock's holder.
func (r *replicated) thatKnow(t *testing.T, name string) (replicas []*redis.Client) {
	t.Helper()
	for _, replica := range r.replicas(name) {
		rdb := replica.Client(t, func(o *redis.Options) {
			o.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
				_ = cn.ReadOnly(ctx) // a replica of a Cluster demands it, others refuse it
				return nil
			}
		})
		replicas = append(replicas, rdb)
		rig.Soon(t, func() string {
			if holder(t, rdb, name) == "" {
				return "the replica does not know the hold"
			}
			return ""
		})
	}
	return replicas
}

// holder is what a server has of who holds a lock.
func holder(t *testing.T, rdb redis.Cmdable, name string) string {
	t.Helper()
	v, err := rdb.HGet(t.Context(), key.For("relock", name).Hash, "holder").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err.Error()
	}
	return v
}

// TestReleasedLockDoesNotComeBackAfterAFailover has a client that only holds, and
// whose releases the new primary does not know.
func TestReleasedLockDoesNotComeBackAfterAFailover(t *testing.T) {
	t.Parallel()
	for where, deploy := range replicatedDeployments {
		for _, how := range []string{"killed", "hung"} {
			t.Run(where+", primary "+how, func(t *testing.T) {
				t.Parallel()
				r := deploy(t)
				holds := rig.Open(t, r.rdb(t), relock.Defaults(relock.TTL(time.Minute)))
				name := r.apart(holds)
				l := holds.NewLock(name)
				rig.Must(t, l.Lock(t.Context()))
				token := l.Token()
				replicas := r.thatKnow(t, name)
				cutReplication(t, r.primary(name))
				rig.Must(t, l.Unlock())
				for _, rdb := range replicas {
					if holder(t, rdb, name) == "" {
						t.Fatal("the replica knows of the release: there is nothing to come back")
					}
				}
				primary := r.promoted(name, ends[how](r, name))
				back := time.Now()
				rdb := primary.Client(t)
				within(t, goOn, back, func() string { return holder(t, rdb, name) })
				other := rig.Open(t, r.rdb(t)).NewLock(name)
				rig.Must(t, other.Lock(t.Context()))
				rig.WantLater(t, token, other.Token())
				t.Logf("free %v after the new primary", time.Since(back))
				rig.Must(t, other.Unlock())
			})
		}
	}
}

// TestDeadHoldersLeaseEndsAcrossAFailover kills the primary under a hold that
// nobody renews any more, and that somebody waits for.
func TestDeadHoldersLeaseEndsAcrossAFailover(t *testing.T) {
	t.Parallel()
	for where, deploy := range replicatedDeployments {
		for _, how := range []string{"killed", "hung"} {
			t.Run(where+", primary "+how, func(t *testing.T) {
				t.Parallel()
				waitForTheDead(t, deploy(t), ends[how])
			})
		}
	}
}

// waitForTheDead has somebody wait for a lock whose holder is gone, while the primary
// ends and a replica takes over.
func waitForTheDead(t *testing.T, r *replicated, end func(*replicated, string) *redistest.RealServer) {
	const ttl = 4 * time.Second
	dead := rig.Open(t, r.rdb(t), relock.Defaults(relock.TTL(ttl)))
	name := r.apart(dead)
	token := rig.MustAcquire(t, dead.NewLock(name)).Token()
	lease := time.Now()
	rig.Must(t, dead.Close())
	waiter := rig.Open(t, r.rdb(t), relock.Defaults(relock.TTL(ttl))).NewLock(name)
	waits := rig.Beside(func() error { return waiter.Lock(t.Context()) })
	rig.Queued(t, waiter, 1)
	r.thatKnow(t, name) // else nobody is left to wait for
	r.promoted(name, end(r, name))
	back := time.Now()
	rig.Must(t, <-waits)
	held := time.Now()
	due := lease.Add(ttl)
	if back.After(due) {
		due = back
	}
	if late := held.Sub(due); late > goOn {
		t.Errorf("held %v after the lease's end and the new primary, want %v", late, goOn)
	}
	if early := lease.Add(ttl - time.Second).Sub(held); early > 0 {
		t.Errorf("held %v before the lease's end", early)
	}
	rig.WantLater(t, token, waiter.Token())
	t.Logf("held %v after it could", held.Sub(due))
	rig.Must(t, waiter.Unlock())
}
