package contract_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// short asserts that an error can be read: it quotes no page of input, and begins as
// all errors of this package do.
func short(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	if text := err.Error(); len(text) > 2500 || !strings.HasPrefix(text, "relock: ") {
		t.Errorf("%d bytes of error: %.200s", len(text), text)
	}
}

// everyAnswer is each call of a handle that can fail, as one that returns its error.
func everyAnswer(l *relock.Lock) map[string]func(context.Context) error {
	all := everyWay(l)
	all["Info"] = func(ctx context.Context) error { _, err := l.Info(ctx); return err }
	all["Waiters"] = func(ctx context.Context) error { _, err := l.Waiters(ctx); return err }
	all["ForceUnlockHolder"] = func(ctx context.Context) error {
		_, err := l.ForceUnlockHolder(ctx, relock.Holder{Owner: "x", Token: 1})
		return err
	}
	all["ForceUnlock"] = func(ctx context.Context) error { _, err := l.ForceUnlock(ctx); return err }
	return all
}

func TestBadNamesFailEveryCall(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		for _, name := range []string{
			"", strings.Repeat("x", 513), strings.Repeat("y", 64<<10), strings.Repeat("\x00", 64<<10),
			"a\x00b", "\xff\xfe", "a\nb", "\x7f", "a\r\n", "\u0085",
		} {
			l := c.NewLock(name)
			for way, call := range everyAnswer(l) {
				err := call(t.Context())
				short(t, err)
				if rig.WantIs(t, err, relock.ErrInvalidName); t.Failed() {
					t.Fatalf("%s of %.20q", way, name)
				}
			}
			rig.WantIs(t, l.Unlock(), relock.ErrInvalidName)
			if l.HoldCount() != 0 || l.Token() != 0 || l.Lost() != nil || l.Name() != name {
				t.Errorf("%.20q holds something", name)
			}
		}
		if link.Dials() != 0 {
			t.Errorf("%d connections for bad names, want none", link.Dials())
		}
	})
}

// TestOddNamesAreLocksOfTheirOwn: each is held while all the others are, and each waited for.
func TestOddNamesAreLocksOfTheirOwn(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		here, there := x.Client(), x.Client()
		names := []string{
			" ", "a", "{a}", "{a", "a}", "}{", "{}", "{}a", "{{a}}", "%", "%7Ba%7D", "a:b", "h:{a}", "relock:h:{a}",
			"*", "?[x]\\", "ключ", "🔒", "a b", "'\"", strings.Repeat("x", 512), "KEYS[1]", "\u00a0", "{a}:{b}",
		}
		for _, name := range names {
			rig.Must(t, here.NewLock(name).Lock(t.Context()))
		}
		for _, name := range names {
			l := there.NewLock(name)
			x.Refuses(l)
			if got, err := l.TryLock(t.Context(), time.Second); got || err != nil {
				t.Errorf("%q: TryLock = %v, %v, want false, nil", name, got, err)
			}
			if forced, err := l.ForceUnlock(t.Context()); !forced || err != nil {
				t.Errorf("%q: ForceUnlock = %v, %v, want true, nil", name, forced, err)
			}
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
		}
	})
}

// TestOddOwnersAreOwners: what they hold, what they wait for, and how both are told.
func TestOddOwnersAreOwners(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, owner := range []string{
			" ", "a b", " a", "a ", "{a}", "%s", "\x00", "a\x00b", "\n", "a\nb", "0", "-1", "w 1 1", "ключ", strings.Repeat("o", 512),
			"c n 1 1 0 99999999999999",
		} {
			c, there := x.Client(), x.Client()
			l, other := c.NewLock("a"), there.NewLock("a")
			rig.Must(t, l.Lock(x.By(owner)))
			rig.Must(t, l.Lock(x.By(owner)))
			rig.Must(t, other.Lock(x.By(owner)))
			x.Holders(l, owner, 3)
			next := rig.Beside(func() error { return other.Lock(x.By(owner + "'")) })
			if len(owner) == 512 {
				rig.WantIs(t, <-next, relock.ErrInvalidOption)
			} else {
				x.Waits(l, owner+"'")
			}
			virtual.Sleep(time.Minute)
			for range 2 {
				rig.Must(t, l.Unlock())
			}
			rig.Must(t, other.Unlock())
			if len(owner) < 512 {
				rig.Must(t, rig.Returned(t, next))
				rig.Must(t, other.Unlock())
			}
			x.Frees("a")
		}
	})
}

