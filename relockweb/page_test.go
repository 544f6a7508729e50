package relockweb_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relockweb"
)

// queue lets a client with that label wait for a lock; it leaves when the test ends.
func (b *board) queue(label, name string, opts ...relock.LockOption) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	l, gone := b.client(label).NewLock(name, opts...), make(chan struct{})
	go func() {
		defer close(gone)
		if h, err := l.Acquire(ctx); err == nil {
			_ = h.Release()
		}
	}()
	b.Cleanup(func() { cancel(); <-gone })
	virtual.Sleep(time.Millisecond)
}

func TestPageShowsWhoHoldsSinceWhenAndHowManyWait(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("billing-7", "invoices", relock.Owner("nightly run"))
		b.queue("billing-8", "invoices")
		b.queue("billing-9", "invoices")
		virtual.Sleep(90 * time.Second)
		list := b.get("/", http.StatusOK)
		b.has(list, "<bdi>invoices</bdi>", "<bdi>billing-7</bdi>", "<bdi>nightly run</bdi>", fmt.Sprint(h.Token()), ">1 min 30 s<", "<strong>2</strong>", `<b id="waiters">2</b>`)
		one := b.get("/lock?name=invoices", http.StatusOK)
		b.has(one, "<bdi>billing-7</bdi>", fmt.Sprint(h.Token()), ">1 min 30 s<")
		before, after, _ := strings.Cut(one, "<bdi>billing-8</bdi>")
		b.lacks(before, "billing-9")
		b.has(after, "billing-9", "1 min 30 s")
	})
}

func TestWaitersOnConditionsAreShown(t *testing.T) {
	run(t, func(b *board) {
		l := b.client("web-1").NewLock("a")
		rig.Must(t, l.Lock(b.Context()))
		wait := b.x.Sleeps(b.Context(), l.NewCond("c"), 0)
		b.has(b.get("/", http.StatusOK), "<bdi>a</bdi>", "nobody; 1 waiting on conditions")
		b.has(b.get("/lock?name=a", http.StatusOK), "<b>1</b> waiting on conditions", "Nobody holds the lock", "Nobody waits.")
		wait.Stop()
		<-wait.Done
		rig.Must(t, l.Unlock())
	})
}

func TestReadersAndWritersAreToldApart(t *testing.T) {
	run(t, func(b *board) {
		rw := b.x.Client().NewRWLock("config", relock.Owner("a"))
		rig.Must(b, rw.RLock(b.Context()))
		defer func() { _ = rw.RUnlock() }()
		b.has(b.get("/", http.StatusOK), ">rw<", ">reads<")
		b.lacks(b.get("/", http.StatusOK), ">writes<")
	})
}

// Fails when who writes is told as the holder of a lock without readers, or with those of another kind.
func TestWritersAreToldApartWhateverTheirOrder(t *testing.T) {
	for kind, opts := range map[string][]relock.LockOption{"rw": nil, "fair rw": {relock.Fair()}} {
		run(t, func(b *board) {
			rw := b.x.Client().NewRWLock("config", opts...)
			rig.Must(b, rw.Lock(b.Context()))
			b.has(b.get("/", http.StatusOK), ">"+kind+"<", ">writes<")
			var one detail
			b.json("/lock.json?name=config", &one)
			if one.Lock.Kind != kind || one.Lock.Holders[0].Mode != "write" {
				t.Errorf("%s: %+v, want one that writes", kind, one.Lock)
			}
			rig.Must(b, rw.Unlock())
		})
	}
}

// Seven share a lock. Fails when the list shows more than five, or counts only those that it shows.
func TestAListShowsFiveHoldersOfALockAndCountsAll(t *testing.T) {
	run(t, func(b *board) {
		c := b.client("web")
		for i := range 7 {
			h := rig.MustAcquire(b, c.NewSemaphore("pool", 9, relock.Owner(fmt.Sprint("o", i))))
			b.Cleanup(func() { _ = h.Release() })
		}
		list := b.get("/", http.StatusOK)
		b.has(list, `<b id="holders">7</b>`, "and 2 more")
		if n := strings.Count(list, "<bdi>o"); n != 5 {
			t.Errorf("the list shows %d holders, want 5", n)
		}
		var all listing
		b.json("/locks.json", &all)
		if l := all.Locks[0]; l.HolderCount != 7 || len(l.Holders) != 5 || all.Total.Holders != 7 {
			t.Errorf("%+v, want 5 of 7 holders", all)
		}
		if n := strings.Count(b.get("/lock?name=pool", http.StatusOK), "<bdi>o"); n != 7 {
			t.Errorf("the lock's own page shows %d holders, want 7", n)
		}
	})
}

