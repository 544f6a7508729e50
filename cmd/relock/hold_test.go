//go:build unix

package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

func TestHoldHoldsUntilASignal(t *testing.T) {
	w := newWorld(t)
	p := w.start("hold", "-json", "-fair", "x")
	if line := p.next(); !strings.HasPrefix(line, `{"event":"held","name":"x","token":`) {
		t.Errorf("hold says %q", line)
	}
	if info := w.info("x"); len(info.Holders) != 1 || info.Kind != "fair" {
		t.Errorf("redis has %+v, want one holder of a fair lock", info)
	}
	p.signal(syscall.SIGINT)
	if line := p.next(); !strings.HasPrefix(line, `{"event":"released","name":"x","token":`) {
		t.Errorf("hold says %q at its end", line)
	}
	p.wantStatus(0)
	w.wantFree("x")
}

func TestHoldEndsByItselfAndWhenItIsLost(t *testing.T) {
	w := newWorld(t)
	if status, out, complaint := w.relock("hold", "x", "-for", ".05"); status != 0 || strings.Count(out, "\n") != 2 || complaint != "" {
		t.Errorf("-for: status %d, %q, %q", status, out, complaint)
	}
	w.wantFree("x")
	p := w.start("hold", "x", "-q", "-ttl", soon)
	for last := time.Hour; t.Context().Err() == nil; { // it says nothing, but it has renewed once it knows that it holds
		if all := w.info("x").Holders; len(all) > 0 {
			if all[0].TTL > last {
				break
			}
			last = all[0].TTL
		}
	}
	if status, _, complaint := w.relock("unlock", "-force", "x"); status != 0 {
		t.Fatal(complaint)
	}
	if out := p.wantEnd(); len(out) > 0 {
		t.Errorf("-q: it says %q", out)
	}
	p.wantStatus(exitLost)
	if p.complain.Len() > 0 {
		t.Errorf("-q: it complains %q", p.complain.String())
	}
}

func TestWaitEndsWhenTheLockIsFree(t *testing.T) {
	w := newWorld(t)
	if status, out, _ := w.relock("wait", "x"); status != 0 || out != "x is free\n" {
		t.Errorf("a free lock: status %d, %q", status, out)
	}
	if status, out, complaint := w.relock("wait", "x", "-q"); status != 0 || out+complaint != "" {
		t.Errorf("a free lock, -q: status %d, %q, %q", status, out, complaint)
	}
	h := w.hold("x")
	for _, wait := range []string{"0", ".3"} {
		status, out, complaint := w.relock("wait", "x", "-wait", wait)
		if status != exitNotAcquired || out != "" || !strings.Contains(complaint, `"x" is still held`) {
			t.Errorf("-wait %s: status %d, %q, %q", wait, status, out, complaint)
		}
	}
	if status, out, complaint := w.relock("wait", "-json", "-q", "x", "-wait", "0"); status != exitNotAcquired || !strings.HasPrefix(out, `{"name":"x","free":false,`) || complaint != "" {
		t.Errorf("-json -q: status %d, %q, %q", status, out, complaint)
	}
	p, stopped := w.start("wait", "x"), w.start("wait", "x")
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	p.want("x is free")
	p.wantStatus(0)
	stopped.wantStatus(0)
	if info := w.info("x"); info.Waiters != 0 || len(info.Holders) != 0 {
		t.Errorf("redis has %+v, want nobody", info)
	}
}

// Fails when Redis is asked more seldom, or more often, than the help says.
func TestAWaitAsksFiveTimesASecond(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := rig.MustAcquire(t, x.Lock("x"))
		rig.LoadScripts(t, x.Redis) // else the first of a script is sent twice
		c, link := x.Linked()
		asked := rig.Count(link, "info")
		p := patience{bounded: true, wait: 2 * time.Second}
		if info, err := p.awaitFree(t.Context(), c.NewLock("x"), time.Now(), new(outage)); err != nil || len(info.Holders) != 1 || *asked != 11 {
			t.Errorf("%+v, %v, asked %d times, want 11: at first, and ten in 2 s", info, err, *asked)
		}
		rig.Must(t, h.Release())
	})
}

// Redis answers that the lock is held, and nothing after that; or not who the holder is. The
// wait ends all the same.
func TestWaitEndsThoughRedisFallsSilentMeanwhile(t *testing.T) {
	w, m := newWorldOf(t)
	h := w.hold("x")
	w = worldAt(t, "redis://"+m.Addr()+"/?read_timeout=20s") // for what is waited for at the end
	was := farewell
	farewell = 20 * time.Second
	defer func() { farewell = was }()
	var scripts, answered atomic.Int64
	answered.Store(math.MaxInt64)
	m.Server().SetPreHook(func(_ *miniserver.Peer, cmd string, _ ...string) bool {
		return strings.HasPrefix(cmd, "EVAL") && scripts.Add(1) > answered.Load()
	})
	for range 2 { // the first has Redis load what it runs
		scripts.Store(0)
		w.relock("wait", "x", "-wait", "0")
	}
	whole := scripts.Load() // what it runs to ask once, at the end for whom
	for missing, want := range map[int64][]int{0: {exitUnavailable}, 1: {exitUnavailable, exitNotAcquired}} {
		scripts.Store(0)
		answered.Store(whole - missing)
		began := time.Now()
		status, _, complaint := w.relock("wait", "x", "-wait", "1s")
		if took := time.Since(began); !slices.Contains(want, status) || took > 4*time.Second {
			t.Errorf("%d not answered at first: status %d after %v, want one of %d within the wait; complaint %q", missing, status, took, want, complaint)
		}
	}
	m.Server().SetPreHook(nil)
	if err := h.Release(); err != nil {
		t.Error(err)
	}
}

// Redis refuses the release. Fails when hold says that it has released.
func TestAHoldWhoseReleaseIsNotConfirmedDoesNotSayReleased(t *testing.T) {
	w, srv := newWorldOf(t)
	p := w.start("hold", "x")
	if said := p.next(); !strings.HasPrefix(said, "x: held, token ") {
		t.Fatalf("it says %q", said)
	}
	srv.SetError("ERR refused")
	p.signal(15)
	rest := p.wantEnd()
	p.wantStatus(exitUnavailable)
	srv.SetError("")
	if complaint := p.complain.String(); len(rest) > 0 || !strings.HasPrefix(complaint, "relock: ") || !strings.Contains(complaint, "the hold ends with its lease") {
		t.Errorf("it says %q, complaint %q", rest, complaint)
	}
}

// Redis falls silent before the release, and the program ends.
// Fails when it says that anybody goes on trying.
func TestAProgramThatEndsDoesNotSayThatItGoesOnTrying(t *testing.T) {
	w, m := newWorldOf(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer rdb.Close()
	locks, err := relock.New(rdb, relock.ReleaseTimeout(10*time.Millisecond))
	if err != nil {
		w.Fatal(err)
	}
	defer locks.Close()
	hold, err := locks.NewLock("x").Acquire(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	fallSilent(t, m)()
	err = hold.Release()
	if got := trimName(unreleased{err}); !errors.Is(err, relock.ErrUnconfirmed) || strings.Contains(got, "trying") || !strings.HasSuffix(got, "; the hold ends with its lease") {
		t.Errorf("%q of %v, want what is so once the program has ended", got, err)
	}
}
