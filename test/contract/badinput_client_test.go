package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

func TestNewRefusesClientsThatCannotLock(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "192.0.2.1:6379"}})
	defer ring.Close()
	for what, rdb := range map[string]redis.UniversalClient{
		"nil":                nil,
		"a nil Client":       (*redis.Client)(nil),
		"a nil Cluster":      (*redis.ClusterClient)(nil),
		"a nil Ring":         (*redis.Ring)(nil),
		"a Ring of servers":  ring,
		"a decorated Ring":   struct{ *redis.Ring }{ring},
		"a hidden Ring":      struct{ redis.UniversalClient }{ring},
		"an empty decorator": struct{ redis.UniversalClient }{},
	} {
		c, err := relock.New(rdb)
		if rig.WantIs(t, err, relock.ErrInvalidOption); c != nil || t.Failed() {
			t.Fatalf("%s: client %v", what, c)
		}
		short(t, err)
	}
}

// Fails when an empty decorator is called a Ring, or a Ring an empty decorator.
func TestNewSaysWhyAClientCannotLock(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "192.0.2.1:6379"}})
	defer ring.Close()
	for what, rdb := range map[string]redis.UniversalClient{
		"a Ring moves keys":    ring,
		"around a Ring":        struct{ redis.UniversalClient }{ring},
		"decorator around nil": struct{ redis.UniversalClient }{},
		"around nil":           struct{ *redis.Client }{},
	} {
		if _, err := relock.New(rdb); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("New = %v, want an error that says %q", err, what)
		}
	}
}

// A decorator that hides which client it has could have WAIT, and subscriptions,
// on another server than the lock.
func TestHiddenClientIsRefusedWhatItCannotBeReliedOnFor(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"192.0.2.1:6379"}})
	defer cluster.Close()
	single := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
	defer single.Close()
	for _, rdb := range []redis.UniversalClient{struct{ redis.UniversalClient }{cluster}, struct{ redis.UniversalClient }{single}} {
		for _, opt := range []relock.Option{relock.ShardedPubSub(), relock.Defaults(relock.Replicas(1, time.Second))} {
			_, err := relock.New(rdb, opt)
			if rig.WantIs(t, err, relock.ErrInvalidOption); err == nil || !strings.Contains(err.Error(), "embeds") {
				t.Errorf("%v, want what to do", err)
			}
			short(t, err)
		}
		c, err := relock.New(rdb)
		rig.Must(t, err)
		rig.WantIs(t, c.NewLock("a", relock.Replicas(1, time.Second)).Lock(t.Context()), relock.ErrInvalidOption)
		rig.Must(t, c.Close())
	}
	for _, rdb := range []redis.UniversalClient{struct{ *redis.ClusterClient }{cluster}, struct{ *redis.Client }{single}} {
		c, err := relock.New(rdb, relock.ShardedPubSub(), relock.Defaults(relock.Replicas(1, time.Second)))
		rig.Must(t, err)
		rig.Must(t, c.Close())
	}
}

func TestNilContextIsAnError(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		for way, call := range everyAnswer(c.NewLock("a")) {
			err := call(nil)
			short(t, err)
			if rig.WantIs(t, err, relock.ErrInvalidOption); t.Failed() {
				t.Fatal(way)
			}
		}
		rig.WantIs(t, c.Shutdown(nil), relock.ErrInvalidOption) //nolint:staticcheck // a nil context is what is tried
		x.Frees("a")
	})
}
