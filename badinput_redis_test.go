package relock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
)

// TestKeyOfAnotherTypeIsToldAndLeftAlone: the name's hash is somebody's string.
func TestKeyOfAnotherTypeIsToldAndLeftAlone(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		foreign := key.For("relock", "a").Hash
		noErr(t, x.rdb.Set(t.Context(), foreign, "mine", time.Hour).Err())
		l := x.lock("a")
		for way, call := range everyAnswer(l) {
			began := time.Now()
			err := call(t.Context())
			short(t, err)
			if !mentions(err, "WRONGTYPE") {
				t.Errorf("%s = %v, want one that says WRONGTYPE", way, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s took %v, want the answer at once", way, took)
			}
		}
		if got := x.rdb.Get(t.Context(), foreign).Val(); got != "mine" {
			t.Errorf("the key is %q now", got)
		}
		x.srv.Direct().Del(foreign)
		x.frees("a")
	})
}

// TestQueueOfAnotherTypeIsToldAndLeftAlone: the free lock works; who would
// have to queue is told, and the holder is not disturbed.
func TestQueueOfAnotherTypeIsToldAndLeftAlone(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		foreign := key.For("relock", "a").Queue
		noErr(t, x.rdb.Set(t.Context(), foreign, "mine", time.Hour).Err())
		l, other := x.lock("a"), x.lock("a")
		h := acquire(t, l, t.Context())
		for range 3 {
			err := other.Lock(t.Context())
			if short(t, err); !mentions(err, "WRONGTYPE") {
				t.Errorf("Lock = %v, want one that says WRONGTYPE", err)
			}
			_, err = other.Info(t.Context())
			if short(t, err); !mentions(err, "WRONGTYPE") {
				t.Errorf("Info = %v, want one that says WRONGTYPE", err)
			}
		}
		time.Sleep(time.Minute)
		noErr(t, h.Err())
		noErr(t, h.Release())
		if got := x.rdb.Get(t.Context(), foreign).Val(); got != "mine" {
			t.Errorf("the key is %q now", got)
		}
		x.srv.Direct().Del(foreign)
		x.frees("a")
	})
}

// mentions looks into the text: the virtual server says more than the code
// where a script met the error.
func mentions(err error, code string) bool {
	var answer redis.Error
	return errors.As(err, &answer) && strings.Contains(answer.Error(), code)
}

// TestClosedRedisClientIsToldAtOnce, by calls that could wait for ever too.
func TestClosedRedisClientIsToldAtOnce(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		rdb := x.srv.Client(t)
		l := x.clientOver(rdb).NewLock("a")
		noErr(t, rdb.Close())
		for way, call := range everyAnswer(l) {
			began := time.Now()
			err := call(t.Context())
			short(t, err)
			if wantIs(t, err, redis.ErrClosed); t.Failed() {
				t.Fatal(way)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s took %v, want the answer at once", way, took)
			}
		}
	})
}

// TestRedisClientClosedUnderAHold: the hold lasts for its lease, and Unlock
// does not wait for what cannot come.
func TestRedisClientClosedUnderAHold(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		rdb := x.srv.Client(t)
		c := x.clientOver(rdb)
		h, l := acquire(t, c.NewLock("a"), t.Context()), c.NewLock("b")
		noErr(t, l.Lock(t.Context()))
		noErr(t, rdb.Close())
		began := time.Now()
		err := l.Unlock()
		wantIs(t, err, relock.ErrUnconfirmed, redis.ErrClosed)
		if took := time.Since(began); took > time.Second {
			t.Errorf("Unlock took %v", took)
		}
		time.Sleep(20 * time.Second)
		noErr(t, h.Err())
		<-h.Lost()
		wantIs(t, h.Release(), relock.ErrLost)
		time.Sleep(time.Second)
		x.frees("a")
		x.frees("b")
	})
}

func TestWaiterIsToldThatTheRedisClientWasClosed(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		rdb := x.srv.Client(t)
		l, other := x.lock("a"), x.clientOver(rdb).NewLock("a")
		noErr(t, l.Lock(t.Context()))
		waiter := beside(func() error { return other.Lock(t.Context()) })
		stillWaits(t, waiter)
		noErr(t, rdb.Close())
		time.Sleep(time.Minute)
		wantIs(t, hasReturned(t, waiter), redis.ErrClosed)
		noErr(t, l.Unlock())
	})
}

