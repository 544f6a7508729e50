package transport_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

// newTransport returns one whose goroutines end with the test.
func newTransport(t testing.TB, rdb redis.UniversalClient) *transport.Transport {
	t.Helper()
	tr := transport.New(rdb)
	t.Cleanup(tr.Wait)
	return tr
}

func call(key string) transport.Call {
	return transport.Call{Script: incr, Keys: []string{key}, Args: []any{"x"}}
}

type way func(context.Context, *transport.Transport, time.Duration, transport.Call) ([]any, error)

// ways are the two ways to send one call, which keep the same promises.
var ways = map[string]way{
	"do": func(ctx context.Context, t *transport.Transport, timeout time.Duration, c transport.Call) ([]any, error) {
		return t.Do(ctx, timeout, c)
	},
	"do all": func(ctx context.Context, t *transport.Transport, timeout time.Duration, c transport.Call) ([]any, error) {
		r := t.DoAll(ctx, timeout, []transport.Call{c})[0]
		return r.Reply, r.Err
	},
}

// bothWays runs f for each way, in a bubble of its own.
func bothWays(t *testing.T, f func(t *testing.T, do way)) {
	for name, do := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, do) })
		})
	}
}

func TestReplyIsIntegersAndStrings(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		tr := newTransport(t, newLink(t).client(t))
		reply, err := do(t.Context(), tr, time.Second, call("k"))
		if want := []any{int64(1), "x"}; err != nil || !slices.Equal(reply, want) {
			t.Errorf("reply %v, error %v, want %v", reply, err, want)
		}
	})
}

func TestReplyThatIsNoArrayIsItsOnlyElement(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		tr := newTransport(t, newLink(t).client(t))
		reply, err := do(t.Context(), tr, time.Second, transport.Call{Script: plain, Keys: []string{"k"}})
		if want := []any{int64(1)}; err != nil || !slices.Equal(reply, want) {
			t.Errorf("reply %v, error %v, want %v", reply, err, want)
		}
	})
}

func TestLostReplyIsUnknownAndRunsTheScriptOnce(t *testing.T) {
	for name, f := range map[string]fault{"swallowed": swallow, "cut": cut} {
		for _, cancellable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s cancellable %v", name, cancellable), func(t *testing.T) {
				bothWays(t, func(t *testing.T, do way) {
					l := newLink(t)
					tr := newTransport(t, l.client(t))
					ctx := context.Background()
					if cancellable {
						ctx = t.Context()
					}
					if _, err := do(ctx, tr, time.Minute, call("k")); err != nil {
						t.Fatal(err)
					}
					l.set(f)
					_, err := do(ctx, tr, time.Minute, call("k"))
					if err == nil || transport.Classify(err) != transport.Unknown {
						t.Errorf("error %v, want an unknown outcome", err)
					}
					tr.Wait()
					if got := l.count(t, "k"); got != 2 {
						t.Errorf("script ran %d times in all, want 2", got)
					}
				})
			})
		}
	}
}

func TestLostReplyRunsEveryScriptOfABatchOnce(t *testing.T) {
	for name, f := range map[string]fault{"swallowed": swallow, "cut": cut} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLink(t)
				tr := newTransport(t, l.client(t))
				calls := []transport.Call{call("a"), call("b"), call("c")}
				tr.DoAll(t.Context(), time.Minute, calls)
				l.set(f)
				for i, r := range tr.DoAll(t.Context(), time.Minute, calls) {
					if r.Err == nil || transport.Classify(r.Err) != transport.Unknown {
						t.Errorf("call %d: reply %v, error %v, want an unknown outcome", i, r.Reply, r.Err)
					}
				}
				for _, key := range []string{"a", "b", "c"} {
					// A connection that is cut may take unread requests with it.
					if got := l.count(t, key); got > 2 || got < 2 && f == swallow {
						t.Errorf("script ran %d times in all for %s, want 2", got, key)
					}
				}
			})
		})
	}
}

func TestServerWithoutTheScriptIsSentItsText(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		l := newLink(t)
		rdb := l.client(t)
		tr := newTransport(t, rdb)
		for i := range 2 { // also after the cache was lost
			if _, err := do(t.Context(), tr, time.Second, call("k")); err != nil {
				t.Error(err)
			}
			if got := l.count(t, "k"); got != i+1 {
				t.Errorf("script ran %d times, want %d", got, i+1)
			}
			rdb.ScriptFlush(t.Context())
		}
	})
}

