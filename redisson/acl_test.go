package redisson_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/redisson"
)

// permissions are the lines of the documentation: for a server, and for a Cluster's nodes.
func permissions(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/redisson.md")
	rig.Must(t, err)
	lines := regexp.MustCompile(`(?m)^ACL SETUSER .*$`).FindAllString(string(text), -1)
	if len(lines) != 2 {
		t.Fatalf("%d lines with permissions in docs/redisson.md, want 2", len(lines))
	}
	return lines
}

func TestPermissionsInTheDocumentAreEnough(t *testing.T) {
	srv := redistest.Real(t)
	admin := srv.Client(t)
	rig.Permit(t, admin, permissions(t)[0])
	doAll(t, func() redis.UniversalClient {
		return srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "locks", "secret" })
	})
	nothingDenied(t, admin)
}

func TestPermissionsInTheDocumentAreEnoughInACluster(t *testing.T) {
	cl := redistest.StartCluster(t)
	admin := cl.Client(t)
	each := func(f func(node *redis.Client)) {
		rig.Must(t, admin.ForEachMaster(t.Context(), func(_ context.Context, node *redis.Client) error { f(node); return nil }))
	}
	line := permissions(t)[1]
	each(func(node *redis.Client) { rig.Permit(t, node, line) })
	doAll(t, func() redis.UniversalClient {
		return cl.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "locks", "secret" })
	})
	each(func(node *redis.Client) { nothingDenied(t, node) })
}

// doAll does all that there is with every kind of lock, as two clients.
func doAll(t *testing.T, connect func() redis.UniversalClient) {
	t.Helper()
	open := func() *redisson.Client {
		c, err := redisson.New(connect(), redisson.Defaults(redisson.TTL(time.Second)))
		rig.Must(t, err)
		t.Cleanup(func() { rig.Must(t, c.Close()) })
		return c
	}
	a, b := open(), open()
	for name, of := range map[string]func(c *redisson.Client, name string) *redisson.Lock{
		"orders:plain":  func(c *redisson.Client, name string) *redisson.Lock { return c.NewLock(name) },
		"orders:fair":   func(c *redisson.Client, name string) *redisson.Lock { return c.NewLock(name, redisson.Fair()) },
		"orders:fenced": func(c *redisson.Client, name string) *redisson.Lock { return c.NewLock(name, redisson.Fenced()) },
		"orders:write":  func(c *redisson.Client, name string) *redisson.Lock { return c.NewRWLock(name).WLocker() },
		"orders:read":   func(c *redisson.Client, name string) *redisson.Lock { return c.NewRWLock(name).RLocker() },
	} {
		l, other := of(a, name), of(b, name)
		me := relock.WithOwner(t.Context(), "me")
		rig.Must(t, l.Lock(me))
		rig.Must(t, l.Lock(me))
		got := rig.Beside(func() error { return other.Lock(t.Context()) })
		<-time.After(500 * time.Millisecond) // a renewal, and a wait
		_, err := l.Info(t.Context())
		rig.Must(t, err)
		rig.Must(t, l.Unlock())
		rig.Must(t, l.Unlock())
		rig.Must(t, <-got)
		if _, err := l.TryLock(t.Context(), 10*time.Millisecond); err != nil {
			t.Errorf("%s: TryLock: %v", name, err)
		}
		if ok, err := l.ForceUnlock(t.Context()); !ok || err != nil {
			t.Errorf("%s: ForceUnlock = %v, %v", name, ok, err)
		}
	}
	rw := a.NewRWLock("orders:both")
	me := relock.WithOwner(t.Context(), "me")
	rig.Must(t, rw.Lock(me))
	rig.Must(t, rw.Downgrade(me))
	rig.Must(t, rw.RUnlock())
}

// nothingDenied fails if the server has refused anything but what go-redis says of itself,
// and asks for without need.
func nothingDenied(t *testing.T, admin *redis.Client) {
	t.Helper()
	entries, err := admin.ACLLog(t.Context(), 100).Result()
	rig.Must(t, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Object, "client|") && e.Object != "hello" && e.Object != "command" {
			t.Errorf("refused: %+v", *e)
		}
	}
}

// TestPermissionsInTheDocumentAreThoseThatAreUsed: none is missing, and none is too much.
func TestPermissionsInTheDocumentAreThoseThatAreUsed(t *testing.T) {
	scripts, err := filepath.Glob("lua/*.lua")
	rig.Must(t, err)
	used := []string{"eval", "evalsha"}
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		rig.Must(t, err)
		for _, m := range regexp.MustCompile(`redis\.call\('([A-Z]+)'`).FindAllStringSubmatch(string(text), -1) {
			used = append(used, strings.ToLower(m[1]))
		}
	}
	for i, own := range [][]string{
		{"publish", "subscribe", "unsubscribe"},
		{"spublish", "ssubscribe", "sunsubscribe", "pubsub|shardnumsub", "cluster|slots", "asking"},
	} {
		var granted []string
		for _, m := range rig.ACLGrant.FindAllStringSubmatch(permissions(t)[i], -1) {
			granted = append(granted, m[1])
		}
		want := slices.Concat(used, own)
		slices.Sort(granted)
		slices.Sort(want)
		if want = slices.Compact(want); !slices.Equal(granted, want) {
			t.Errorf("line %d grants %q,\nand what is used is %q", i+1, granted, want)
		}
	}
}