// badOptions of a handle, for a lock whose TTL is a second.
var badOptions = map[string]relock.LockOption{
	"nil":              nil,
	"no owner":         relock.Owner(""),
	"long owner":       relock.Owner(strings.Repeat("o", 64<<10)),
	"binary owner":     relock.Owner("\xff"),
	"no TTL":           relock.TTL(0),
	"negative TTL":     relock.TTL(-time.Second),
	"tiny TTL":         relock.TTL(99 * time.Millisecond),
	"a nanosecond":     relock.TTL(1),
	"huge TTL":         relock.TTL(24*time.Hour + time.Millisecond),
	"hugest TTL":       relock.TTL(math.MaxInt64),
	"smallest TTL":     relock.TTL(math.MinInt64),
	"fractional TTL":   relock.TTL(time.Second + time.Microsecond),
	"no MaxHold":       relock.MaxHold(0),
	"negative MaxHold": relock.MaxHold(-1),
	"huge MaxHold":     relock.MaxHold(math.MaxInt64),
	"no replicas":      relock.Replicas(0, 100*time.Millisecond),
	"too many":         relock.Replicas(17, 100*time.Millisecond),
	"no time":          relock.Replicas(1, 0),
	"fraction of a ms": relock.Replicas(1, time.Millisecond+1),
	"more than 10 s":   relock.Replicas(1, 10*time.Second+time.Millisecond),
	"half of the TTL":  relock.Replicas(1, 8*time.Second),
}

func TestBadOptionsOfAHandleFailEveryCall(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		for what, option := range badOptions {
			l := c.NewLock("a", relock.TTL(time.Second), option)
			for way, call := range everyAnswer(l) {
				err := call(t.Context())
				short(t, err)
				if rig.WantIs(t, err, relock.ErrInvalidOption); t.Failed() {
					t.Fatalf("%s with %s", way, what)
				}
			}
			if _, err := relock.New(x.Redis, relock.Defaults(option)); err == nil {
				t.Errorf("Defaults takes %s", what)
			} else {
				short(t, err)
				rig.WantIs(t, err, relock.ErrInvalidOption)
			}
		}
		if link.Dials() != 0 {
			t.Errorf("%d connections for bad options, want none", link.Dials())
		}
	})
}

// TestReplicasTimeoutIsBoundedByTheReadTimeout: the redis client would end the
// wait before the server does.
func TestReplicasTimeoutIsBoundedByTheReadTimeout(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		limit := x.Redis.Options().ReadTimeout
		ttl := relock.TTL(time.Minute)
		rig.WantIs(t, x.Lock("a", ttl, relock.Replicas(1, limit)).Lock(t.Context()), relock.ErrInvalidOption)
		rig.WantIs(t, x.Lock("a", ttl, relock.Replicas(1, limit-time.Millisecond)).Lock(t.Context()), relock.ErrReplicas)
		rig.WantIs(t, x.Lock("a", relock.Replicas(1, 250*time.Millisecond), relock.TTL(time.Second)).Lock(t.Context()), relock.ErrReplicas)
	})
}