func TestFreeLockAndRestingNameAreSaid(t *testing.T) {
	run(t, func(b *board) {
		b.has(b.get("/", http.StatusOK), "No lock is in use")
		b.has(b.get("/lock?name=x", http.StatusOK), "Nobody holds the lock", "Nobody waits")
		rig.Must(b, b.hold("a", "x", relock.AtLeast(time.Minute)).Release())
		virtual.Sleep(3 * time.Second)
		b.has(b.get("/", http.StatusOK), "nobody; taken for another 57.0 s")
		b.has(b.get("/lock?name=x", http.StatusOK), "taken for another 57.0 s")
	})
}

// Characters that mean something in a pattern stand for themselves.
func TestPrefixShowsNamesThatBeginSo(t *testing.T) {
	run(t, func(b *board) {
		for _, name := range []string{"a*1", "ab", "a*2", "b"} {
			b.hold("x", name)
		}
		list := b.get("/?prefix="+url.QueryEscape("a*"), http.StatusOK)
		b.has(list, "<bdi>a*1</bdi>", "<bdi>a*2</bdi>", `value="a*"`, `<b id="locks">2</b>`)
		b.lacks(list, "<bdi>ab</bdi>", "<bdi>b</bdi>")
		b.has(b.get("/?prefix=c", http.StatusOK), "No lock in use has a name that begins with this.")
	})
}

// A backwards Redis tells of the last key first. Each SCAN has its own order in a real one.
type backwards struct{}

func (backwards) DialHook(next redis.DialHook) redis.DialHook { return next }

func (backwards) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (backwards) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if scan, is := cmd.(*redis.ScanCmd); is {
			keys, cursor := scan.Val()
			slices.Reverse(keys)
			scan.SetVal(keys, cursor)
		}
		return err
	}
}

// Fails when the names that begin so are looked for as if Redis had told of them in their order.
func TestPrefixFindsEveryNameInWhateverOrderRedisTellsOfThem(t *testing.T) {
	run(t, func(b *board) {
		rdb := b.x.Server.Client(b.T)
		rdb.AddHook(backwards{})
		b.Handler = relockweb.Handler(rig.Open(b, rdb))
		for _, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
			b.hold("x", name)
		}
		for _, prefix := range []string{"a", "b", "c"} {
			list := b.get("/?prefix="+prefix, http.StatusOK)
			b.has(list, `<b id="locks">2</b>`, "<bdi>"+prefix+"1</bdi>", "<bdi>"+prefix+"2</bdi>")
		}
	})
}

// A uniform Redis has equal locks: of those of a pipeline it is asked about the first, because ten thousand take long.
type uniform struct{}

func (uniform) DialHook(next redis.DialHook) redis.DialHook { return next }

func (uniform) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (uniform) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "evalsha" {
			return next(ctx, cmds)
		}
		err := next(ctx, cmds[:1])
		for _, cmd := range cmds[1:] {
			cmd.(interface{ SetVal(v any) }).SetVal(cmds[0].(interface{ Val() any }).Val())
		}
		return err
	}
}

// Redis has one lock more than a list reads. Fails when the list or its page shows more locks than it is to show, or
// does not say that there are more.
func TestAListHasTenThousandLocksAndAPageAThousand(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "l")
		lock, ctx := b.x.Redis.HGetAll(b.Context(), key.Hash("relock", "l")).Val(), b.Context()
		_, err := b.x.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range 10_000 {
				p.HSet(ctx, key.Hash("relock", fmt.Sprint("l", i)), lock)
			}
			return nil
		})
		rig.Must(b, err)
		defer b.x.Redis.FlushAll(ctx)
		rig.LoadScripts(b.T, b.x.Redis)
		rdb := b.x.Server.Client(b.T)
		rdb.AddHook(uniform{})
		b.Handler = relockweb.Handler(rig.Open(b, rdb))
		list := b.get("/", http.StatusOK)
		b.has(list, `<b id="locks">10000</b>`, "There are more locks than this page reads", "and 9000 more locks.")
		if n := strings.Count(list, `<tbody data-key="l`); n != 1_000 {
			t.Errorf("the page shows %d locks, want 1,000", n)
		}
		var all listing
		if b.json("/locks.json", &all); !all.More || len(all.Locks) != 10_000 {
			t.Errorf("the list has %d locks, and more: %v; want 10,000 and more", len(all.Locks), all.More)
		}
	})
}

