package relock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
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

// longEnv, set to 1, repeats what is left to chance far more often.
const longEnv = "RELOCK_LONG"

// rounds is how often to repeat something.
func rounds(short, long int) int {
	if os.Getenv(longEnv) == "1" {
		return long
	}
	return short
}

// open returns a client over rdb that is closed when t ends.
func open(t testing.TB, rdb redis.UniversalClient, opts ...relock.Option) *relock.Client {
	t.Helper()
	c, err := relock.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unheard says that a wait was too short for an answer of Redis: of a server in real
// time, on a machine that has much to do, that may be any.
func unheard(err error) bool {
	if errors.Is(err, relock.ErrNotAcquired) || errors.Is(err, context.Canceled) { // the caller's own doing
		return false
	}
	return err != nil && (strings.Contains(err.Error(), "redis has not answered") || strings.Contains(err.Error(), "no reply from redis in time"))
}

// soon fails t unless cond, which says what is still amiss, comes to say "".
func soon(t testing.TB, cond func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		amiss := cond()
		if amiss == "" {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal(amiss)
		}
	}
}

// describe is what Redis knows of a lock, in short: "free", or the holds of its
// owner, and how many wait.
func describe(t testing.TB, l *relock.Lock) string {
	t.Helper()
	info, err := l.Info(context.WithoutCancel(t.Context()))
	must(t, err)
	var b strings.Builder
	for _, h := range info.Holders {
		fmt.Fprintf(&b, "%s x%d ", h.Owner, h.Holds)
	}
	if len(info.Holders) == 0 {
		b.WriteString("free ")
	}
	fmt.Fprintf(&b, "waiting %d", info.Waiters)
	return b.String()
}

func wantState(t testing.TB, l *relock.Lock, when, want string) {
	t.Helper()
	if got := describe(t, l); got != want {
		t.Errorf("%s: redis has %q, want %q", when, got, want)
	}
}

// wantBare fails unless no more is left of a lock than its hash, without
// anything of an owner or a waiter in it.
func wantBare(t testing.TB, rdb redis.UniversalClient, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	keys := key.For("relock", name)
	fields, err := rdb.HGetAll(ctx, keys.Hash).Result()
	must(t, err)
	for field, value := range fields {
		if !slices.Contains([]string{"kind", "token", "ended"}, field) && field[:2] != "e:" && field[:2] != "n:" && (field != "queued" || value != "0") {
			t.Errorf("lock %q: field %s = %q is left", name, field, value)
		}
	}
	if n := rdb.ZCard(ctx, keys.Queue).Val(); n != 0 {
		t.Errorf("lock %q: %d members are left in its queue", name, n)
	}
}

// wantGone fails unless the client keeps nothing any more.
func wantGone(t testing.TB, clients ...*relock.Client) {
	t.Helper()
	for _, c := range clients {
		if left := relock.Remains(c); left != "" {
			t.Errorf("a client still has %s", left)
		}
	}
}

// wantLater fails unless tokens grow strictly.
func wantLater(t testing.TB, tokens ...int64) {
	t.Helper()
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			t.Errorf("token %d follows %d", tokens[i], tokens[i-1])
		}
	}
}

// shas are the scripts' names by what EVALSHA sends, bodies by what EVAL sends.
var shas, bodies = func() (shas, bodies map[string]string) {
	shas, bodies = map[string]string{}, map[string]string{}
	for _, name := range []string{"acquire", "hold", "renew", "release", "force", "info", "waiters", "where"} {
		s := script.MustLoad(lua.FS, name)
		shas[s.SHA], bodies[s.Source] = name, name
	}
	return shas, bodies
}()

// scriptOf returns the name of the script that a command runs, or "". A poll is
// the acquire of a request that has a ticket.
func scriptOf(cmd redistest.Command) string {
	var name string
	switch {
	case len(cmd.Args) < 2:
	case cmd.Is("evalsha"):
		name = shas[cmd.Args[1]]
	case cmd.Is("eval"):
		name = bodies[cmd.Args[1]]
	}
	if name == "acquire" && len(cmd.Args) > 18 && cmd.Args[18] != "0" && cmd.Args[18] != "-1" {
		return "poll"
	}
	return name
}

// stage is a server in virtual time, and a client past every link to look at it.
type stage struct {
	t   *testing.T
	srv *redistest.Server
	rdb *redis.Client
	eye *relock.Client
}

// onStage runs f in a bubble of its own.
func onStage(t *testing.T, f func(t *testing.T, s *stage)) {
	t.Helper()
	redistest.Virtual(t)
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, srv: redistest.Start(t)}
		s.rdb = s.srv.Client(t)
		s.eye = open(t, s.rdb)
		f(t, s)
	})
}

// over returns a client behind a link of its own.
func (s *stage) over(opts ...relock.Option) (*relock.Client, *redistest.Link) {
	s.t.Helper()
	link := redistest.NewLink(s.t, s.srv.Dial)
	return s.through(link, opts...), link
}

// through returns a client behind the given link.
func (s *stage) through(link *redistest.Link, opts ...relock.Option) *relock.Client {
	s.t.Helper()
	rdb := s.srv.Client(s.t, func(o *redis.Options) { o.Dialer = link.Dial })
	c := open(s.t, rdb, opts...)
	c.SetClock(clock.New(time.Now, nil))
	return c
}

// going is a call that runs on a goroutine of its own.
type going chan error

func start(f func() error) going {
	g := make(going, 1)
	go func() { g <- f() }()
	return g
}

// pending fails unless the call is still going on when all is quiet.
func (g going) pending(t testing.TB, what string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-g:
		t.Fatalf("%s has returned already: %v", what, err)
	default:
	}
}
