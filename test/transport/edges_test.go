package transport_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/virtual"
)

// Fails when a call that comes after Wait makes a stream, which nobody closes.
func TestACallAfterWaitLeavesNoConnection(t *testing.T) {
	for name, client := range map[string]func(t *testing.T, l *link) redis.UniversalClient{
		"one server": func(t *testing.T, l *link) redis.UniversalClient { return l.client(t) },
		"a Cluster": func(_ *testing.T, l *link) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Dialer: l.dial, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: "192.0.2.1:6379"}}}}, nil
			}})
		},
	} {
		for what, before := range map[string]int{"the first call": 0, "a later one": 3} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					defer virtual.Sleep(time.Second) // go-redis asks for the layout on a goroutine of its own, for so long
					l := newLink(t)
					rdb := client(t, l)
					tr := transport.New(rdb)
					for range before {
						if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
							t.Fatal(err)
						}
					}
					tr.Wait()
					for range 3 {
						if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
							t.Fatal(err)
						}
					}
					_ = rdb.Close()
					synctest.Wait()
					if got := l.srv.CurrentConnectionCount(); got != 0 {
						t.Errorf("%d connections are left", got)
					}
				})
			})
		}
	}
}

// Fails when a call to one primary closes the stream to another.
func TestCallsToTwoPrimariesInTurnsMakeNoConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer virtual.Sleep(time.Second)
		n := newTwoNodes(t)
		before := n.well.dialled() + n.hung.dialled()
		for range 5 {
			for _, l := range []*link{n.well, n.hung} {
				if _, err := n.tr.Do(t.Context(), time.Minute, call(n.on[l][0])); err != nil {
					t.Fatal(err)
				}
			}
		}
		if more := n.well.dialled() + n.hung.dialled() - before; more > 0 {
			t.Errorf("%d connections made by ten calls", more)
		}
	})
}

// A limiter is a hook that does not pass commands on: it returns what it is, called with their context.
type limiter func(ctx context.Context) error

func (f limiter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f limiter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			return f(ctx)
		}
		return next(ctx, cmd)
	}
}

func (f limiter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A hook waits for its turn until the context of the call ends.
// Fails when the call tells of a reply that did not come in time.
func TestACallWhoseContextEndsInAHookSaysSo(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		rdb := newLink(t).client(t)
		waits := false
		rdb.AddHook(limiter(func(ctx context.Context) error {
			if waits {
				<-ctx.Done()
			}
			return ctx.Err()
		}))
		tr := newTransport(t, rdb)
		_, _ = do(t.Context(), tr, time.Minute, call("k"))
		waits = true
		cause := errors.New("user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if _, err := do(ctx, tr, time.Minute, call("k")); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || errors.Is(err, transport.ErrNoReply) {
			t.Errorf("error %v, want context canceled and its cause", err)
		}
	})
}

// Fails when what a hook has kept back counts as a reply.
func TestACommandThatAHookKeepsBackIsNotAnswered(t *testing.T) {
	bothWays(t, func(t *testing.T, do way) {
		rdb := newLink(t).client(t)
		rdb.AddHook(limiter(func(context.Context) error { return nil }))
		tr := newTransport(t, rdb)
		for range 2 {
			if r, err := do(t.Context(), tr, time.Minute, call("k")); err == nil || transport.Classify(err) != transport.Unknown {
				t.Errorf("reply %v, error %v, want none, and an outcome that is unknown", r, err)
			}
		}
	})
}

// Fails when WAIT, which has not run either, is said to have failed behind a script that ran.
func TestACallWithReplicasThatIsNotSentHasNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{
			Addr: "192.0.2.1:6379", MaxRetries: -1, DialerRetries: 1,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
			},
		})
		defer rdb.Close()
		r := newTransport(t, rdb).DoAcked(t.Context(), time.Second, 1, time.Millisecond, call("k"))[0]
		if r.Err == nil || transport.Classify(r.Err) != transport.NotExecuted {
			t.Errorf("outcome %v of %v, want not executed", transport.Classify(r.Err), r.Err)
		}
	})
}

// Fails when a server that refuses WAIT seems to have no replicas.
func TestAServerThatRefusesWaitSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		srv.FailNext(2, "NOPERM this user has no permissions to run the 'wait' command", func(args []string) bool { return args[0] == "wait" })
		r := newTransport(t, srv.Client(t)).DoAcked(t.Context(), time.Second, 1, time.Millisecond, call("k"))[0]
		if r.Err == nil || transport.Classify(r.Err) != transport.Refused || !strings.Contains(r.Err.Error(), "WAIT for replicas failed") {
			t.Errorf("%v, want that WAIT was refused", r.Err)
		}
	})
}

// Fails when a pipeline hides why its connection could not be made.
func TestACallWithReplicasSaysThatItsCredentialsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		l.srv.RequireAuth("secret")
		opt := l.options()
		opt.Password = "wrong"
		rdb := redis.NewClient(opt)
		defer rdb.Close()
		r := newTransport(t, rdb).DoAcked(t.Context(), time.Second, 1, time.Millisecond, call("k"))[0]
		if r.Err == nil || transport.Classify(r.Err) != transport.Refused || !strings.Contains(r.Err.Error(), "WRONGPASS") {
			t.Errorf("outcome %v of %v, want that the password was refused", transport.Classify(r.Err), r.Err)
		}
	})
}

// The owner of the client uses its only connection, and the pool would have room for more, but may make none.
// Fails when a renewal waits for that connection.
func TestARenewalNeedsNoneOfAsManyConnectionsAsMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		rdb := l.client(t, func(o *redis.Options) { o.PoolSize, o.MaxActiveConns = 10, 1 })
		used := rdb.Conn()
		defer used.Close()
		if err := used.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		apart := call("k")
		apart.Apart = true
		if _, err := newTransport(t, rdb).Do(t.Context(), time.Second, apart); err != nil {
			t.Error(err)
		}
	})
}

// A call ends before its reply, which never comes, though that of a call beside it has come.
// Fails when the connection is kept for calls that will not use it.
func TestAStreamThatOwesAReplyToNobodyIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		tr := newTransport(t, l.client(t))
		do := func(timeout time.Duration) error {
			_, err := tr.Do(t.Context(), timeout, call("k"))
			return err
		}
		for range 3 {
			if err := do(time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		l.silence(2, 1)
		open := l.close()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { _ = do(stall / 2) })
		}
		synctest.Wait()
		open()
		both.Wait()
		virtual.Sleep(3 * time.Second)
		for range 3 {
			if err := do(time.Minute); err != nil {
				t.Error(err)
			}
		}
		if n := l.dialled(); n != 3 {
			t.Errorf("%d connections were made, want one of the pool and two streams", n)
		}
	})
}

// stall is how long a stream may owe a reply.
const stall = 100 * time.Millisecond

// A primary has lost its replicas, so another connection to it is no better.
// Fails when each call has the idle connections of the client closed, and the next one dials.
func TestIdleConnectionsToAPrimaryWithoutReplicasAreNotClosedByEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var dials atomic.Int64
		rdb := srv.Client(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				return srv.Dial(ctx, network, addr)
			}
		})
		tr := newTransport(t, wrapped{rdb})
		srv.FailNext(1000, "NOREPLICAS Not enough good replicas to write.", func(args []string) bool { return args[0] == "evalsha" && args[2] != "0" })
		for range 30 {
			if _, err := tr.Do(t.Context(), time.Second, call("k")); err == nil || transport.Classify(err) != transport.NotExecuted {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := dials.Load(); n > 4 {
			t.Errorf("%d connections made by 30 calls", n)
		}
	})
}
