package real_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// crew are the waiters of one child, every tenth of which gives up on order.
type crew struct {
	mu      sync.Mutex // guards the following field
	fickle  []context.CancelFunc
	waiters sync.WaitGroup
}

// queue starts N waiters on a fair lock, each by an owner of its own. Who is
// granted the lock writes its owner down and passes it on.
func (a *agent) queue(o order) response {
	for i := range o.N {
		ctx, cancel := context.WithCancel(context.Background())
		if i%10 == 9 {
			a.crew.mu.Lock()
			a.crew.fickle = append(a.crew.fickle, cancel)
			a.crew.mu.Unlock()
		}
		owner := fmt.Sprintf("%s-%d", o.Owner, i)
		a.crew.waiters.Go(func() {
			defer cancel()
			l := a.client.NewLock(o.Lock, relock.Fair(), relock.Owner(owner))
			if l.Lock(ctx) != nil {
				return
			}
			a.rdb.RPush(context.Background(), "granted", owner)
			_ = l.Unlock()
		})
	}
	return response{}
}

// abandon makes the fickle waiters give up.
func (a *agent) abandon(order) response {
	a.crew.mu.Lock()
	defer a.crew.mu.Unlock()
	for _, cancel := range a.crew.fickle {
		cancel()
	}
	return response{N: int64(len(a.crew.fickle))}
}

func ownersOf(t *testing.T, l *relock.Lock) []string {
	t.Helper()
	waiters, err := l.Waiters(t.Context())
	rig.Must(t, err)
	owners := make([]string, len(waiters))
	for i, w := range waiters {
		owners[i] = w.Owner
	}
	return owners
}

// 500 waiters of ten processes are granted in the order of the server's tickets,
// though a tenth of them gives up, a process is killed, and every client has to
// subscribe again.
func TestFairGrantsInOrderOfArrivalOverProcesses(t *testing.T) {
	srv := redistest.Real(t)
	rdb := srv.Client(t)
	l := rig.Open(t, rdb).NewLock("x", relock.Fair())
	rig.Must(t, l.Lock(t.Context()))

	children := queueingChildren(t, srv)
	rig.Queued(t, l, 9*53+25)
	arrived := ownersOf(t, l)

	children[9].kill()
	gaveUp := 0
	for _, c := range children[:9] {
		gaveUp += int(c.do(order{Do: "abandon"}).N)
	}
	want := slices.DeleteFunc(arrived, func(owner string) bool {
		var child, i int
		_, err := fmt.Sscanf(owner, "%d-%d", &child, &i)
		rig.Must(t, err)
		return child == 9 || i%10 == 9
	})
	rig.Queued(t, l, len(want)+25) // the dead keep their places until their turn or their leases' end
	rig.Must(t, rdb.Do(t.Context(), "client", "kill", "type", "pubsub").Err())
	soonInboxes(t, rdb, 10) // those of nine children and the parent

	rig.Must(t, l.Unlock())
	rig.Soon(t, func() string {
		if n := rdb.LLen(t.Context(), "granted").Val(); int(n) != len(want) {
			return fmt.Sprintf("%d of %d granted", n, len(want))
		}
		return ""
	})
	got := rdb.LRange(t.Context(), "granted", 0, -1).Val()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("grant %d went to %s, want %s (%d gave up)", i, got[i], want[i], gaveUp)
		}
	}
	rig.Queued(t, l, 0)
}

// queueingChildren are ten processes: 53 calls of each wait, and 25 of the last.
func queueingChildren(t *testing.T, srv *redistest.RealServer) (children []*child) {
	t.Helper()
	for i := range 10 {
		c, n := spawn(t, srv.Addr()), int64(53)
		if i == 9 {
			n = 25
		}
		c.do(order{Do: "queue", Lock: "x", Owner: fmt.Sprint(i), N: n})
		children = append(children, c)
	}
	return children
}

