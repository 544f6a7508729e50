package relock_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// The tests named TestF... are schedules, each of which breaks a lock that lacks
// one rule of the protocol. They are numbered as in docs/faults.md; the line
// "fails when" says which rule, and mutation_test.go takes it out.
//
// All causes are some odd amount of virtual time apart, so that none races another.

// scriptNames finds a script's name by what EVALSHA sends.
var scriptNames = func() map[string]string {
	names := map[string]string{}
	for name := range relock.Scripts() {
		names[script.MustLoad(lua.FS, name).SHA] = name
	}
	return names
}()

// A scene is one schedule's server and time.
type scene struct {
	t     *testing.T
	srv   *redistest.Server
	rdb   *redis.Client // without a link: what an operator sees and does
	began time.Time
}

// play runs a schedule in virtual time. Every script that is sent by its SHA is known
// to the server, so that a verdict on EVALSHA is one on the script.
func play(t *testing.T, schedule func(t *testing.T, s *scene)) {
	t.Helper()
	redistest.Virtual(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, srv: redistest.Start(t), began: time.Now()}
		s.rdb = s.srv.Client(t)
		for _, name := range scriptNames {
			if err := s.rdb.ScriptLoad(t.Context(), script.MustLoad(lua.FS, name).Source).Err(); err != nil {
				t.Fatal(err)
			}
		}
		schedule(t, s)
	})
}

// now is the virtual time since the schedule began.
func (s *scene) now() time.Duration { return time.Since(s.began) }

// until sleeps to an instant of the schedule.
func (s *scene) until(at time.Duration) {
	s.t.Helper()
	if at < s.now() {
		s.t.Fatalf("the schedule is at %v already, beyond %v", s.now(), at)
	}
	time.Sleep(at - s.now())
	synctest.Wait()
}

// An actor is a process: a client with a network of its own.
type actor struct {
	*relock.Client
	t    *testing.T
	link *redistest.Link
}

// actor returns a process whose inbox hears.
func (s *scene) actor(opts ...relock.Option) *actor {
	s.t.Helper()
	// A pool that could not dial looks whether it is closed once a second.
	s.t.Cleanup(func() { time.Sleep(2 * time.Second) })
	link := redistest.NewLink(s.t, s.srv.Dial)
	rdb := s.srv.Client(s.t, func(o *redis.Options) { o.Dialer = link.Dial })
	a := newActor(s.t, rdb, link, opts...)
	a.SetClock(clock.New(time.Now, nil))
	a.warm()
	synctest.Wait()
	return a
}

// realActor returns a process that uses a server in real time.
func realActor(t *testing.T, srv *redistest.RealServer, opts ...relock.Option) *actor {
	t.Helper()
	link := redistest.NewLink(t, srv.Dial)
	a := newActor(t, srv.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }), link, opts...)
	a.warm()
	return a
}

func newActor(t *testing.T, rdb redis.UniversalClient, link *redistest.Link, opts ...relock.Option) *actor {
	t.Helper()
	c, err := relock.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &actor{Client: c, t: t, link: link}
}

// warm makes the client subscribe, on a lock of its own.
func (a *actor) warm() {
	a.t.Helper()
	l := a.NewLock(fmt.Sprintf("warm %p", a))
	if err := l.Lock(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	if err := l.Unlock(); err != nil {
		a.t.Fatal(err)
	}
}

// fate gives the nth call of a script from now on, counted from 1, a verdict.
func (a *actor) fate(name string, nth int64, v redistest.Verdict) {
	var seen atomic.Int64
	a.link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if scriptSent(cmd.Args) == name && seen.Add(1) == nth {
			return v
		}
		return redistest.Pass
	})
}

// sent counts the calls of a script that the process has made.
func (a *actor) sent(name string) (n int) {
	for _, args := range a.link.Log() {
		if scriptSent(args) == name {
			n++
		}
	}
	return n
}

func scriptSent(args []string) string {
	if len(args) < 3 || args[0] != "evalsha" {
		return ""
	}
	return scriptNames[args[1]]
}

