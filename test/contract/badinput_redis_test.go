package contract_test

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
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// TestKeyOfAnotherTypeIsToldAndLeftAlone: the name's hash is somebody's string.
func TestKeyOfAnotherTypeIsToldAndLeftAlone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		foreign := key.For("relock", "a").Hash
		rig.Must(t, x.Redis.Set(t.Context(), foreign, "mine", time.Hour).Err())
		l := x.Lock("a")
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
		if got := x.Redis.Get(t.Context(), foreign).Val(); got != "mine" {
			t.Errorf("the key is %q now", got)
		}
		x.Server.Direct().Del(foreign)
		x.Frees("a")
	})
}

// TestQueueOfAnotherTypeIsToldAndLeftAlone: the free lock works; who would
// have to queue is told, and the holder is not disturbed.
func TestQueueOfAnotherTypeIsToldAndLeftAlone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		foreign := key.For("relock", "a").Queue
		rig.Must(t, x.Redis.Set(t.Context(), foreign, "mine", time.Hour).Err())
		l, other := x.Lock("a"), x.Lock("a")
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
		virtual.Sleep(time.Minute)
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
		if got := x.Redis.Get(t.Context(), foreign).Val(); got != "mine" {
			t.Errorf("the key is %q now", got)
		}
		x.Server.Direct().Del(foreign)
		x.Frees("a")
	})
}

// TestAWaitFindsAQueueOfAnotherType: the wait on a condition is told, and its caller holds on.
func TestAWaitFindsAQueueOfAnotherType(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		foreign := key.For("relock", "a").Queue
		l := x.Lock("a")
		h := acquire(t, l, t.Context())
		rig.Must(t, x.Redis.Set(t.Context(), foreign, "mine", time.Hour).Err())
		err := l.NewCond("c").Wait(t.Context())
		if short(t, err); !mentions(err, "WRONGTYPE") {
			t.Errorf("Wait = %v, want one that says WRONGTYPE", err)
		}
		virtual.Sleep(time.Minute)
		rig.Must(t, h.Err())
		x.Server.Direct().Del(foreign)
		x.Refuses(x.Lock("a"))
		rig.Must(t, h.Release())
		x.Frees("a")
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
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rdb := x.Server.Client(t)
		l := x.ClientOver(rdb).NewLock("a")
		rig.Must(t, rdb.Close())
		for way, call := range everyAnswer(l) {
			began := time.Now()
			err := call(t.Context())
			short(t, err)
			rig.WantNot(t, err, relock.ErrUnavailable)
			if rig.WantIs(t, err, redis.ErrClosed); t.Failed() {
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
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rdb := x.Server.Client(t)
		c := x.ClientOver(rdb)
		h, l := acquire(t, c.NewLock("a"), t.Context()), c.NewLock("b")
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, rdb.Close())
		began := time.Now()
		err := l.Unlock()
		rig.WantIs(t, err, relock.ErrUnconfirmed, redis.ErrClosed)
		if took := time.Since(began); took > time.Second {
			t.Errorf("Unlock took %v", took)
		}
		virtual.Sleep(20 * time.Second)
		rig.Must(t, h.Err())
		<-h.Lost()
		rig.WantIs(t, h.Release(), relock.ErrLost)
		virtual.Sleep(time.Second)
		x.Frees("a")
		x.Frees("b")
	})
}

func TestWaiterIsToldThatTheRedisClientWasClosed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rdb := x.Server.Client(t)
		l, other := x.Lock("a"), x.ClientOver(rdb).NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		waiter := rig.Beside(func() error { return other.Lock(t.Context()) })
		rig.StillWaits(t, waiter)
		rig.Must(t, rdb.Close())
		virtual.Sleep(time.Minute)
		rig.WantIs(t, rig.Returned(t, waiter), redis.ErrClosed)
		rig.Must(t, l.Unlock())
	})
}

// TestShutdownEndsThoughAReleaseWasNeverConfirmed is the defect that what the
// client had given up releasing, its lease long over, kept Shutdown waiting.
func TestShutdownEndsThoughAReleaseWasNeverConfirmed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rdb := x.Server.Client(t)
		cut, link := x.Linked()
		closed := x.ClientOver(rdb)
		rig.Must(t, cut.NewLock("a").Lock(x.By("me")))
		for _, c := range []*relock.Client{cut, closed} {
			l := c.NewLock("b")
			rig.Must(t, l.Lock(t.Context()))
			waiter := rig.Beside(func() error { return l.Lock(x.By("you")) })
			rig.StillWaits(t, waiter)
			if c == cut {
				link.Cut()
			} else {
				rig.Must(t, rdb.Close())
			}
			rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			if err := c.Shutdown(ctx); err != nil {
				t.Errorf("Shutdown = %v, want nil: nothing is left to wait for", err)
			}
			cancel()
			if err := rig.Returned(t, waiter); err == nil {
				t.Error("the waiter got the lock")
			}
			virtual.Sleep(time.Minute)
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
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			c, link := x.Linked()
			x.Server.FailNext(1_000_000, text, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
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
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			l := x.Lock("a")
			x.Server.FailNext(7, text, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
			rig.Must(t, l.Lock(t.Context()))
			x.Server.FailNext(7, text, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
			rig.Must(t, l.Unlock())
			x.Frees("a")
			x.Server.FailNext(7, text, func(args []string) bool { return args[0] == "evalsha" || args[0] == "eval" })
			_, err := l.TryLock(t.Context(), time.Millisecond)
			rig.WantIs(t, err, relock.ErrUnavailable)
			if text[0] == 'R' {
				wantSays(t, "a replica", err, "connect to the primary")
			}
		})
	}
}

// TestOddInputAgainstRealRedis repeats what rests on Redis' own strings and patterns.
func TestOddInputAgainstRealRedis(t *testing.T) {
	rdb := redistest.Real(t).Client(t)
	c, err := relock.New(rdb)
	rig.Must(t, err)
	defer func() { _ = c.Close() }()
	for _, text := range []string{" ", "{a}", "}{", "%s%", "ключ 🔒", "KEYS[1]", "a b  c"} {
		for _, owner := range []string{text, "a\x00b", "\n", " ", "w 1 1 x y 1 1 0 99999999999999"} {
			l := c.NewLock(text)
			ctx := relock.WithOwner(t.Context(), owner)
			rig.Must(t, l.Lock(ctx))
			rig.Must(t, l.Lock(ctx))
			info, err := l.Info(t.Context())
			rig.Must(t, err)
			if len(info.Holders) != 1 || info.Holders[0].Owner != owner || info.Holders[0].Holds != 2 {
				t.Errorf("lock %q of %q: %+v", text, owner, info)
			}
			if got, err := l.TryLock(t.Context(), time.Millisecond); got || err != nil && !rig.Unheard(err) {
				t.Errorf("TryLock = %v, %v, want false, nil", got, err)
			}
			rig.Must(t, l.Unlock())
			rig.Must(t, l.Unlock())
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
