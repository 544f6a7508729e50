package deploy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestEveryMissingPermissionIsNamedAtTheFirstCall takes each word out of the
// documented line once.
func TestEveryMissingPermissionIsNamedAtTheFirstCall(t *testing.T) {
	t.Parallel()
	srv := redistest.Real(t)
	admin := srv.Client(t)
	full := rig.DocumentedACL(t)
	var words []string
	for _, m := range rig.ACLGrant.FindAllStringSubmatch(full, -1) {
		words = append(words, m[0])
	}
	words = append(words, "~relock:*", "&relock:*")
	for _, word := range words {
		for _, kind := range []string{"plain", "rw"} {
			t.Run(word+" "+kind, func(t *testing.T) {
				rig.Must(t, admin.FlushAll(t.Context()).Err())
				rig.Must(t, admin.Do(t.Context(), "ACL", "DELUSER", "app").Err())
				rig.Permit(t, admin, strings.Replace(full+" ", " "+word+" ", " ", 1))
				name := strings.Trim(word, "+~&*")
				// Both paths: a free name, and one that another client holds.
				for _, taken := range []bool{false, true} {
					refusedNaming(t, srv, kind, name, taken)
				}
				everyKeyHasATTL(t, admin)
			})
		}
	}
}

// replicasGrant is what the page adds for Replicas.
var replicasGrant = regexp.MustCompile("With the option `Replicas` add `(\\S+)`")

// TestPermissionForReplicasIsNamedAtTheFirstCall has a user without it, who takes
// nothing, and one with it, who needs no more.
func TestPermissionForReplicasIsNamedAtTheFirstCall(t *testing.T) {
	r := redistest.StartReplication(t, 1)
	admin := r.Primary.Client(t)
	page, err := os.ReadFile(filepath.Join(rig.Root(t), "docs", "operations.md"))
	rig.Must(t, err)
	added := replicasGrant.FindStringSubmatch(string(page))
	if added == nil {
		t.Fatal("docs/operations.md does not say what Replicas needs")
	}
	rig.Permit(t, admin, rig.DocumentedACL(t))
	asUser := func(o *redis.Options) { o.Username, o.Password = "app", "secret" }
	lockOf := func() *relock.Lock {
		return rig.Open(t, r.Primary.Client(t, asUser)).NewLock("job", relock.Replicas(1, time.Second))
	}
	if err := lockOf().Lock(t.Context()); err == nil || !strings.Contains(err.Error(), "may not run: wait") {
		t.Errorf("the first call says %v, want what is missing: wait", err)
	}
	if keys := admin.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("%q are left of a call that was refused before it took anything", keys)
	}
	rig.Permit(t, admin, "ACL SETUSER app "+added[1])
	first, second := lockOf(), lockOf()
	rig.Must(t, first.Lock(t.Context()))
	waits := rig.Beside(func() error { return second.Lock(t.Context()) })
	rig.Queued(t, first, 1)
	rig.Must(t, first.Unlock())
	rig.Must(t, <-waits)
	rig.Must(t, second.Unlock())
}

func refusedNaming(t *testing.T, srv *redistest.RealServer, kind, missing string, taken bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	asUser := func(o *redis.Options) { o.Username, o.Password = "app", "secret" }
	lockOf := func(c *relock.Client) *relock.Lock {
		if kind == "rw" {
			return c.NewRWLock(kind).WLocker()
		}
		return c.NewLock(kind)
	}
	if taken {
		holder := lockOf(rig.Open(t, srv.Client(t)))
		rig.Must(t, holder.Lock(ctx))
		defer func() { rig.Must(t, holder.Unlock()) }()
	}
	err := lockOf(rig.Open(t, srv.Client(t, asUser))).Lock(ctx)
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("taken %v: the first call says %v, want what is missing: %s", taken, err, missing)
	}
}

// everyKeyHasATTL fails when anything is left that would block for ever.
func everyKeyHasATTL(t *testing.T, rdb *redis.Client) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, k := range rdb.Keys(ctx, "*").Val() {
		if ttl := rdb.PTTL(ctx, k).Val(); ttl == -1 {
			t.Errorf("key %s has no TTL: %v", k, ttl)
		}
	}
}

// TestRevokedPermissionLeavesNoKeyWithoutTTL takes each permission away from a
// user in the midst of everything, and lets it try on.
func TestRevokedPermissionLeavesNoKeyWithoutTTL(t *testing.T) {
	t.Parallel()
	srv := redistest.Real(t)
	admin := srv.Client(t)
	full := rig.DocumentedACL(t)
	for _, m := range rig.ACLGrant.FindAllStringSubmatch(full, -1) {
		t.Run(m[0], func(t *testing.T) {
			rig.Must(t, admin.FlushAll(t.Context()).Err())
			rig.Permit(t, admin, full)
			user := func(o *redis.Options) { o.Username, o.Password = "app", "secret" }
			terms := []relock.Option{relock.Defaults(relock.TTL(200 * time.Millisecond)), relock.ReleaseTimeout(100 * time.Millisecond)}
			a, b := rig.Open(t, srv.Client(t, user), terms...), rig.Open(t, srv.Client(t, user), terms...)
			rig.Must(t, a.NewLock("warm", relock.TTL(10*time.Second)).Lock(t.Context()))
			rig.Must(t, b.NewRWLock("warm too", relock.TTL(10*time.Second)).RLock(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			rig.Must(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", strings.Replace(m[0], "+", "-", 1)).Err())
			for i := range 4 {
				rw, l := a.NewRWLock(fmt.Sprint("rw ", i%2)), a.NewLock(fmt.Sprint("plain ", i%2), relock.Fair())
				_ = rw.RLock(ctx)
				_ = l.Lock(ctx)
				waits := rig.Beside(func() error { return b.NewLock(fmt.Sprint("plain ", i%2), relock.Fair()).Lock(ctx) })
				writes := rig.Beside(func() error { return b.NewRWLock(fmt.Sprint("rw ", i%2)).Lock(ctx) })
				_ = rw.RUnlock()
				if i%2 == 0 {
					_ = l.Unlock()
				}
				everyKeyHasATTL(t, admin)
				_, _ = <-waits, <-writes
				everyKeyHasATTL(t, admin)
			}
		})
	}
}
