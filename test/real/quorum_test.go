package real_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

const quorumTTL = time.Second

// A watch is what one clock sees of those who hold.
type watch struct {
	t *testing.T

	mu     sync.Mutex // guards the following fields
	latest *relock.QuorumHold
	grants int
	last   time.Time // when the latest was granted
}

// granted judges a new hold against the one before: that must not be trusted any more,
// and has a smaller token.
func (w *watch) granted(h *relock.QuorumHold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.latest; old != nil {
		if h.Err() == nil && old.Err() == nil && h.Err() == nil {
			w.t.Errorf("two holders: token %d is trusted until %v beside token %d", old.Token(), old.TrustedUntil(), h.Token())
		}
		if h.Token() <= old.Token() {
			w.t.Errorf("token %d follows %d", h.Token(), old.Token())
		}
	}
	w.latest, w.last = h, time.Now()
	w.grants++
}

// work holds the lock again and again, as a process of its own.
func (w *watch) work(ctx context.Context, servers []*redistest.RealServer, rng *rand.Rand) {
	var clients []*relock.Client
	for _, srv := range servers {
		clients = append(clients, rig.Open(w.t, srv.Client(w.t, func(o *redis.Options) {
			o.DialTimeout, o.ReadTimeout = 300*time.Millisecond, 300*time.Millisecond
		}), relock.ReleaseTimeout(500*time.Millisecond)))
	}
	q, err := relock.NewQuorum(clients...)
	if err != nil {
		w.t.Error(err)
		return
	}
	l := q.NewLock("a", relock.TTL(quorumTTL))
	for ctx.Err() == nil {
		h, err := l.Acquire(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.t.Error(err)
			}
			return
		}
		w.granted(h)
		rest(h.Context(ctx), time.Duration(rng.Int64N(int64(20*time.Millisecond))))
		if err := h.Release(); err != nil && !errors.Is(err, relock.ErrLost) && !errors.Is(err, relock.ErrUnconfirmed) {
			w.t.Error(err)
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}

// trouble befalls two primaries at a time, of which one at most loses its data: it comes
// back after a TTL, as docs/guarantees.md demands.
func (w *watch) trouble(ctx context.Context, servers []*redistest.RealServer, rng *rand.Rand) {
	at := rng.Perm(len(servers))
	a, b := servers[at[0]], servers[at[1]]
	a.Pause()
	if rng.IntN(2) == 0 {
		b.Pause()
		rest(ctx, quorumTTL)
		b.Resume()
	} else {
		b.Kill()
		rest(ctx, quorumTTL+quorumTTL/2)
		b.Restart()
	}
	a.Resume()
	rest(ctx, quorumTTL) // those who hold take them again
}

// Fails when a hold is trusted without a majority, when what a majority has granted is
// forgotten by one of it, and when a token is not written back.
func TestQuorumUnderFaultsHasOneHolderAndLargerTokens(t *testing.T) {
	var servers []*redistest.RealServer
	for range 5 {
		servers = append(servers, redistest.Real(t))
	}
	w := &watch{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	rng := rand.New(rand.NewPCG(11, 7))
	for range 4 {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 1))
		running.Go(func() { w.work(ctx, servers, mine) })
	}
	for range rig.Rounds(3, 30) {
		w.trouble(ctx, servers, rng)
	}
	best := w.comesBack(ctx, servers)
	cancel()
	running.Wait()
	t.Logf("%d grants; after a majority had come back, the next within %v", w.grants, best)
	if best > 3*time.Second {
		t.Errorf("the next hold came %v after a majority was back at best, want within 3s", best)
	}
}

// comesBack takes the majority away, and says how soon after its return somebody holds,
// in the best of some rounds.
func (w *watch) comesBack(ctx context.Context, servers []*redistest.RealServer) (best time.Duration) {
	w.t.Helper()
	best = time.Hour
	for range rig.Rounds(3, 10) {
		for _, srv := range servers[:3] {
			srv.Pause()
		}
		rest(ctx, 2*quorumTTL)
		w.mu.Lock()
		before := w.grants
		w.mu.Unlock()
		servers[2].Resume() // a majority
		back := time.Now()
		rig.Soon(w.t, func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.grants == before {
				return "nobody holds though a majority is back"
			}
			best = min(best, w.last.Sub(back))
			return ""
		})
		servers[0].Resume()
		servers[1].Resume()
	}
	return best
}