// share is the work of one child among readers and writers, for a time, and on a slow machine until there were N grants:
// eight goroutines, each of which reads, writes, nests and downgrades as it comes.
func (a *agent) share(o order) response {
	rdb := redis.NewClient(&redis.Options{Addr: a.rdb.Options().Addr})
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*o.TTL)
	defer cancel()
	end := time.Now().Add(o.TTL)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	var grants int64
	for i := range 8 {
		wg.Go(func() {
			var opts []relock.LockOption
			if o.Kind == "fair" {
				opts = append(opts, relock.Fair())
			}
			for n := int64(0); ctx.Err() == nil; n++ {
				owned := relock.WithNewOwner(ctx)
				err := (&sharer{rdb: rdb, rw: a.client.NewRWLock(o.Lock, opts...)}).turn(owned)
				if err != nil && ctx.Err() == nil {
					cancel()
					mu.Lock()
					failed = errors.Join(failed, fmt.Errorf("goroutine %d: %w", i, err))
					mu.Unlock()
				}
				mu.Lock()
				if grants++; grants >= o.N && time.Now().After(end) {
					cancel() // also ends calls that wait
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	r := failure(failed)
	r.N = grants
	return r
}

// A sharer notes in Redis, past the lock, who is inside.
type sharer struct {
	rdb *redis.Client
	rw  *relock.RWLock
}

func (s *sharer) turn(ctx context.Context) error {
	if rand.N(4) > 0 {
		if err := s.rw.RLock(ctx); err != nil {
			return err
		}
		return errors.Join(s.read(ctx, s.rw.RLocker().Token()), s.rw.RUnlock())
	}
	if err := s.rw.Lock(ctx); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // the end of the run must not come between
	err := s.write(s.rw.WLocker().Token())
	switch rand.N(3) {
	case 0: // a nested read hold that outlives the write hold
		err = errors.Join(err, s.rw.RLock(ctx), s.rw.Unlock(), s.read(ctx, s.rw.RLocker().Token()), s.rw.RUnlock())
	case 1:
		err = errors.Join(err, s.rw.Downgrade(ctx), s.read(ctx, s.rw.RLocker().Token()), s.rw.RUnlock())
	default:
		err = errors.Join(err, s.rw.Lock(ctx), s.rw.Unlock(), s.write(s.rw.WLocker().Token()), s.rw.Unlock())
	}
	return err
}

// read fails beside a writer, or after one with a later token.
func (s *sharer) read(ctx context.Context, token int64) error {
	bg := context.Background()
	s.rdb.Incr(bg, "readers")
	defer s.rdb.Decr(bg, "readers")
	if rand.N(2) == 0 {
		if err := s.rw.RLock(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		defer func() { _ = s.rw.RUnlock() }()
	}
	if s.rdb.Get(bg, "writer").Val() == "1" {
		return errors.New("a reader beside a writer")
	}
	if last, _ := s.rdb.Get(bg, "last").Int64(); token < last {
		return fmt.Errorf("a read token %d after the write token %d", token, last)
	}
	return nil
}

// write fails beside anyone, or after a writer with a later token.
func (s *sharer) write(token int64) error {
	bg := context.Background()
	if s.rdb.SetArgs(bg, "writer", "1", redis.SetArgs{Get: true}).Val() == "1" {
		return errors.New("two writers")
	}
	defer s.rdb.Set(bg, "writer", "0", 0)
	if n := s.rdb.Get(bg, "readers").Val(); n != "" && n != "0" {
		return fmt.Errorf("a writer beside %s readers", n)
	}
	if last, _ := s.rdb.Get(bg, "last").Int64(); token < last {
		return fmt.Errorf("a write token %d after %d", token, last)
	}
	s.rdb.Set(bg, "last", token, 0)
	return nil
}

// Never two truths: eight processes of readers and writers, with nested holds
// and downgrades. RELOCK_LONG=1 makes it a minute for each kind.
func TestReadersAndWritersOfProcessesNeverMeet(t *testing.T) {
	for _, kind := range []string{"plain", "fair"} {
		t.Run(kind, func(t *testing.T) {
			srv := redistest.Real(t)
			span := time.Duration(rig.Rounds(6, 60)) * time.Second
			var children []*child
			var reports []<-chan response
			for range 8 {
				c := spawn(t, srv.Addr())
				children = append(children, c)
				reports = append(reports, c.begin(order{Do: "share", Lock: "x", Kind: kind, TTL: span, N: 65}))
			}
			var grants int64
			for i, c := range children {
				r := c.hear(reports[i])
				if r.Err != "" {
					t.Errorf("child %d: %s", i, r.Err)
				}
				grants += r.N
			}
			if t.Logf("%d grants", grants); grants < 500 {
				t.Error("so few grants show nothing")
			}
			rdb := srv.Client(t)
			rig.Soon(t, func() string {
				if n := rdb.Exists(t.Context(), "relock:q:{x}").Val(); n != 0 {
					return "the queue is still there"
				}
				if rdb.HExists(t.Context(), "relock:h:{x}", "holder").Val() {
					return "what a call that gave up was granted is not released yet"
				}
				return ""
			})
			rig.WantBare(t, rdb, "x")
		})
	}
}
