package replay_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/replay"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/internal/wire"
)

// system is one clock for all readings of a test: what a clock has measured is its own.
var system = new(clock.Clock)

// An owner is what a client is to a journal, and its servers: in virtual time.
type owner struct {
	mu      sync.Mutex
	journal *replay.Journal
	timer   *time.Timer
	busy    map[wire.Nonce]bool
	began   time.Time
	wakes   int // how often it asked to be woken; guarded by mu

	world  sync.Mutex      // guards the following fields
	server string          // the one of every lock
	asks   []time.Duration // when servers were asked who serves
	sent   []string        // what was sent again: to which server, of which lock
	fails  int             // so many releases go unanswered
	where  int64           // what a server says of the inbox
	more   bool            // a release leaves a long queue
	up     bool
	deeds  []string // of the journal, beside sending

	log bytes.Buffer // written by a logger, which has a mutex; read when all is quiet
}

func newOwner(t *testing.T) *owner {
	o := &owner{busy: map[wire.Nonce]bool{}, began: time.Now(), where: wire.WhereHere, up: true}
	o.journal = &replay.Journal{Config: replay.Config{
		Mu:  &o.mu,
		Now: system.Now,
		Wake: func(at clock.Instant) {
			o.wakes++
			if o.timer != nil {
				o.timer.Stop()
			}
			o.timer = time.AfterFunc(system.Now().Until(at), func() { o.journal.Due() })
		},
		Spawn: func(round func(context.Context)) bool {
			go round(t.Context())
			return true
		},
		Busy:    func(n wire.Nonce) bool { return o.busy[n] },
		Servers: o,
		Wire:    wire.NewEncoder("client", "inbox:", 30*time.Second, time.Minute),
		Inbox:   o,
		Settle:  func(keys key.Keys) { o.in(func() { o.deeds = append(o.deeds, "settle "+keys.Hash) }) },
		Log:     slog.New(slog.NewTextHandler(&o.log, nil)),
	}}
	return o
}

// in does something in the world that the journal sees.
func (o *owner) in(do func()) {
	o.world.Lock()
	defer o.world.Unlock()
	do()
}

func (o *owner) OneServer() bool               { return o.Server("") == "" }
func (o *owner) Server(string) (server string) { o.in(func() { server = o.server }); return server }
func (o *owner) Up() (up bool)                 { o.in(func() { up = o.up }); return up }
func (o *owner) Suspect()                      { o.in(func() { o.deeds = append(o.deeds, "suspect") }) }

func (o *owner) did(want ...string) (is bool) {
	o.in(func() { is = slices.Equal(o.deeds, want) })
	return is
}

var errSilent = errors.New("no answer")

func (o *owner) DoAll(_ context.Context, _ time.Duration, calls []transport.Call) []transport.Result {
	o.world.Lock()
	defer o.world.Unlock()
	all := make([]transport.Result, len(calls))
	for i, call := range calls {
		switch {
		case len(call.Args) == 1:
			o.asks = append(o.asks, time.Since(o.began))
			all[i].Reply = []any{o.where}
		case o.fails > 0:
			o.fails--
			all[i].Err = errSilent
		default:
			o.sent = append(o.sent, o.server+" "+call.Keys[0])
			all[i].Reply = []any{int64(wire.WasHeld), time.Now().UnixMilli(), yes(o.more)}
		}
	}
	return all
}

func yes(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// released has a release remembered that was answered just now, of a lease of that length.
func (o *owner) released(lock string, lease time.Duration) wire.Nonce {
	now, n, server := system.Now(), wire.NewNonce(), o.Server(lock)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.journal.Add(replay.Release{
		Keys: key.For("p", lock), Nonce: n, Owner: "me", Until: now.Add(lease), Answered: now, Server: server, Epoch: o.journal.Epoch.Load(),
	}, now)
	return n
}

// pass lets virtual time go by, and all that is due in it.
func pass(d time.Duration) {
	virtual.Sleep(d)
	synctest.Wait()
}

func wantSent(t *testing.T, o *owner, want ...string) {
	t.Helper()
	o.in(func() {
		if !slices.Equal(o.sent, want) {
			t.Errorf("sent again: %q, want %q", o.sent, want)
		}
	})
}

func TestJournalSendsAgainWhereTheServerMayHaveBecomeAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		o.released("b", time.Minute)
		o.released("a", time.Minute)
		pass(10 * time.Second)
		wantSent(t, o)
		o.journal.Suspect(system.Now())
		pass(time.Millisecond)
		wantSent(t, o, " p:h:{a}", " p:h:{b}")
		pass(10 * time.Second)
		wantSent(t, o, " p:h:{a}", " p:h:{b}") // once
		pass(time.Minute)
	})
}

