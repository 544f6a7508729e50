package access_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/access"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/listener"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// An answer is an error of Redis.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

// A server answers to what is asked, and counts that.
type server struct {
	lacks   []any // of permissions
	err     error
	asked   int
	granted int
	deaf    error // where its echo is not heard
}

func (s *server) Do(context.Context, time.Duration, transport.Call) ([]any, error) {
	s.asked++
	return s.lacks, s.err
}

func (s *server) DoAcked(context.Context, time.Duration, int, time.Duration, ...transport.Call) []transport.Result {
	s.asked++
	return []transport.Result{{Err: s.err}}
}

// A link is a subscription that is up, or fails for a reason, or comes when its wait ends.
type link struct {
	listener.Subscription
	fails error
	slow  bool
	up    bool
}

func (k *link) Up() bool { return k.up }

func (k *link) Ready(ctx context.Context) error {
	if k.slow {
		<-ctx.Done()
		return ctx.Err()
	}
	return k.fails
}

func newChecker(open context.Context, s *server) *access.Checker {
	return access.New(access.Config{
		Prefix: "p", Client: "me", Redis: s, Wire: wire.NewEncoder("me", "p:inbox:", time.Minute, time.Minute),
		Open: open, Granted: func() { s.granted++ },
		Hear: func(_ context.Context, _ *listener.Listener, publish func() error) error {
			if err := publish(); err != nil {
				return err
			}
			return s.deaf
		},
	})
}

// run asks for the lock "a".
func run(t *testing.T, c *access.Checker, k *link) error {
	t.Helper()
	return c.Run(t.Context(), key.Hash("p", "a"), &listener.Listener{Subscription: k, Channel: "p:inbox:me"}, 30*time.Second)
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one with %q", err, part)
		}
	}
}

func TestWhatIsPermittedIsAskedOnce(t *testing.T) {
	s := &server{}
	c := newChecker(t.Context(), s)
	for range 3 {
		if err := run(t, c, &link{}); err != nil {
			t.Error(err)
		}
	}
	if s.asked != 1 || s.granted != 1 {
		t.Errorf("asked %d times and told %d times, want once each", s.asked, s.granted)
	}
}

func TestWhatIsLackingIsSaidUntilItIsThere(t *testing.T) {
	s := &server{}
	c := newChecker(t.Context(), s)
	for _, lack := range []struct {
		answer []any
		err    error
		says   []string
	}{
		{answer: []any{"publish", "hset"}, says: []string{"may not run", "publish, hset", "docs/operations.md"}},
		{answer: []any{"old", "6.2.1"}, says: []string{"Redis 7.0", "this is 6.2.1"}},
		{answer: []any{"old", ""}, says: []string{"this is older"}},
		{err: answer("NOPERM this user may not run eval"), says: []string{"NOPERM", "eval, evalsha", "p:h:{a}", "p:q:{a}"}},
	} {
		s.lacks, s.err = lack.answer, lack.err
		wantError(t, run(t, c, &link{}), lack.says...)
	}
	if s.granted != 0 {
		t.Error("what is refused counts as granted")
	}
	s.lacks, s.err = nil, nil
	if err := run(t, c, &link{}); err != nil || s.granted != 1 {
		t.Errorf("error %v, told %d times, want once", err, s.granted)
	}
}

func TestWhoIsNotAnsweredGoesOnAndIsAskedForAgain(t *testing.T) {
	s := &server{err: errors.New("no answer")}
	c := newChecker(t.Context(), s)
	for range 2 {
		if err := run(t, c, &link{}); err != nil {
			t.Error(err)
		}
	}
	if s.asked != 2 || s.granted != 0 {
		t.Errorf("asked %d times and told %d times, want 2 and never", s.asked, s.granted)
	}
}

func TestAChannelThatIsRefusedIsSaid(t *testing.T) {
	open, end := context.WithCancel(t.Context())
	c := newChecker(open, &server{})
	refused := &link{fails: answer("NOPERM no such channel")}
	wantError(t, run(t, c, refused), "subscribing to the inbox p:inbox:me", "NOPERM", "needed: subscribe, and the channel")
	end()
	if err := run(t, c, refused); err != nil {
		t.Errorf("%v, of a client that has ended", err)
	}
}

func TestAFreeLockIsNotKeptFromWhoDoesNotHear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, bound := range []time.Duration{time.Second, time.Hour} {
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			began := time.Now()
			err := newChecker(t.Context(), &server{}).Run(ctx, key.Hash("p", "a"), &listener.Listener{Subscription: &link{slow: true}}, 30*time.Second)
			if took, most := time.Since(began), min(bound/2, 2*time.Second); err != nil || took != most {
				t.Errorf("%v after %v, want none after %v", err, took, most)
			}
			cancel()
		}
	})
}

func TestWaitIsAskedForUntilItIsPermitted(t *testing.T) {
	s := &server{err: answer("NOPERM this user may not run wait")}
	c := newChecker(t.Context(), s)
	wait := func() error { return c.Wait(t.Context(), key.Hash("p", "a"), 30*time.Second) }
	wantError(t, wait(), "the user may not run: wait", "NOPERM")
	s.err = errors.New("no answer")
	if err := wait(); err != nil {
		t.Errorf("%v, though nobody has answered", err)
	}
	s.err = nil
	for range 3 {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}
	if s.asked != 3 {
		t.Errorf("asked %d times, want 3", s.asked)
	}
}

func TestAProbeAsksTwiceAtFirstAndLaterOnce(t *testing.T) {
	s := &server{deaf: errors.New("nothing is heard")}
	c := newChecker(t.Context(), s)
	k := &link{}
	check := func() error {
		return c.Probe(t.Context(), time.Second, key.Hash("p", "a"), &listener.Listener{Subscription: k, Channel: "p:inbox:me"})
	}
	wantError(t, check(), "nothing is heard")
	if s.granted != 0 {
		t.Error("who hears nothing counts as granted")
	}
	s.deaf, k.up = nil, true
	for i, asked := range []int{4, 5, 6} {
		if err := check(); err != nil || s.asked != asked || s.granted != 1 {
			t.Errorf("check %d: %v, asked %d times, told %d times; want %d, and once", i, err, s.asked, s.granted, asked)
		}
	}
	k.up, k.fails = false, answer("NOPERM no such channel")
	wantError(t, check(), "NOPERM", "needed: subscribe, and the channel")
	s.err = errors.New("no answer")
	wantError(t, check(), "no answer")
}

func TestWhatIsLackingIsARefusal(t *testing.T) {
	for _, lacks := range [][]any{{"publish"}, {"old", "6.2.1"}, {"publish, or the channel p:inbox:me", "sharded", "ERR slot"}} {
		if err := run(t, newChecker(t.Context(), &server{lacks: lacks}), &link{}); transport.Classify(err) != transport.Refused {
			t.Errorf("%v is %v", err, transport.Classify(err))
		}
	}
}

func TestWhatIsAssumedIsNotAsked(t *testing.T) {
	s := &server{}
	c := newChecker(t.Context(), s)
	c.Assume()
	if err := errors.Join(run(t, c, &link{}), c.Wait(t.Context(), key.Hash("p", "a"), time.Second)); err != nil || s.asked > 0 || s.granted > 0 {
		t.Errorf("%v, asked %d times, told %d times", err, s.asked, s.granted)
	}
}
