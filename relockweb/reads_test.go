package relockweb_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relockweb"
)

// linked is a dashboard behind a link of its own, and how often it has asked about a lock.
func (b *board) linked() (link *redistest.Link, asked func() int) {
	b.Helper()
	rig.LoadScripts(b.T, b.x.Redis) // else the first of a script is sent twice
	c, link := b.x.Linked()
	b.Handler = relockweb.Handler(c)
	var mu sync.Mutex
	n := 0
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if rig.Runs(cmd, "info") {
			mu.Lock()
			defer mu.Unlock()
			n++
		}
		return redistest.Pass
	})
	return link, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

func TestAllWhoLookShareOneRead(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a")
		_, asked := b.linked()
		look := func(address string) {
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() { b.get(address, http.StatusOK) })
			}
			all.Wait()
		}
		look("/")
		look("/locks.json?prefix=a")
		if n := asked(); n != 1 {
			t.Errorf("a hundred looks at the list cost %d reads, want 1", n)
		}
		look("/lock?name=a")
		look("/lock.json?name=a")
		if n := asked(); n != 2 {
			t.Errorf("a hundred looks at a lock cost %d reads more, want 1", n-1)
		}
		virtual.Sleep(2 * time.Second)
		look("/")
		if n := asked(); n != 3 {
			t.Errorf("%d reads, want 3: what is shown is two seconds old", n)
		}
	})
}

// Over a link of 200 ms each way a read takes long: those of one kind begin 24 times as long apart, and
// whoever looks in between is shown what is known, or told to come again, within a second.
func TestReadsThatTakeLongComeSeldom(t *testing.T) {
	run(t, func(b *board) {
		for _, name := range []string{"a", "b", "c"} {
			b.hold("x", name)
		}
		link, asked := b.linked()
		b.get("/lock?name=a", http.StatusOK)
		virtual.Sleep(time.Minute)
		before := asked()
		link.Latency(200 * time.Millisecond)
		began := time.Now()
		for time.Since(began) < time.Minute {
			for _, name := range []string{"a", "b", "c"} {
				asked := time.Now()
				w := b.do(httptest.NewRequest(http.MethodGet, "/lock?name="+name, nil))
				if took := time.Since(asked); took > time.Second || w.Code != http.StatusOK && w.Code != http.StatusServiceUnavailable {
					t.Fatalf("status %d after %v", w.Code, took)
				}
			}
			virtual.Sleep(100 * time.Millisecond)
		}
		// A read takes 400 ms at least, and so one begins every 10 s, but for the first of b and of c.
		if n := asked() - before; n < 5 || n > 8 {
			t.Errorf("%d reads in a minute, want 5 to 8", n)
		}
	})
}

// A read that takes 80 ms has a rest of two seconds, which nobody waits for who asks about another lock.
func TestLockOfWhichNothingIsKnownIsReadSoon(t *testing.T) {
	run(t, func(b *board) {
		for _, name := range []string{"a", "b", "c"} {
			b.hold("x", name)
		}
		link, _ := b.linked()
		link.Latency(20 * time.Millisecond)
		for _, name := range []string{"a", "b", "c"} {
			asked := time.Now()
			b.get("/lock?name="+name, http.StatusOK)
			if took := time.Since(asked); took > 500*time.Millisecond {
				t.Errorf("%s is shown after %v, want that it is read within 400 ms", name, took)
			}
		}
	})
}

// What was known last stays there, with its time and with what is the matter; where nothing
// was known the answer says so.
func TestOutageShowsWhatWasKnown(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a")
		link, _ := b.linked()
		heal := link.Cut()
		for _, address := range []string{"/", "/locks.json", "/lock?name=a", "/lock.json?name=a"} {
			b.get(address, http.StatusServiceUnavailable)
		}
		heal()
		virtual.Sleep(10 * time.Minute) // the reads of the outage took long
		for _, address := range []string{"/", "/lock?name=a"} {
			b.has(b.get(address, http.StatusOK), "read at <time", "<bdi>x</bdi>")
		}
		heal = link.Hole()
		virtual.Sleep(time.Minute)
		b.get("/", http.StatusOK)
		b.get("/lock?name=a", http.StatusOK)
		virtual.Sleep(time.Minute)
		for _, address := range []string{"/", "/lock?name=a"} {
			b.has(b.get(address, http.StatusOK), `role="alert">Redis does not answer`, ` old.`, "<bdi>x</bdi>")
		}
		var all listing
		b.json("/locks.json", &all)
		if len(all.Problems) == 0 || len(all.Locks) != 1 || time.Since(all.ReadAt) < time.Minute {
			t.Errorf("%+v, want what was known a minute ago and a problem", all)
		}
		heal()
		synctest.Wait()
	})
}

