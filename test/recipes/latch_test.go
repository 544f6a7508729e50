package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// A latch opens when each of its parts is done, in whichever processes. It stays open.
type latch struct {
	lock  *relock.Lock
	done  *relock.Cond
	rdb   *redis.Client
	key   string // in Redis: the parts that are done
	parts int
}

func newLatch(client *relock.Client, rdb *redis.Client, name string, parts int) *latch {
	lock := client.NewLock("latches/" + name)
	return &latch{lock: lock, done: lock.NewCond("done"), rdb: rdb, key: "done:" + name, parts: parts}
}

// Done says that a part is done. A part that is done twice counts once, so a job that fails may call it again.
func (l *latch) Done(ctx context.Context, part string) error {
	return l.lock.Do(ctx, func(ctx context.Context) error {
		if err := l.rdb.SAdd(ctx, l.key, part).Err(); err != nil {
			return err
		}
		return l.done.Broadcast(ctx)
	})
}

// Wait returns nil when all parts are done. After an error call it again. Once ctx has ended, it returns when it has
// got the lock back.
func (l *latch) Wait(ctx context.Context) error {
	return l.lock.Do(ctx, func(ctx context.Context) error {
		for {
			n, err := l.rdb.SCard(ctx, l.key).Result()
			if err != nil || n >= int64(l.parts) {
				return err
			}
			// It looks again after a minute: a process may have died after SAdd and before Broadcast.
			if _, err = l.done.WaitFor(ctx, time.Minute); err != nil {
				return err
			}
		}
	})
}

// inFleet runs a test in virtual time, with a new process's latch for each call of join.
func inFleet(t *testing.T, test func(t *testing.T, rdb *redis.Client, join func() *latch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		rdb := srv.Redis()
		test(t, rdb, func() *latch { return newLatch(srv.Client(), rdb, "import", 2) })
	})
}

func TestLatchOpensInEveryProcessWhenAllPartsAreDone(t *testing.T) {
	inFleet(t, func(t *testing.T, _ *redis.Client, join func() *latch) {
		opened := make(chan error, 2)
		for range cap(opened) {
			waiter := join()
			go func() { opened <- waiter.Wait(t.Context()) }()
		}
		workers := join()
		for _, part := range []string{"customers", "customers", "orders"} {
			virtual.Sleep(time.Second)
			if len(opened) > 0 {
				t.Fatal("it opened before all parts were done")
			}
			if err := workers.Done(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		for range cap(opened) {
			if err := <-opened; err != nil {
				t.Error(err)
			}
		}
		if waited := time.Since(begun); waited >= time.Second {
			t.Errorf("the waiters were told %v after the last part", waited)
		}
		if err := join().Wait(t.Context()); err != nil {
			t.Errorf("a wait at an open latch: %v", err)
		}
	})
}

func TestLatchOpensAfterAProcessThatDiedBeforeItsBroadcast(t *testing.T) {
	inFleet(t, func(t *testing.T, rdb *redis.Client, join func() *latch) {
		waiter, opened := join(), make(chan error, 1)
		go func() { opened <- waiter.Wait(t.Context()) }()
		virtual.Sleep(time.Second) // it waits
		if err := rdb.SAdd(t.Context(), waiter.key, "customers", "orders").Err(); err != nil {
			t.Fatal(err)
		}
		if err := <-opened; err != nil {
			t.Error(err)
		}
	})
}

func TestWaitAtALatchEndsWithItsContext(t *testing.T) {
	inFleet(t, func(t *testing.T, _ *redis.Client, join func() *latch) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := join().Wait(ctx); err == nil {
			t.Error("it opened though no part was done")
		}
	})
}

func TestWaitAtALatchThatIsGivenUpStillWaitsForTheLock(t *testing.T) {
	inFleet(t, func(t *testing.T, _ *redis.Client, join func() *latch) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		waiter, ended := join(), make(chan error, 1)
		go func() { ended <- waiter.Wait(ctx) }()
		virtual.Sleep(time.Second) // it waits
		other := join()
		err := other.lock.Do(t.Context(), func(ctx context.Context) error {
			virtual.Sleep(time.Minute)
			if len(ended) > 0 {
				t.Error("it returned without the lock")
			}
			return ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the time was over", err)
		}
		go func() { ended <- waiter.Wait(t.Context()) }() // it may be called again
		for _, part := range []string{"customers", "orders"} {
			if err := other.Done(t.Context(), part); err != nil {
				t.Error(err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