// No replica follows the server, so what is allowed is ErrReplicas.
// Fails when a bound is another than the documentation says, to either side.
func TestReplicasHaveTheBoundsThatAreDocumented(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.ClientOver(x.Server.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute }))
		for _, row := range []struct {
			n           int
			within, ttl time.Duration
			want        error
		}{
			{1, time.Millisecond, 30 * time.Second, relock.ErrReplicas},
			{16, time.Millisecond, 30 * time.Second, relock.ErrReplicas},
			{17, time.Millisecond, 30 * time.Second, relock.ErrInvalidOption},
			{1, 10 * time.Second, 40 * time.Second, relock.ErrReplicas},
			{1, 10*time.Second + time.Millisecond, time.Minute, relock.ErrInvalidOption},
			{1, 250 * time.Millisecond, time.Second, relock.ErrReplicas},
			{1, 251 * time.Millisecond, time.Second, relock.ErrInvalidOption},
		} {
			err := c.NewLock("a", relock.Replicas(row.n, row.within), relock.TTL(row.ttl)).Lock(t.Context())
			if !errors.Is(err, row.want) {
				t.Errorf("Replicas(%d, %v) with a TTL of %v: %v, want %v", row.n, row.within, row.ttl, err, row.want)
			}
		}
	})
}

func TestTTLBoundsAreAllowed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, ttl := range []time.Duration{100 * time.Millisecond, 101 * time.Millisecond, 24 * time.Hour} {
			l := x.Lock("a", relock.TTL(ttl))
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
		}
	})
}

func TestBadOptionsOfAClient(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
	defer rdb.Close()
	for what, option := range map[string]relock.Option{
		"nil":                     nil,
		"nil in Defaults":         relock.Defaults(nil),
		"Owner in Defaults":       relock.Defaults(relock.Owner("me")),
		"bad Owner in Defaults":   relock.Defaults(relock.Owner("")),
		"nil Logger":              relock.Logger(nil),
		"no prefix":               relock.KeyPrefix(""),
		"long prefix":             relock.KeyPrefix(strings.Repeat("p", 64<<10)),
		"prefix with braces":      relock.KeyPrefix("{a}"),
		"prefix with a pattern":   relock.KeyPrefix("a*"),
		"prefix with NUL":         relock.KeyPrefix("a\x00"),
		"binary prefix":           relock.KeyPrefix("\xff"),
		"no ReleaseTimeout":       relock.ReleaseTimeout(0),
		"negative ReleaseTimeout": relock.ReleaseTimeout(-time.Second),
		"huge ReleaseTimeout":     relock.ReleaseTimeout(math.MaxInt64),
		"no TokenKeep":            relock.TokenKeep(0),
		"huge TokenKeep":          relock.TokenKeep(math.MaxInt64),
	} {
		c, err := relock.New(rdb, option)
		if rig.WantIs(t, err, relock.ErrInvalidOption); c != nil || t.Failed() {
			t.Fatalf("%s: client %v", what, c)
		}
		short(t, err)
	}
	for _, good := range []relock.Option{
		relock.Defaults(), relock.Defaults(relock.TTL(time.Minute), relock.NoWatchdog()), relock.KeyPrefix("a:b"), relock.Trace(relock.Hooks{}),
	} {
		c, err := relock.New(rdb, good)
		rig.Must(t, err)
		rig.Must(t, c.Close())
	}
}

// Several Defaults add up. Fails when the last ones end what those before them have set, or the first TTL counts.
func TestDefaultsAreWhatHandlesDoNotSay(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		first, last := relock.Defaults(relock.TTL(20*time.Second), relock.NoWatchdog()), relock.Defaults(relock.TTL(10*time.Second))
		c := x.Client(first, last)
		a, b := c.NewLock("a"), c.NewLock("b", relock.TTL(time.Minute))
		rig.Must(t, a.Lock(t.Context()))
		rig.Must(t, b.Lock(t.Context()))
		virtual.Sleep(11 * time.Second)
		rig.WantIs(t, a.Unlock(), relock.ErrLost)
		rig.Must(t, b.Unlock())
	})
}