// Of a closed client nothing new is told.
func TestClosedClientIsTold(t *testing.T) {
	run(t, func(b *board) {
		c := b.x.Client()
		b.Handler = relockweb.Handler(c)
		rig.Must(t, c.Close())
		b.has(b.get("/", http.StatusServiceUnavailable), "closed")
		b.has(b.get("/lock.json?name=a", http.StatusServiceUnavailable), "closed")
	})
}

// Redis answers, and one key is none of relock's. Fails when the page shows as held what was released since.
func TestAKeyThatCannotBeReadIsNoOutage(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "b")
		rig.Must(b, b.x.Server.Direct().Set("relock:h:{a}", "theirs"))
		defer b.x.Server.Direct().Del("relock:h:{a}")
		var all listing
		if b.json("/locks.json", &all); len(all.Locks) != 1 || len(all.Problems) != 1 {
			t.Errorf("%+v, want a lock and a problem", all)
		}
		rig.Must(b, h.Release())
		virtual.Sleep(10 * time.Minute)
		all = listing{}
		if b.json("/locks.json", &all); len(all.Locks) != 0 || len(all.Problems) != 1 {
			t.Errorf("%+v, want no lock and a problem", all)
		}
	})
}

// A huge database is a redis client whose SCAN never comes to the end. After so many steps it is silent.
type huge struct {
	scans atomic.Int64
	steps int64
	fails error // instead of silence
}

func (h *huge) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *huge) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *huge) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		scan, is := cmd.(*redis.ScanCmd)
		if !is {
			return next(ctx, cmd)
		}
		if h.scans.Add(1) > h.steps {
			if h.fails != nil {
				return h.fails
			}
			<-ctx.Done()
			return ctx.Err()
		}
		virtual.Sleep(130 * time.Millisecond)
		scan.SetVal(nil, 1)
		return nil
	}
}

// Millions of keys of others, and no lock among those that are seen in the ten seconds of a read. Redis answers each
// step, or those of six seconds. Fails when the next read begins after 2 and 5 s, as if Redis had been silent.
func TestAReadThatFindsNothingInItsTimeRestsAsOthersDo(t *testing.T) {
	for says, steps := range map[string]int64{"more keys than Redis can list": 1_000_000, "Redis does not answer": 46} {
		run(t, func(b *board) {
			h := &huge{steps: steps}
			rdb := b.x.Server.Client(b.T)
			rdb.AddHook(h)
			b.Handler = relockweb.Handler(rig.Open(b, rdb))
			for range 2 * 60 {
				b.do(httptest.NewRequest(http.MethodGet, "/", nil))
				virtual.Sleep(time.Second)
			}
			if n := h.scans.Load(); n > 100 {
				t.Errorf("%d steps of 130 ms in two minutes, want those of one read", n)
			}
			page := b.do(httptest.NewRequest(http.MethodGet, "/", nil)).Body.String()
			b.has(page, says)
		})
	}
}

// A proxy hangs up at once. Fails when each request makes the dashboard ask again.
func TestReadsThatFailComeEveryFiveSeconds(t *testing.T) {
	run(t, func(b *board) {
		h := &huge{fails: io.EOF}
		rdb := b.x.Server.Client(b.T)
		rdb.AddHook(h)
		b.Handler = relockweb.Handler(rig.Open(b, rdb))
		for range 60 {
			b.do(httptest.NewRequest(http.MethodGet, "/", nil))
			virtual.Sleep(time.Second)
		}
		if n := h.scans.Load(); n < 3*10 || n > 3*14 {
			t.Errorf("%d tries in a minute, want three each 5 s", n)
		}
	})
}

