package interop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/redisson"
)

// TestBothFollowSentinelsToTheNewPrimary and exclude each other there as before.
func TestBothFollowSentinelsToTheNewPrimary(t *testing.T) {
	j, s := startJVM(t), redistest.StartSentinel(t)
	x := &lab{T: t, driver: j, addr: strings.Join(s.Watchers(), ","), setup: "sentinel"}
	x.connect = func() redis.UniversalClient { return s.Client(t) }
	x.admin = s.Client(t)
	java, c := x.java("j"), x.golang()
	x.takeTurns(java, c, "before")
	old := s.Now()
	s.Failover()
	s.Promoted(old)
	s.AwaitReplicas(2)
	x.takeTurns(java, c, "after")
}

// takeTurns has each side wait for the other's unlock once.
func (x *lab) takeTurns(java string, c *redisson.Client, when string) {
	x.Helper()
	for _, kind := range modes {
		name := when + "-" + kind
		l := handle(c, kind, name)
		x.tell(java, 1, "lock", kind, name).ok()
		got := begin(x, l)
		x.waiting(got)
		x.tell(java, 1, "unlock", kind, name).ok()
		within(x, watchdog/2, kind+" after Java's unlock, "+when, got)
		waiter := x.tell(java, 2, "lock", kind, name)
		waiter.pending(waits)
		must(x, l.Unlock())
		began := time.Now()
		waiter.ok()
		if took := time.Since(began); took > watchdog/2 {
			x.Errorf("%s: Java had the lock %v after our unlock, %s", kind, took, when)
		}
		x.tell(java, 2, "unlock", kind, name).ok()
		x.leaves(kind, name)
	}
}

// TestClocksThatDifferKeepTheOrderOfAFairQueue where they differ by less than what a
// waiter may be silent for: Java reads its own clock, and we read the server's.
func TestClocksThatDifferKeepTheOrderOfAFairQueue(t *testing.T) {
	for _, skew := range []time.Duration{fairWait / 3, -fairWait / 3} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			onOneServer(t, func(x *lab) {
				x.tell("", 0, "skew", skew.Milliseconds()).ok()
				java, c := x.java("j"), x.golang()
				x.tell(java, 1, "lock", "fair", "line").ok()
				waiter := x.tell(java, 2, "lock", "fair", "line")
				x.queued("line", 1)
				x.isWrongBy(skew, "line")
				l := handle(c, "fair", "line")
				got := begin(x, l)
				x.queued("line", 2)
				third := x.tell(java, 3, "lock", "fair", "line")
				x.queued("line", 3)
				waiter.pending(watchdog / 2)
				x.queued("line", 3)
				x.tell(java, 1, "unlock", "fair", "line").ok()
				waiter.ok()
				third.pending(waits)
				x.waiting(got)
				x.tell(java, 2, "unlock", "fair", "line").ok()
				within(x, watchdog/2, "our lock, behind the first of Java's", got)
				third.pending(waits)
				must(x, l.Unlock())
				third.ok()
				x.tell(java, 3, "unlock", "fair", "line").ok()
				x.leaves("fair", "line")
			})
		})
	}
}

// isWrongBy fails unless the only waiter's deadline was written by a clock that is as wrong.
func (x *lab) isWrongBy(skew time.Duration, name string) {
	x.Helper()
	all := x.admin.ZRangeWithScores(x.Context(), "redisson_lock_timeout:{"+name+"}", 0, -1).Val()
	if len(all) != 1 {
		x.Fatalf("deadlines %v, want one", all)
	}
	lease := x.admin.PTTL(x.Context(), name).Val()
	now := x.admin.Time(x.Context()).Val()
	got := time.UnixMilli(int64(all[0].Score)).Sub(now.Add(lease + fairWait))
	if d := got - skew; d < -time.Second || d > time.Second {
		x.Errorf("the deadline that Java wrote is off by %v, want %v", got, skew)
	}
}
