package relock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/key"
)

// nowhere is a client that no test asks anything.
func nowhere(f *testing.F) *redis.Client {
	f.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	f.Cleanup(func() { rdb.Close() })
	return rdb
}

// FuzzDurations: a duration is taken as it is, or refused by the rule its
// documentation states.
func FuzzDurations(f *testing.F) {
	for _, d := range []time.Duration{0, -1, 1, time.Millisecond, 100 * time.Millisecond, 100*time.Millisecond - 1, time.Second, 24 * time.Hour, 24*time.Hour + time.Millisecond, 1<<63 - 1, -1 << 63} {
		f.Add(int64(d))
	}
	rdb := nowhere(f)
	f.Fuzz(func(t *testing.T, ns int64) {
		d := time.Duration(ns)
		c, err := New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l := c.NewLock("l", TTL(d))
		wantDuration(t, "TTL", d, l.terms.TTL, l.err, 100*time.Millisecond, 24*time.Hour)
		l = c.NewLock("l", MaxHold(d))
		wantDuration(t, "MaxHold", d, l.terms.MaxHold, l.err, time.Millisecond, 10*365*24*time.Hour)

		c, err = New(rdb, ReleaseTimeout(d))
		var release, keep time.Duration
		if err == nil {
			release = c.cfg.releaseTimeout
			c.Close()
		}
		wantDuration(t, "ReleaseTimeout", d, release, err, time.Millisecond, time.Hour)
		c, err = New(rdb, TokenKeep(d))
		if err == nil {
			keep = c.cfg.tokenKeep
			c.Close()
		}
		wantDuration(t, "TokenKeep", d, keep, err, time.Minute, 24*time.Hour)
	})
}

func wantDuration(t *testing.T, what string, d, got time.Duration, err error, least, most time.Duration) {
	t.Helper()
	good := d >= least && d <= most && d.Truncate(time.Millisecond) == d
	switch {
	case good && (err != nil || got != d):
		t.Errorf("%s(%v) is taken as %v, %v", what, d, got, err)
	case !good && !errors.Is(err, ErrInvalidOption):
		t.Errorf("%s(%v) is taken as %v, %v", what, d, got, err)
	}
}

// FuzzNamesAndOwners: a bad name, prefix or owner is refused before Redis is
// asked, with the error that says so; a good one is kept byte for byte.
func FuzzNamesAndOwners(f *testing.F) {
	for _, s := range []string{"", "a", "{a}", "\x00", "\xff", "ключ", strings.Repeat("x", 512), strings.Repeat("x", 513), "a\nb", "*", "a b"} {
		f.Add(s)
	}
	rdb := nowhere(f)
	f.Fuzz(func(t *testing.T, s string) {
		c, err := New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		err = c.NewLock(s).err
		if (err == nil) != (key.CheckName(s) == nil) || err != nil && !errors.Is(err, ErrInvalidName) {
			t.Errorf("name %q: %v", s, err)
		}
		good := s != "" && len(s) <= 512 && utf8.ValidString(s)
		l := c.NewLock("l", Owner(s))
		if good && (l.err != nil || l.terms.owner != s) || !good && !errors.Is(l.err, ErrInvalidOption) {
			t.Errorf("owner %q is taken as %q, %v", s, l.terms.owner, l.err)
		}
		ctx, cancel := context.WithCancel(WithOwner(t.Context(), s))
		if got, ok := OwnerFrom(ctx); !ok || got != s {
			t.Errorf("owner %q travels as %q", s, got)
		}
		cancel() // so that Redis is not asked
		if err := c.NewLock("l").Lock(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("owner %q under an ended context: %v", s, err)
		}
		if p, err := New(rdb, KeyPrefix(s)); err == nil {
			p.Close()
			if key.CheckPrefix(s) != nil {
				t.Errorf("prefix %q is taken", s)
			}
		} else if key.CheckPrefix(s) == nil || !errors.Is(err, ErrInvalidOption) {
			t.Errorf("prefix %q: %v", s, err)
		}
	})
}
