package house_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

var (
	luaCall   = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?`)
	beyondLua = []string{"eval", "evalsha", "subscribe", "ssubscribe", "sunsubscribe"} // what the client itself sends
)

// TestOperationsListsThePermissionsThatScriptsUse fails when a script uses a
// command that the page does not grant, or the page grants more than that.
func TestOperationsListsThePermissionsThatScriptsUse(t *testing.T) {
	var granted []string
	for _, m := range rig.ACLGrant.FindAllStringSubmatch(rig.DocumentedACL(t), -1) {
		granted = append(granted, m[1])
	}
	// An option's own are listed apart.
	for _, word := range rig.ShardedWords(t) {
		granted = append(granted, strings.TrimPrefix(word, "+"))
	}
	used := slices.Clone(beyondLua)
	scripts, err := os.ReadDir("lua")
	rig.Must(t, err)
	for _, file := range scripts {
		if !strings.HasSuffix(file.Name(), ".lua") {
			continue
		}
		text, err := os.ReadFile("lua/" + file.Name())
		rig.Must(t, err)
		for _, m := range luaCall.FindAllStringSubmatch(string(text), -1) {
			command := m[1]
			if m[2] != "" {
				command += "|" + m[2]
			}
			if command != "INFO" { // asked of a server that is too old, to name its version
				used = append(used, strings.ToLower(command))
			}
		}
	}
	slices.Sort(granted)
	slices.Sort(used)
	if used = slices.Compact(used); !slices.Equal(granted, used) {
		t.Errorf("the page grants %q,\nthe scripts and the client use %q", granted, used)
	}
}

// TestTheUserOfAClusterMayFollowItsSlotsAndNoMore compares the two lines of the page.
func TestTheUserOfAClusterMayFollowItsSlotsAndNoMore(t *testing.T) {
	words := func(line string) []string {
		var all []string
		for _, m := range rig.ACLGrant.FindAllStringSubmatch(line, -1) {
			all = append(all, m[1])
		}
		return all
	}
	want := append(words(rig.DocumentedACL(t)), "cluster|slots", "asking")
	if got := words(rig.Documented(t, rig.ClusterLine)); !slices.Equal(got, want) {
		t.Errorf("the page grants in a Cluster %q,\nwant %q", got, want)
	}
}

// TestPermissionsInOperationsAreEnough lets such a user do all that there is.
func TestPermissionsInOperationsAreEnough(t *testing.T) {
	srv := redistest.Real(t)
	admin := srv.Client(t)
	rig.Permit(t, admin, rig.DocumentedACL(t))
	lockAsUser := func() *relock.Lock {
		rdb := srv.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "secret" })
		return rig.Open(t, rdb).NewLock("job", relock.TTL(time.Second))
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}

	holder, waiter := lockAsUser(), lockAsUser()
	owner := relock.WithOwner(t.Context(), "me")
	must("lock", holder.Lock(owner))
	must("nested lock", holder.Lock(owner))
	if got, err := waiter.TryLock(t.Context(), 3*time.Second); got || err != nil {
		t.Fatalf("waiting for three leases: %v, %v, want false, nil", got, err)
	}
	_, err := holder.Info(t.Context())
	must("info", err)
	_, err = holder.Waiters(t.Context())
	must("waiters", err)
	must("nested unlock", holder.Unlock())
	waited := make(chan error, 1)
	go func() { waited <- waiter.Lock(t.Context()) }()
	must("unlock", holder.Unlock())
	must("lock that was waited for", <-waited)
	if removed, err := holder.ForceUnlock(t.Context()); !removed || err != nil {
		t.Errorf("force: %v, %v, want true, nil", removed, err)
	}
	wantNothingDenied(t, admin)
}

// wantNothingDenied reads the server's log of what users were not allowed to do.
func wantNothingDenied(t *testing.T, admin *redis.Client) {
	t.Helper()
	denied, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
	rig.Must(t, err)
	for _, entry := range denied {
		// go-redis introduces itself, and does not need to be heard.
		if what := fmt.Sprint(entry); !strings.Contains(what, "client|") {
			t.Errorf("the server has denied: %s", what)
		}
	}
}
