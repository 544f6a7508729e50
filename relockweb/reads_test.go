package relockweb_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
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
		time.Sleep(2 * time.Second)
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
		time.Sleep(time.Minute)
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
			time.Sleep(100 * time.Millisecond)
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
			b.get("/lock?name="+name, http.StatusOK)
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
		time.Sleep(10 * time.Minute) // the reads of the outage took long
		for _, address := range []string{"/", "/lock?name=a"} {
			b.has(b.get(address, http.StatusOK), "read at <time", "<bdi>x</bdi>")
		}
		heal = link.Hole()
		time.Sleep(time.Minute)
		b.get("/", http.StatusOK)
		b.get("/lock?name=a", http.StatusOK)
		time.Sleep(time.Minute)
		for _, address := range []string{"/", "/lock?name=a"} {
			b.has(b.get(address, http.StatusOK), `role="alert">Redis does not answer`, ` old.</p>`, "<bdi>x</bdi>")
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
		time.Sleep(10 * time.Minute)
		all = listing{}
		if b.json("/locks.json", &all); len(all.Locks) != 0 || len(all.Problems) != 1 {
			t.Errorf("%+v, want no lock and a problem", all)
		}
	})
}