func TestJournalSendsToTheServerThatHasTheLockNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		o.in(func() { o.server = "one" })
		o.released("a", time.Minute)
		pass(3 * time.Second)
		wantSent(t, o)
		o.in(func() { o.server = "two" })
		pass(3 * time.Second)
		wantSent(t, o, "two p:h:{a}")
		pass(time.Minute)
	})
}

func TestJournalAsksAndRemembersForALeaseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		n := o.released("a", 5*time.Second)
		pass(time.Hour)
		o.in(func() {
			if want := []time.Duration{2 * time.Second, 4 * time.Second}; !slices.Equal(o.asks, want) {
				t.Errorf("asked who serves at %v, want %v", o.asks, want)
			}
		})
		o.mu.Lock()
		if o.journal.Find(n) != nil || o.wakes > 3 {
			t.Errorf("it remembers a release whose lease has ended, or has a timer for none: %d times woken", o.wakes)
		}
		o.mu.Unlock()
		o.journal.Suspect(system.Now())
		pass(time.Hour)
		wantSent(t, o)
	})
}

func TestJournalLeavesToOthersWhatTheyAreReleasing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		n := o.released("a", time.Minute)
		o.mu.Lock()
		o.busy[n] = true
		o.mu.Unlock()
		o.journal.Suspect(system.Now())
		pass(time.Hour)
		wantSent(t, o)
	})
}

func TestJournalRepeatsWhatGoesUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		o.released("a", time.Minute)
		o.in(func() { o.fails = 3 })
		o.journal.Suspect(system.Now())
		pass(2 * time.Second)
		wantSent(t, o, " p:h:{a}")
		pass(time.Minute)
		if n := strings.Count(o.log.String(), "releasing again failed"); n != 3 {
			t.Errorf("%d failures are logged, want 3", n)
		}
	})
}

func TestJournalHasAnInboxThatIsElsewhereConnectAgainOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		o.released("a", 20*time.Second)
		o.in(func() { o.where, o.up = wire.WhereElsewhere, false })
		pass(3 * time.Second)
		if !o.did() {
			t.Error("the inbox connects again while it has no link, which says the same when it comes")
		}
		o.in(func() { o.up = true })
		pass(time.Minute)
		if !o.did("suspect") {
			t.Error("the inbox does not connect again, or not once")
		}
		wantSent(t, o, " p:h:{a}")
		if n := strings.Count(o.log.String(), "the inbox is not on the server"); n != 1 {
			t.Errorf("that the inbox is elsewhere is logged %d times, want once", n)
		}
	})
}

func TestJournalSettlesALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		o.in(func() { o.more = true })
		o.released("a", time.Minute)
		o.journal.Suspect(system.Now())
		pass(time.Minute)
		if !o.did("settle p:h:{a}") {
			t.Error("the queue is not settled")
		}
	})
}

func TestJournalRemembersTheLatestOfTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		first := o.released("first", time.Minute)
		second := o.released("second", time.Minute)
		var last wire.Nonce
		for range 9_999 {
			last = o.released("a", time.Minute)
		}
		o.mu.Lock()
		for n, want := range map[wire.Nonce]bool{first: false, second: true, last: true} {
			if r := o.journal.Find(n); (r != nil) != want || r != nil && r.Nonce != n {
				t.Errorf("found %v, want %v", r, want)
			}
		}
		o.mu.Unlock()
		o.journal.Suspect(system.Now())
		pass(time.Millisecond)
		o.in(func() {
			if len(o.sent) != 10_000 {
				t.Errorf("sent %d again, want 10,000", len(o.sent))
			}
		})
		pass(time.Hour)
	})
}
