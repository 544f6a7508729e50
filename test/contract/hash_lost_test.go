package contract_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// hashLost leaves a queue in which one has no record, since the hash was deleted, and b and c
// have come since: b holds, and c waits.
func hashLost(r rig.Raw, lease time.Duration) {
	r.T.Helper()
	sub := r.Redis.Subscribe(r.T.Context(), key.Inbox("relock", r.ID))
	r.T.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(r.T.Context())
	rig.Must(r.T, err)
	r.Ask(rig.NonceOf('h'), "~h", time.Minute, 1, 0)
	r.Ask(rig.NonceOf('a'), "~a", lease, 1, 0)
	rig.Must(r.T, r.Redis.Del(r.T.Context(), key.For("relock", "l").Hash).Err())
	r.Ask(rig.NonceOf('b'), "~b", time.Minute, 1, 0)
	r.Ask(rig.NonceOf('c'), "~c", time.Minute, 1, 0)
}

// wantNext fails unless who came after the loss has the lock as b unlocks.
func wantNext(r rig.Raw) {
	r.T.Helper()
	r.Release(rig.NonceOf('b'), "~b", 0)
	got := r.Redis.HGet(r.T.Context(), key.For("relock", "l").Hash, "holder").Val()
	if want := r.Identity(rig.NonceOf('c'), "~c"); got != want {
		r.T.Errorf("%q holds, want %q, who waits", got, want)
	}
}

// A hash is lost, by eviction or DEL, and its queue is not. Who stands in that without a
// record was never counted by the new hash.
// Fails when it is counted off as it goes: the queue was taken for empty, and who waited in
// it was passed over, with its entry left behind.
func TestWhoQueuesAfterTheHashWasLostIsServed(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) {
		rig.Play(t, func(t *testing.T, x *rig.Lab) {
			r := rig.Raw{T: t, Redis: x.Redis, ID: rig.NonceOf('x')}
			hashLost(r, time.Minute)
			wantNext(r)
		})
	})
	t.Run("redis", func(t *testing.T) {
		r := rig.Raw{T: t, Redis: redistest.Real(t).Client(t), ID: rig.NonceOf('x')}
		hashLost(r, time.Minute)
		wantNext(r)
	})
	t.Run("its predecessor is swept", func(t *testing.T) {
		rig.Play(t, func(t *testing.T, x *rig.Lab) {
			r := rig.Raw{T: t, Redis: x.Redis, ID: rig.NonceOf('x')}
			hashLost(r, 100*time.Millisecond)
			virtual.Sleep(200 * time.Millisecond)
			beat := r.Request("plain", rig.NonceOf('c'), "~c", "w", time.Minute, 2, 1, 0)
			beat[2] = "600000 1 " + key.Inbox("relock", "")
			r.Run("acquire", beat...)
			wantNext(r)
		})
	})
}
