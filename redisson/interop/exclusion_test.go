package interop_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/redisson"
)

//go:embed check.lua
var check string

// Of each language, and how often they hold altogether.
const (
	clientsOfEach = 4
	threadsOfEach = 4
	holdsOfAll    = 20_000
)

// A crowd is those who hammer one lock.
type crowd struct {
	x     *lab
	kind  string
	holds int // of each thread
	judge redis.UniversalClient
	java  []string
	ours  []*redisson.Client
	first int // the number of the first thread of Java's
}

func TestGoAndJavaExcludeEachOther(t *testing.T)           { onOneServer(t, hammer) }
func TestGoAndJavaExcludeEachOtherInACluster(t *testing.T) { onACluster(t, hammer) }

// hammer has all kinds hammered at the same time, by the same clients: where each hold is a
// few messages that wait for each other, most of the time of one kind is nobody's.
func hammer(x *lab) {
	each := holdsOfAll / (2 * clientsOfEach * threadsOfEach)
	var java []string
	var ours []*redisson.Client
	for i := range clientsOfEach {
		java, ours = append(java, x.java(fmt.Sprint("j", i))), append(ours, x.golang())
	}
	for i, kind := range []string{"lock", "fair", "fenced", "rw"} {
		x.Run(kind, func(t *testing.T) {
			t.Parallel()
			part := *x
			part.T, part.driver = t, &driver{x.JVM, t}
			h := &crowd{&part, kind, each, x.connect(), java, ours, i * threadsOfEach}
			h.hammer()
		})
	}
}

func (h *crowd) hammer() {
	x, began := h.x, time.Now()
	file, err := filepath.Abs("check.lua")
	must(x, err)
	var replies []reply
	var wg sync.WaitGroup
	errs := make(chan error, clientsOfEach*threadsOfEach)
	for i, c := range h.ours {
		for thread := range threadsOfEach {
			replies = append(replies, x.tell(h.java[i], h.first+thread, "hammer", h.kind, h.name(), h.holds, file))
			wg.Go(func() { errs <- h.run(c) })
		}
	}
	wg.Wait()
	for range cap(errs) {
		must(x, <-errs)
	}
	for _, r := range replies {
		r.ok()
	}
	h.verdict(time.Since(began))
}

func (h *crowd) name() string { return "hot-" + h.kind }

// run is one thread of ours.
func (h *crowd) run(c *redisson.Client) error {
	for i := range h.holds {
		mode, kind := "w", h.kind
		switch {
		case kind == "rw" && i%4 > 0:
			mode, kind = "r", "read"
		case kind == "rw":
			kind = "write"
		}
		hold, err := handle(c, kind, h.name()).Acquire(h.x.Context())
		if err != nil {
			return err
		}
		err = errors.Join(h.say("enter", mode, hold.Token()), h.say("leave", mode, 0), hold.Release())
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *crowd) say(what, mode string, token int64) error {
	return h.judge.Eval(context.Background(), check, []string{"check:{" + h.name() + "}"}, what, mode, "go", token).Err()
}

// verdict fails unless everybody held, alone where it was to be, and nothing is left.
func (h *crowd) verdict(took time.Duration) {
	x := h.x
	x.Helper()
	seen, err := x.admin.HGetAll(x.Context(), "check:{"+h.name()+"}").Result()
	must(x, err)
	want := strconv.Itoa(h.holds * clientsOfEach * threadsOfEach)
	for field, want := range map[string]string{"go": want, "java": want, "overlaps": "", "disorder": "", "w": "0"} {
		if seen[field] != want {
			x.Errorf("%s: %q, want %q", field, seen[field], want)
		}
	}
	if h.kind == "fenced" && seen["token"] != strconv.Itoa(2*h.holds*clientsOfEach*threadsOfEach) {
		x.Errorf("the last token is %s, want one for each hold", seen["token"])
	}
	x.Logf("%s, Redisson %s: %s holds in Go, %s in Java, %s overlaps, %s out of order, in %v", h.kind, redissonVersion(),
		seen["go"], seen["java"], zero(seen["overlaps"]), zero(seen["disorder"]), took.Round(time.Millisecond))
	x.leaves(h.kind, h.name())
}

func zero(count string) string {
	if count == "" {
		return "0"
	}
	return count
}

// leaves fails unless Redis has no more of a lock than Redisson alone would leave: the
// counter of a fenced lock, and a latch of Redisson's own, which it deletes without looking
// whether that worked, and which ends by itself.
func (x *lab) leaves(kind, name string) {
	x.Helper()
	var left []string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		left = x.keys(name, map[string]bool{"check:{" + name + "}": true, "redisson_lock_token:{" + name + "}": kind == "fenced"})
		if len(left) == 0 {
			return
		}
	}
	x.Errorf("left in Redis: %q", left)
}

// keys are those with the name in them, but some.
func (x *lab) keys(name string, but map[string]bool) (found []string) {
	x.Helper()
	list := func(ctx context.Context, rdb *redis.Client) error {
		keys, err := rdb.Keys(ctx, "*"+name+"*").Result()
		for _, key := range keys {
			if !but[key] && !strings.HasPrefix(key, "redisson_unlock_latch:") {
				found = append(found, key)
			}
		}
		return err
	}
	var mu sync.Mutex
	switch rdb := x.admin.(type) {
	case *redis.Client:
		must(x, list(x.Context(), rdb))
	case *redis.ClusterClient:
		must(x, rdb.ForEachMaster(x.Context(), func(ctx context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			return list(ctx, node)
		}))
	}
	return found
}
