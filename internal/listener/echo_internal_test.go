package listener

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/internal/wire"
)

// system is the one clock for all readings of a test, because each clock has measurements of its own.
var system = new(clock.Clock)

// A link is a subscription whose state a test sets.
type link struct {
	up, deaf bool
	suspects int

	mu    sync.Mutex // guards the following field
	heard time.Time
}

func (k *link) hears() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heard = time.Now()
}

func (k *link) Ready(context.Context) error { return nil }
func (k *link) Up() bool                    { return k.up }
func (k *link) Down() error                 { return nil }
func (k *link) Heard() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard
}
func (k *link) Suspect() { k.suspects++ }

// newTestListeners returns the listeners of a client that never connects. checks receives the instants for which checks
// of an echo are scheduled.
func newTestListeners(t *testing.T, sharded bool) (ls *Listeners, checks *[]time.Duration, log *bytes.Buffer) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	checks, log = &[]time.Duration{}, &bytes.Buffer{}
	ls = New(Config{
		Prefix: "p", Client: "me", Sharded: sharded, Redis: rdb,
		Deliver: func(string) {},
		Linked:  func(string, bool) {},
		Refused: func(error) bool { return false },
		Reload:  func() {},
		Now:     system.Now,
		Set: func(_ *renewal.Task, at clock.Instant) {
			*checks = append(*checks, system.Now().Until(at))
		},
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	t.Cleanup(ls.Close)
	return ls, checks, log
}

func TestAllLocksAreHeardOfByOneInbox(t *testing.T) {
	ls, _, _ := newTestListeners(t, false)
	a, b := ls.Of(key.Hash("p", "a")), ls.Of(key.Hash("p", "b"))
	if a != b || a.Inbox != ls.Inbox() || a.Channel != "p:inbox:me" || a.Sharded() || a.Needs() != "subscribe" {
		t.Errorf("a is heard of by %q, b by %q", a.Channel, b.Channel)
	}
}

func TestALockIsHeardOfByAChannelOfItsSlot(t *testing.T) {
	ls, _, _ := newTestListeners(t, true)
	a, b := ls.Of(key.Hash("p", "a")), ls.Of(key.Hash("p", "b"))
	if a.Channel != "p:inbox:{a}me" || b.Channel != "p:inbox:{b}me" || a.Inbox != nil || !a.Sharded() || a.Needs() != "ssubscribe, sunsubscribe" {
		t.Errorf("a is heard of by %q, b by %q", a.Channel, b.Channel)
	}
	if a.Up() || ls.Inbox().Up() {
		t.Error("a channel that nobody has joined is up")
	}
}

func TestEchoesAreAskedForUntilTheClientIsSeenAndWhereItIsSilent(t *testing.T) {
	ls, _, _ := newTestListeners(t, false)
	k := &link{up: true}
	l := newListener("c", k)
	want := func(silent bool, want wire.Echo) {
		t.Helper()
		if got := ls.Echo(l, silent); got != want {
			t.Errorf("asks for %v, want %v", got, want)
		}
	}
	want(false, wire.Prove)
	ls.Echoed(wire.Seen)
	want(false, wire.Quiet)
	want(true, wire.Prove)
	ls.Echoed(wire.Unseen)
	want(false, wire.Vouch)
	k.up = false // without a subscription there is nothing to vouch for
	want(false, wire.Prove)
	ls.linked("c", false)
	k.up = true
	want(false, wire.Prove)
}

func TestTheFirstEchoOfAClientThatIsNotSeenIsToldOnce(t *testing.T) {
	ls, _, _ := newTestListeners(t, false)
	for i, echo := range []struct {
		sight wire.Sight
		first bool
	}{{wire.Unknown, false}, {wire.Seen, false}, {wire.Unseen, true}, {wire.Unknown, false}, {wire.Unseen, false}, {wire.Seen, false}, {wire.Unseen, true}} {
		if got := ls.Echoed(echo.sight); got != echo.first {
			t.Errorf("echo %d: first %v, want %v", i, got, echo.first)
		}
	}
}

func TestALinkThatDoesNotHearItsEchoIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls, checks, log := newTestListeners(t, false)
		k := &link{up: true, heard: time.Now()}
		l := newListener("c", k)
		virtual.Sleep(time.Minute)
		ls.Expect(l, system.Now())
		virtual.Sleep(time.Second / 2)
		ls.Expect(l, system.Now()) // must not postpone the check
		if len(*checks) != 1 || (*checks)[0] != time.Second {
			t.Errorf("looks after %v, want once, a second after the first", *checks)
		}
		virtual.Sleep(time.Second / 2)
		ls.Check(l)
		if k.suspects != 1 || !strings.Contains(log.String(), "does not hear") {
			t.Errorf("%d new links, log %q", k.suspects, log)
		}
		ls.Expect(l, system.Now())
		virtual.Sleep(time.Second)
		k.hears()
		ls.Check(l)
		if k.suspects != 1 {
			t.Error("a link that hears is given up")
		}
		if len(*checks) != 2 {
			t.Errorf("looked %d times, want 2", len(*checks))
		}
	})
}

// An echo on another channel, or of an earlier request, does not count.
func TestAnEchoIsHeardOnItsOwnLinkOrTheLinkIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls, _, _ := newTestListeners(t, false)
		k := &link{up: true, heard: time.Now()}
		l := newListener("c", k)
		virtual.Sleep(time.Minute)
		hear := func(ctx context.Context) (published int, err error) {
			virtual.Sleep(time.Second)
			err = ls.HearEcho(ctx, l, func() error {
				published++
				go func() {
					ls.Echoed(wire.Unknown) // an echo on another channel
					virtual.Sleep(time.Second / 2)
					if !k.deaf {
						k.hears()
						ls.Echoed(wire.Unknown)
					}
				}()
				return nil
			})
			synctest.Wait()
			return published, err
		}
		if n, err := hear(t.Context()); err != nil || n != 1 || k.suspects > 0 {
			t.Errorf("%v, published %d times, %d new links", err, n, k.suspects)
		}
		k.deaf = true
		if _, err := hear(t.Context()); err == nil || k.suspects != 1 {
			t.Errorf("%v, %d new links, want an error and one", err, k.suspects)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Millisecond)
		defer cancel()
		if _, err := hear(ctx); err == nil || k.suspects != 1 {
			t.Errorf("%v, %d new links: the link had no time", err, k.suspects)
		}
		virtual.Sleep(time.Second)
	})
}

func TestALockOfASlotIsSubscribedWhileItIsJoined(t *testing.T) {
	ls, _, _ := newTestListeners(t, true)
	l := ls.Of(key.Hash("p", "a"))
	leave := l.Join()
	defer leave()
	if err := l.Subscribing(l.Down()).Error(); !strings.Contains(err, "subscribing to the inbox p:inbox:{a}me: ") {
		t.Errorf("the error of a wait is %q", err)
	}
}