func TestBatchSendsTextOnlyOfScriptsTheServerLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		rdb := l.client(t)
		tr := newTransport(t, rdb)
		if r := tr.DoAll(t.Context(), time.Second, []transport.Call{call("k")}); r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
		var sent recorder
		rdb.AddHook(&sent)
		cold := transport.Call{Script: plain, Keys: []string{"p"}}
		results := tr.DoAll(t.Context(), time.Second, []transport.Call{call("k"), cold, call("k")})
		for i, want := range []int64{2, 1, 3} {
			if results[i].Err != nil || results[i].Reply[0] != want {
				t.Errorf("call %d: %v, want %d first", i, results[i], want)
			}
		}
		// Without the handshake of the first connection for pipelines.
		sent.names = slices.DeleteFunc(sent.names, func(name string) bool { return !strings.HasPrefix(name, "eval") })
		if want := []string{"evalsha", "evalsha", "evalsha", "eval"}; !slices.Equal(sent.names, want) {
			t.Errorf("sent %v, want %v", sent.names, want)
		}
	})
}

func TestCopyOfACommandIsNotSentAgainEither(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		rdb := newLink(t).client(t)
		var sent recorder
		rdb.AddHook(&sent)
		if _, err := do(t.Context(), newTransport(t, rdb), time.Second, call("k")); err != nil {
			t.Fatal(err)
		}
		for _, cmd := range sent.cmds {
			if strings.HasPrefix(cmd.Name(), "eval") && !cmd.Clone().NoRetry() {
				t.Errorf("the copy of %s would be sent again", cmd.Name())
			}
		}
	})
}

func TestOneRefusedCallDoesNotFailTheOthers(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first %v", first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLink(t)
				tr := newTransport(t, l.client(t))
				bad := transport.Call{Script: fails, Keys: []string{"k"}}
				calls := []transport.Call{call("a"), call("b"), call("c")}
				at := 1
				if first {
					at = 0
				}
				calls[at] = bad
				for range 2 { // with and without NOSCRIPT
					for i, r := range tr.DoAll(t.Context(), time.Second, calls) {
						if i != at {
							if r.Err != nil {
								t.Errorf("call %d: %v", i, r.Err)
							}
							continue
						}
						if r.Err == nil || !strings.Contains(r.Err.Error(), "script fails: SORRY not today") || transport.Classify(r.Err) != transport.Refused {
							t.Errorf("error %v, want SORRY, refused", r.Err)
						}
					}
				}
			})
		})
	}
}

func TestNilReplyIsRefused(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		tr := newTransport(t, newLink(t).client(t))
		_, err := do(t.Context(), tr, time.Second, transport.Call{Script: empty, Keys: []string{"k"}})
		if !errors.Is(err, redis.Nil) || transport.Classify(err) != transport.Refused {
			t.Errorf("error %v, want redis.Nil, refused", err)
		}
	})
}

func TestRefusedHandshakeFailsTheCall(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		l := newLink(t)
		l.srv.RequireAuth("secret")
		opt := l.options()
		opt.Password = "wrong"
		rdb := redis.NewClient(opt)
		defer rdb.Close()
		_, err := do(t.Context(), newTransport(t, rdb), time.Second, call("k"))
		if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || transport.Classify(err) != transport.Refused {
			t.Errorf("error %v, want WRONGPASS, refused", err)
		}
	})
}

func TestClosedClientIsClosed(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		rdb := newLink(t).client(t)
		if err := rdb.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := do(t.Context(), newTransport(t, rdb), time.Second, call("k"))
		if err == nil || transport.Classify(err) != transport.Closed {
			t.Errorf("error %v, want closed", err)
		}
	})
}

func TestClusterClientRunsTheScriptOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		// go-redis asks for the layout on a goroutine of its own, for so long.
		defer virtual.Sleep(time.Second)
		l := newLink(t)
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"192.0.2.1:6379"}, Dialer: l.dial})
		defer rdb.Close()
		tr := newTransport(t, rdb)
		reply, err := do(t.Context(), tr, time.Second, call("k"))
		if err != nil || reply[0] != int64(1) {
			t.Fatalf("reply %v, error %v", reply, err)
		}
		for _, f := range []fault{swallow, cut} {
			before := l.count(t, "k")
			l.set(f)
			if _, err := do(t.Context(), tr, time.Minute, call("k")); err == nil || transport.Classify(err) != transport.Unknown {
				t.Errorf("error %v, want an unknown outcome", err)
			}
			l.set(none)
			if got := l.count(t, "k") - before; got > 1 {
				t.Errorf("script ran %d times, want at most 1", got)
			}
		}
	})
}

func TestNoCallsAreNoResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := newTransport(t, newLink(t).client(t)).DoAll(t.Context(), time.Second, nil); len(got) != 0 {
			t.Errorf("results %v", got)
		}
	})
}