// A call is a Lock that may have to wait.
type call struct {
	t    *testing.T
	stop context.CancelFunc
	done chan struct{} // closed when the fields below are set
	hold *relock.Hold
	err  error
	at   time.Duration
}

// begin locks l on a goroutine of its own, and returns when that waits or is done.
func (s *scene) begin(l *relock.Lock) *call { s.t.Helper(); return s.beginAs("", l) }

// beginAs is begin for a named owner.
func (s *scene) beginAs(owner string, l *relock.Lock) *call {
	s.t.Helper()
	// Long enough for every schedule, and short enough for a broken one.
	ctx, stop := context.WithTimeout(s.t.Context(), time.Hour)
	s.t.Cleanup(stop)
	if owner != "" {
		ctx = relock.WithOwner(ctx, owner)
	}
	c := &call{t: s.t, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.hold, c.err = l.Acquire(ctx)
		c.at = s.now()
	}()
	synctest.Wait()
	return c
}

// waits fails the test if the call has returned.
func (c *call) waits() {
	c.t.Helper()
	synctest.Wait()
	select {
	case <-c.done:
		c.t.Fatalf("the call returned at %v with error %v, want it to wait", c.at, c.err)
	default:
	}
}

// holds fails the test unless the call has succeeded by now.
func (c *call) holds() *relock.Hold {
	c.t.Helper()
	synctest.Wait()
	select {
	case <-c.done:
	default:
		c.t.Fatal("the call still waits, want it to hold")
	}
	return c.returns()
}

// returns waits for the call to succeed.
func (c *call) returns() *relock.Hold {
	c.t.Helper()
	<-c.done
	if c.err != nil {
		c.t.Fatalf("lock: %v", c.err)
	}
	return c.hold
}

// take holds l at once, or the test fails.
func (s *scene) take(l *relock.Lock) *relock.Hold { s.t.Helper(); return s.begin(l).holds() }

func endHold(t *testing.T, h *relock.Hold) {
	t.Helper()
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
}

// free fails the test unless Redis has neither a holder nor a waiter of l.
func (s *scene) free(l *relock.Lock) {
	s.t.Helper()
	if info := s.info(l); len(info.Holders) > 0 || info.Waiters > 0 {
		s.t.Fatalf("redis has %+v, want nobody", info)
	}
}

func (s *scene) info(l *relock.Lock) relock.Info {
	s.t.Helper()
	info, err := l.Info(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

// holdsOf is the number of holds that Redis counts.
func (s *scene) holdsOf(l *relock.Lock) (n int) {
	s.t.Helper()
	for _, h := range s.info(l).Holders {
		n += h.Holds
	}
	return n
}

// keep copies a lock's keys, for a failover that lost all writes since.
func (s *scene) keep(name string) (restore func()) {
	s.t.Helper()
	keys, ctx := key.For("relock", name), s.t.Context()
	fields, members := s.rdb.HGetAll(ctx, keys.Hash).Val(), s.rdb.ZRangeWithScores(ctx, keys.Queue, 0, -1).Val()
	return func() {
		s.rdb.Del(ctx, keys.Hash, keys.Queue)
		if len(fields) > 0 {
			s.rdb.HSet(ctx, keys.Hash, fields)
			s.rdb.PExpire(ctx, keys.Hash, time.Hour)
		}
		if len(members) > 0 {
			s.rdb.ZAdd(ctx, keys.Queue, slices.Clone(members)...)
			s.rdb.PExpire(ctx, keys.Queue, time.Hour)
		}
	}
}

// notTrusted fails the test if a hold is trusted although another process has the lock.
func notTrusted(t *testing.T, old *relock.Hold) {
	t.Helper()
	if old.Err() == nil {
		t.Fatalf("two holders: the one before trusts its hold until %v, it is %v", old.TrustedUntil(), fmt.Sprint(time.Now()))
	}
}

// settled reports whether the call has returned.
func (c *call) settled() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
