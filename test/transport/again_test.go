package transport_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
)

// around is a hook that does what it says with each command.
type around func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error

func (f around) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f around) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return f(ctx, cmd, next) }
}

func (f around) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// twice is a hook that sends what has failed once more.
func twice(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	if err := next(ctx, cmd); err == nil {
		return nil
	}
	return next(ctx, cmd)
}

// elsewhere is a hook that sends what has had no reply to another server, in vain.
func elsewhere(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	err := next(ctx, cmd)
	if err != nil && transport.Classify(err) == transport.Unknown {
		return redis.ErrPoolTimeout
	}
	return err
}

// hooked makes a call that Redis runs, on the connection that calls share, through a hook
// that has seen one before.
func hooked(t *testing.T, hook around, f fault) (l *link, do func(context.Context, time.Duration) error) {
	t.Helper()
	l = newLink(t)
	rdb := l.client(t)
	rdb.AddHook(hook)
	tr := newTransport(t, rdb)
	do = func(ctx context.Context, timeout time.Duration) error {
		_, err := tr.Do(ctx, timeout, call("k"))
		return err
	}
	for range 2 {
		if err := do(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	l.set(f)
	return l, do
}

// Fails when a call that Redis has run is told not to have been, as the hook could not send
// it a second time, or when the next call is told what this one was.
func TestACallThatAHookSendsAgainMayHaveRun(t *testing.T) {
	for name, row := range map[string]struct {
		hook            around
		fault           fault
		cancel, timeout time.Duration
		want            error
	}{
		"the connection breaks": {twice, cut, time.Minute, time.Minute, nil},
		"the time is over":      {twice, swallow, time.Minute, time.Second, transport.ErrNoReply},
		"the context ends":      {twice, swallow, time.Second, time.Minute, context.DeadlineExceeded},
		"to another server":     {elsewhere, cut, time.Minute, time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, do := hooked(t, row.hook, row.fault)
				ctx, cancel := context.WithTimeout(t.Context(), row.cancel)
				defer cancel()
				err := do(ctx, row.timeout)
				if err == nil || transport.Classify(err) != transport.Unknown || row.want != nil && !errors.Is(err, row.want) {
					t.Errorf("error %v, want an unknown outcome, and %v", err, row.want)
				}
				if got := l.count(t, "k"); got != 3 {
					t.Errorf("the script ran %d times, want 3", got)
				}
				l.set(none)
				if err := do(t.Context(), time.Minute); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

// Fails when the end of a hook's own context is told to a caller whose context has not ended.
func TestAHooksOwnDeadlineIsNotTheCallersContexts(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration
		want  transport.Outcome
		match error
	}{
		"while it waits": {time.Second, transport.Unknown, transport.ErrNoReply},
		"at once":        {0, transport.NotExecuted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				after := time.Minute
				_, do := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
					ctx, cancel := context.WithTimeout(ctx, after)
					defer cancel()
					return next(ctx, cmd)
				}, swallow)
				after = row.after
				err := do(t.Context(), time.Minute)
				if err == nil || errors.Is(err, context.DeadlineExceeded) || transport.Classify(err) != row.want || row.match != nil && !errors.Is(err, row.match) {
					t.Errorf("error %v, want one of no context, %v, and %v", err, row.want, row.match)
				}
			})
		})
	}
}

// scripted is a connection that tells when a script leaves by it.
type scripted struct {
	net.Conn
	sent func()
}

func (c scripted) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("evalsha")) {
		c.sent()
	}
	return c.Conn.Write(p)
}

// Fails when a call that Redis has run, and that had its connection break as it was the
// first there, runs once more for a hook, or is told not to have run.
func TestFirstCallOfAConnectionThatAHookSendsAgainMayHaveRun(t *testing.T) {
	for name, hook := range map[string]around{"once more": twice, "to another server": func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		err := elsewhere(ctx, cmd, next)
		cmd.SetErr(err)
		return err
	}} {
		for _, refused := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l, broken := newLink(t), false
					rdb := l.client(t, func(o *redis.Options) {
						o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
							if l.set(none); broken && refused {
								return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
							}
							c, err := l.dial(ctx, network, addr)
							return scripted{c, func() { broken = true; l.set(cut) }}, err
						}
					})
					if err := rdb.ScriptLoad(t.Context(), incr.Source).Err(); err != nil {
						t.Fatal(err)
					}
					rdb.AddHook(hook)
					_, err := newTransport(t, rdb).Do(t.Context(), time.Minute, call("k"))
					if err == nil || transport.Classify(err) != transport.Unknown {
						t.Errorf("error %v, want an unknown outcome", err)
					}
					if got := l.count(t, "k"); got != 1 {
						t.Errorf("the script ran %d times, want 1", got)
					}
				})
			})
		}
	}
}

// Fails, under the race detector, when two that send one command at once share what a call
// has, and when one that comes late writes on the connection in another call's name.
func TestHookThatSendsACommandTwiceAtOnceOrLateIsRefused(t *testing.T) {
	var late []func() error
	hedge := func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		results := make(chan redis.Cmder, 2)
		for range 2 {
			one := cmd.Clone()
			go func() { one.SetErr(next(ctx, one)); results <- one }()
		}
		late = append(late, func() error { return next(ctx, cmd.Clone()) })
		one := <-results
		if one.Err() != nil {
			one = <-results
		}
		cmd.(interface{ SetVal(any) }).SetVal(one.(interface{ Val() any }).Val())
		return one.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		_, do := hooked(t, hedge, none)
		for range 50 {
			if err := do(t.Context(), time.Minute); err != nil {
				t.Error(err)
			}
			for _, again := range late {
				if again() == nil {
					t.Error("it is sent after its call")
				}
			}
			late = nil
		}
	})
}

// go-redis sends 1 for true, and other types in ways of its own. Fails when a connection of relock's own sends the text
// that Go has for such a value: a key would have one name there and another by the client's pool.
func TestHookThatMakesAnArgumentOfAnotherTypeIsRefused(t *testing.T) {
	turn := false
	change := func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if args := cmd.Args(); turn {
			args[len(args)-1] = true
		}
		return next(ctx, cmd)
	}
	synctest.Test(t, func(t *testing.T) {
		_, do := hooked(t, change, none)
		turn = true
		if err := do(t.Context(), time.Minute); transport.Classify(err) != transport.NotExecuted {
			t.Errorf("%v, want that nothing is sent", err)
		}
	})
}
