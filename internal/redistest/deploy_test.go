package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

func TestSentinelPromotesAReplicaWhenThePrimaryDies(t *testing.T) {
	s := redistest.StartSentinel(t)
	s.AwaitReplicas(2)
	setOnReplicas(t, s.Client(t), 2)
	old := s.Now()
	old.Kill()
	promoted := s.Promoted(old)
	if promoted == old {
		t.Fatal("the dead server is the primary")
	}
	if got := promoted.Client(t).Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("k = %q on the new primary, want 1", got)
	}
	old.Revive()
	s.AwaitReplicas(2)
}

// On a busy machine the replica that a Sentinel has chosen may not answer it in time.
// Fails when a failover in order is asked for once: the old primary stays.
func TestSentinelFailsOverInOrderThoughReplicasAreSlow(t *testing.T) {
	s := redistest.StartSentinel(t)
	s.AwaitReplicas(2)
	old := s.Now()
	s.Failover()
	for _, r := range s.Replicas {
		r.Pause()
	}
	resume := time.AfterFunc(4*time.Second, func() { // by then it has been given up
		for _, r := range s.Replicas {
			r.Resume()
		}
	})
	defer resume.Stop()
	if s.Promoted(old) == old {
		t.Error("the old primary stays")
	}
}

// setOnReplicas sets k, and waits until n replicas have it.
func setOnReplicas(t *testing.T, rdb *redis.Client, n int) {
	t.Helper()
	conn := rdb.Conn()
	defer func() { _ = conn.Close() }()
	if err := conn.Set(t.Context(), "k", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := conn.Do(t.Context(), "wait", n, 5000).Int(); err != nil || got < n {
		t.Fatalf("%d replicas have k: %v", got, err)
	}
}

func TestClusterPromotesTheReplicaWhenAPrimaryDies(t *testing.T) {
	c := redistest.StartCluster(t)
	slot := c.Slot("k")
	old := c.Serving(slot)
	setOnReplicas(t, old.Client(t), 1)
	old.Kill()
	if promoted := c.Promoted(slot, old); promoted == old {
		t.Fatal("the dead server serves the slot")
	}
	old.Revive()
	c.AwaitComplete()
	if got := c.Client(t).Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("k = %q on the new primary, want 1", got)
	}
}

func TestMigrationMovesASlotWithItsKeys(t *testing.T) {
	c := redistest.StartSteadyCluster(t)
	rdb := c.Client(t)
	if err := rdb.Set(t.Context(), "k", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	slot := c.Slot("k")
	from := c.Serving(slot)
	m := c.Migrate(slot)
	m.Begin()
	if got := rdb.Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("k = %q before it is moved, want 1", got)
	}
	m.MoveKeys()
	if got := rdb.Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("k = %q behind ASK, want 1", got)
	}
	m.End()
	if c.Promoted(slot, from) == from {
		t.Error("the old server serves the slot still")
	}
	if got := rdb.Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("k = %q behind MOVED, want 1", got)
	}
}

// On a busy machine a primary may be slower than the timeout of the others.
// Fails when a steady cluster is like any other: the slot migrates from a server that is no primary any more.
func TestSteadyClusterKeepsItsPrimaries(t *testing.T) {
	c := redistest.StartSteadyCluster(t)
	slot := c.Slot("k")
	old := c.Serving(slot)
	old.Pause()
	slow := time.NewTimer(5 * time.Second) // a node timeout is 1 s, and a replica takes over within 2
	<-slow.C
	old.Resume()
	c.AwaitComplete()
	if now := c.Serving(slot); now != old {
		t.Error("a replica has taken over")
	}
}
