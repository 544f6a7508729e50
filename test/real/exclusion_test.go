package real_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// countFor is how long a child counts at most.
var countFor = time.Duration(rig.Rounds(40, 100)) * time.Second

// TestProcessesExcludeEachOther lets eight processes of 16 goroutines each, of
// every manner of locking, increment a counter that nothing but the lock protects.
// The race detector has seen what they do after a fifth of it. A machine that is
// busy elsewhere makes some three grants a second instead of a thousand, so that
// the children stop after countFor too: what they counted by then has to be right.
func TestProcessesExcludeEachOther(t *testing.T) {
	srv := redistest.Real(t)
	rdb := srv.Client(t)
	target := int64(rig.Rounds(20_000, 500_000))
	if rig.UnderRace {
		target /= 5
	}
	rig.Must(t, rdb.Set(t.Context(), "counter", "0 0 nobody", 0).Err())
	begun := time.Now()
	var all []*child
	var reports []<-chan response
	for range 8 {
		c := spawn(t, srv.Addr())
		all = append(all, c)
		reports = append(reports, c.begin(order{Do: "count", Lock: "counted", N: target}))
	}
	var grants int64
	for i, c := range all {
		r := c.hear(reports[i])
		if r.Err != "" {
			t.Errorf("child %d: %s", i, r.Err)
		}
		if r.N == 0 {
			t.Errorf("child %d never had the lock", i)
		}
		grants += r.N
	}
	n, _, _, err := readCounter(t.Context(), rdb)
	rig.Must(t, err)
	if n != grants {
		t.Errorf("the counter is at %d after %d grants, want the same", n, grants)
	}
	if n < target && time.Since(begun) < countFor {
		t.Errorf("the children stopped at %d, want %d", n, target)
	}
	wantUnused(t, rdb, "counted")
}

// wantUnused waits until nobody has the lock or waits for it, and asserts that it
// leaves nothing but what an idle lock keeps.
func wantUnused(t *testing.T, rdb *redis.Client, lock string) {
	t.Helper()
	look := rig.Open(t, rdb).NewLock(lock)
	rig.Soon(t, func() string {
		if got := rig.Describe(t, look); got != "free waiting 0" {
			return "after all have ended redis has " + got
		}
		return ""
	})
	rig.WantBare(t, rdb, lock)
}

// readCounter returns the count, and the token and the owner of who wrote it.
func readCounter(ctx context.Context, rdb *redis.Client) (n, token int64, owner string, err error) {
	value, err := rdb.Get(ctx, "counter").Result()
	if err != nil {
		return 0, 0, "", err
	}
	_, err = fmt.Sscanf(value, "%d %d %s", &n, &token, &owner)
	return n, token, owner, err
}

// tally is the work of one child: a way to the counter past the lock's own
// connections, and what came of it.
type tally struct {
	agent  *agent
	rdb    *redis.Client
	name   string
	target int64
	until  time.Time

	mu     sync.Mutex // guards the following fields
	grants int64
	err    error
	done   bool
}

func (a *agent) count(o order) response {
	w := &tally{agent: a, name: o.Lock, target: o.N, until: time.Now().Add(countFor)}
	w.rdb = redis.NewClient(&redis.Options{Addr: a.rdb.Options().Addr})
	defer w.rdb.Close()
	shared := a.client.NewLock(o.Lock)
	manners := []func(shared *relock.Lock, owner string) error{w.plain, w.nested, w.trying, w.fickle}
	var wg sync.WaitGroup
	for i := range 16 {
		owner := fmt.Sprintf("%d of %d", i, os.Getpid())
		wg.Go(func() {
			for !w.over() {
				if err := manners[i%4](shared, owner); err != nil {
					w.fail(fmt.Errorf("goroutine %d: %w", i, err))
				}
			}
		})
	}
	wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	r := failure(w.err)
	r.N = w.grants
	return r
}

func (w *tally) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done || time.Now().After(w.until)
}

func (w *tally) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
	w.done = true
}

// turn is the critical section: it loses counts and tokens if anybody else is in it.
// A token may repeat for one owner alone: what it acquires before the release of
// an earlier call that was cancelled has arrived joins the grant of that call.
func (w *tally) turn(h *relock.Hold) error {
	token, owner := h.Token(), strings.ReplaceAll(h.Owner(), " ", "_")
	ctx := context.Background()
	n, before, writer, err := readCounter(ctx, w.rdb)
	if err != nil {
		return err
	}
	if token < before || token == before && owner != writer {
		return fmt.Errorf("token %d follows %d", token, before)
	}
	if err := w.rdb.Set(ctx, "counter", fmt.Sprintf("%d %d %s", n+1, token, owner), 0).Err(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grants++
	w.done = w.done || n+1 >= w.target
	return nil
}

// plain is an anonymous caller of a shared handle.
func (w *tally) plain(shared *relock.Lock, _ string) error {
	h, err := shared.Acquire(context.Background())
	if err != nil {
		return err
	}
	return errors.Join(w.turn(h), h.Release())
}

// nested is a named owner that re-enters up to twice, each time by a new handle.
func (w *tally) nested(_ *relock.Lock, owner string) error {
	ctx := relock.WithOwner(context.Background(), owner+" "+strconv.Itoa(rand.Int()))
	return w.enter(ctx, rand.IntN(3))
}

func (w *tally) enter(ctx context.Context, deeper int) error {
	h, err := w.agent.client.NewLock(w.name).Acquire(ctx)
	if err != nil {
		return err
	}
	if deeper == 0 {
		return errors.Join(w.turn(h), h.Release())
	}
	return errors.Join(w.enter(h.Context(ctx), deeper-1), h.Release())
}

// trying gives up soon.
func (w *tally) trying(shared *relock.Lock, _ string) error {
	h, err := shared.TryAcquire(context.Background(), time.Duration(rand.IntN(30))*time.Millisecond)
	if errors.Is(err, relock.ErrNotAcquired) || rig.Unheard(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(w.turn(h), h.Release())
}

// fickle is cancelled while it waits, or not.
func (w *tally) fickle(shared *relock.Lock, owner string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(60))*time.Millisecond)
	defer cancel()
	if rand.IntN(2) == 0 {
		ctx = relock.WithOwner(ctx, owner)
	}
	h, err := shared.Acquire(ctx)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(w.turn(h), h.Release())
}