// TestShutdownEndsThoughAReleaseWasNeverConfirmed is the defect that what the
// client had given up releasing, its lease long over, kept Shutdown waiting.
func TestShutdownEndsThoughAReleaseWasNeverConfirmed(t *testing.T) {
	inLab(t, func(t *testing.T, x *lab) {
		rdb := x.srv.Client(t)
		cut, link := x.linked()
		closed := x.clientOver(rdb)
		noErr(t, cut.NewLock("a").Lock(x.by("me")))
		for _, c := range []*relock.Client{cut, closed} {
			l := c.NewLock("b")
			noErr(t, l.Lock(t.Context()))
			waiter := beside(func() error { return l.Lock(x.by("you")) })
			stillWaits(t, waiter)
			if c == cut {
				link.Cut()
			} else {
				noErr(t, rdb.Close())
			}
			wantIs(t, l.Unlock(), relock.ErrUnconfirmed)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			if err := c.Shutdown(ctx); err != nil {
				t.Errorf("Shutdown = %v, want nil: nothing is left to wait for", err)
			}
			cancel()
			if err := hasReturned(t, waiter); err == nil {
				t.Error("the waiter got the lock")
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestRefusalsAreToldAtOnce: by a server that wants a password, or does not allow the script.
func TestRefusalsAreToldAtOnce(t *testing.T) {
	for _, text := range []string{
		"NOAUTH Authentication required.",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"OOM command not allowed when used memory > 'maxmemory'.",
	} {
		inLab(t, func(t *testing.T, x *lab) {
			c, link := x.linked()
			x.srv.FailNext(1_000_000, text, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
			for way, call := range everyAnswer(c.NewLock("a")) {
				before := link.Commands()["evalsha"]
				err := call(t.Context())
				if short(t, err); !mentions(err, text[:4]) {
					t.Errorf("%s = %v, want one that says %s", way, err, text)
				}
				if n := link.Commands()["evalsha"] - before; n > 2 {
					t.Errorf("%s asked %d times", way, n)
				}
			}
		})
	}
}

// TestPassingErrorsAreWaitedOut: a server that loads its data, or has no primary yet.
func TestPassingErrorsAreWaitedOut(t *testing.T) {
	for _, text := range []string{"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica."} {
		inLab(t, func(t *testing.T, x *lab) {
			l := x.lock("a")
			x.srv.FailNext(7, text, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
			noErr(t, l.Lock(t.Context()))
			x.srv.FailNext(7, text, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
			noErr(t, l.Unlock())
			x.frees("a")
		})
	}
}

// TestOddInputAgainstRealRedis repeats what rests on Redis' own strings and patterns.
func TestOddInputAgainstRealRedis(t *testing.T) {
	rdb := redistest.Real(t).Client(t)
	c, err := relock.New(rdb)
	noErr(t, err)
	defer func() { _ = c.Close() }()
	for _, text := range []string{" ", "{a}", "}{", "%s%", "ключ 🔒", "KEYS[1]", "a b  c"} {
		for _, owner := range []string{text, "a\x00b", "\n", " ", "w 1 1 x y 1 1 0 99999999999999"} {
			l := c.NewLock(text)
			ctx := relock.WithOwner(t.Context(), owner)
			noErr(t, l.Lock(ctx))
			noErr(t, l.Lock(ctx))
			info, err := l.Info(t.Context())
			noErr(t, err)
			if len(info.Holders) != 1 || info.Holders[0].Owner != owner || info.Holders[0].Holds != 2 {
				t.Errorf("lock %q of %q: %+v", text, owner, info)
			}
			if got, err := l.TryLock(t.Context(), time.Millisecond); got || err != nil && !unheard(err) {
				t.Errorf("TryLock = %v, %v, want false, nil", got, err)
			}
			noErr(t, l.Unlock())
			noErr(t, l.Unlock())
		}
		for k, d := range ttls(t, rdb) {
			if d <= 0 {
				t.Errorf("%q stays in Redis for ever", k)
			}
		}
	}
}

func ttls(t testing.TB, rdb *redis.Client) map[string]time.Duration {
	t.Helper()
	all := map[string]time.Duration{}
	for _, k := range rdb.Keys(t.Context(), "*").Val() {
		all[k] = rdb.PTTL(t.Context(), k).Val()
	}
	return all
}