// Redis falls silent when a read has had some of the locks, and answers again 15 s later. Fails when the time in which
// it was silent counts as a cost: the dashboard shows the outage for four minutes after its end.
func TestAnOutageThatBeginsWithinAReadIsSeenToEndWithinSeconds(t *testing.T) {
	run(t, func(b *board) {
		c := b.client("x")
		for i := range 100 { // more than are read in one pipeline
			h := rig.MustAcquire(b, c.NewLock(fmt.Sprint("l", i)))
			b.Cleanup(func() { _ = h.Release() })
		}
		link, _ := b.linked()
		var infos atomic.Int64
		var heals atomic.Bool
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "info") && infos.Add(1) > 64 && !heals.Load() {
				return redistest.Lose
			}
			return redistest.Pass
		})
		b.do(httptest.NewRequest(http.MethodGet, "/", nil))
		virtual.Sleep(15 * time.Second)
		heals.Store(true)
		healed := time.Now()
		for strings.Contains(b.get("/", http.StatusOK), `role="alert">Redis`) {
			if time.Since(healed) > 20*time.Second {
				t.Fatal("20 s after the outage the dashboard still shows it")
			}
			virtual.Sleep(time.Second)
		}
	})
}

// Redis is out of reach for a moment, and a page is as good for an hour. Fails when what could not be read counts as
// read: the outage was shown for an hour.
func TestAFailedReadIsMadeAgainWithinSecondsThoughDataMayBeOld(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a")
		c, link := b.x.Linked()
		b.Handler = relockweb.Handler(c, relockweb.Refresh(time.Hour))
		for range 2 { // nothing is known, then old data
			heal := link.Cut()
			for range 12 {
				virtual.Sleep(time.Second)
				for _, address := range []string{"/", "/lock?name=a"} {
					b.do(httptest.NewRequest(http.MethodGet, address, nil))
				}
			}
			b.has(b.do(httptest.NewRequest(http.MethodGet, "/", nil)).Body.String(), `role="alert">Redis`, `data-seconds="5"`)
			heal()
			virtual.Sleep(20 * time.Second)
			for _, address := range []string{"/", "/lock?name=a"} {
				b.do(httptest.NewRequest(http.MethodGet, address, nil)) // it may show the old answer, and has a new one read
				virtual.Sleep(time.Second)
				page := b.get(address, http.StatusOK)
				b.lacks(page, `role="alert">Redis`)
				b.has(page, "<bdi>x</bdi>", `data-seconds="3600"`)
			}
			virtual.Sleep(time.Hour)
		}
	})
}

// A loaded Redis is a redis client whose server works for as long as took says on each read of a lock. It counts that.
type loaded struct {
	took   func(key string) time.Duration
	worked atomic.Int64
}

func (l *loaded) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *loaded) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *loaded) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "evalsha" && len(args) > 3 {
			took := l.took(fmt.Sprint(args[3]))
			l.worked.Add(int64(took))
			virtual.Sleep(took)
		}
		return next(ctx, cmd)
	}
}

// Visitors open one lock after the other, so that nothing is known of most, or the long queue of one beside many short
// ones. Fails when that costs Redis more than it may, because a lock of which nothing is known does not wait for the
// rest.
func TestVisitorsOfManyLocksCostNoMoreThanOthers(t *testing.T) {
	for what, took := range map[string]func(key string) time.Duration{
		"many queues": func(string) time.Duration { return 100 * time.Millisecond },
		"one queue": func(key string) time.Duration {
			if strings.Contains(key, "long") {
				return time.Second
			}
			return time.Millisecond
		},
	} {
		run(t, func(b *board) {
			l := &loaded{took: took}
			rdb := b.x.Server.Client(b.T)
			rdb.AddHook(l)
			b.Handler = relockweb.Handler(rig.Open(b, rdb))
			began := time.Now()
			for i := 0; time.Since(began) < 10*time.Minute; i++ {
				b.do(httptest.NewRequest(http.MethodGet, fmt.Sprint("/lock?name=", i), nil))
				b.do(httptest.NewRequest(http.MethodGet, "/lock?name=long", nil))
				virtual.Sleep(100 * time.Millisecond)
			}
			if share := float64(l.worked.Load()) / float64(time.Since(began)); share < 0.01 || share > 0.05 {
				t.Errorf("%s: Redis worked %.1f %% of ten minutes, want 5 %% at most", what, 100*share)
			}
		})
	}
}