func TestListIsOrderedAsAsked(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a", relock.TTL(time.Minute))
		virtual.Sleep(time.Second)
		b.hold("x", "b")
		b.queue("x", "b")
		for sort, first := range map[string]string{
			"": "b", "held": "a", "-held": "b", "waiters": "b", "-waiters": "a", "name": "a", "-name": "b", "nonsense": "b",
			"lease": "b", "-lease": "a",
		} {
			list := b.get("/?sort="+sort, http.StatusOK)
			if a, b := strings.Index(list, "<bdi>a</bdi>"), strings.Index(list, "<bdi>b</bdi>"); (a < b) != (first == "a") {
				t.Errorf("sort=%s: a is at %d, b at %d, want %s first", sort, a, b, first)
			}
		}
		b.has(b.get("/?sort=waiters&prefix=b", http.StatusOK), `aria-sort="descending"`, `name="sort" value="waiters"`, `href="./?prefix=b&amp;sort=held"`)
	})
}

func TestMatchHidesOtherLocks(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "shop 1")
		b.hold("x", "bank 1")
		b.lacks(b.get("/", http.StatusOK)+b.get("/locks.json", http.StatusOK), "bank 1")
		b.get("/lock?name=shop+1", http.StatusOK)
		for _, address := range []string{"/lock?name=bank+1", "/lock.json?name=bank+1", "/force?name=bank+1"} {
			b.lacks(b.get(address, http.StatusNotFound), "<h2>Holders")
		}
	}, relockweb.Match("shop *"), relockweb.AllowForce(func(*http.Request) bool { return true }))
}

// The page renews itself with a script and without one, and stays as it is on demand.
func TestPageRenewsItselfWithoutAScriptToo(t *testing.T) {
	run(t, func(b *board) {
		b.has(b.get("/?prefix=a", http.StatusOK), `<noscript><meta http-equiv="refresh" content="10">`, `src="app.js"`,
			`data-seconds="2"`, `href="./?live=off&amp;prefix=a"`)
		still := b.get("/?live=off&prefix=a", http.StatusOK)
		b.lacks(still, "http-equiv", "<script")
		b.has(still, `href="./?prefix=a"`)
		b.lacks(b.get("/lock?name=a&live=off", http.StatusOK), "http-equiv", "<script")
	})
}

// A page takes whole seconds. Fails when one that is to renew itself more often does not at all.
func TestPageRenewsItselfWhateverItsRefresh(t *testing.T) {
	for refresh, seconds := range map[time.Duration]int{250 * time.Millisecond: 1, 1500 * time.Millisecond: 2, time.Hour: 3600} {
		run(t, func(b *board) {
			for _, address := range []string{"/", "/lock?name=a"} {
				b.has(b.get(address, http.StatusOK), `<noscript><meta http-equiv="refresh"`, `src="app.js"`, fmt.Sprintf(`data-seconds="%d"`, seconds))
			}
		}, relockweb.Refresh(refresh))
	}
}

func TestPageWorksUnderAnyAddress(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a")
		b.Handler = http.StripPrefix("/ops/locks", b.Handler)
		for _, link := range []string{"app.css", "app.js", "icon.svg", "lock?name=a", "locks.json", "lock.json?name=a", ""} {
			b.get("/ops/locks/"+link, http.StatusOK)
		}
		for _, address := range []string{"/ops/locks/", "/ops/locks/lock?name=a"} {
			b.lacks(b.get(address, http.StatusOK), `href="/`, `src="/`, `action="/`)
		}
	})
}

func TestBadRequestsAreRefused(t *testing.T) {
	run(t, func(b *board) {
		for address, status := range map[string]int{
			"/lock": 400, "/lock.json?name=": 400, "/lock?name=%ff": 400, "/lock?name=a%00b": 400,
			"/lock.json?name=" + strings.Repeat("x", 513): 400, "/other": 404, "/static/app.js": 404,
		} {
			b.get(address, status)
		}
		if w := b.do(httptest.NewRequest(http.MethodPost, "/", nil)); w.Code != http.StatusMethodNotAllowed {
			b.Errorf("POST /: status %d", w.Code)
		}
	})
}

func TestBadOptionIsToldByEveryAnswer(t *testing.T) {
	run(t, func(b *board) {
		for _, o := range []relockweb.Option{
			nil, relockweb.AllowForce(nil), relockweb.Match("["),
			relockweb.Refresh(0), relockweb.Refresh(250*time.Millisecond - 1), relockweb.Refresh(time.Hour + 1),
		} {
			b.Handler = relockweb.Handler(b.x.Eye, o)
			b.has(b.get("/", http.StatusInternalServerError), "relockweb: ")
		}
		b.Handler = relockweb.Handler(nil)
		b.has(b.get("/locks.json", http.StatusInternalServerError), "the client is nil")
	})
}
