package inbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/virtual"
)

// shardStates are those that Close may meet, and how each is reached.
var shardStates = map[string]func(x *cluster){
	"unused":     func(*cluster) {},
	"subscribed": func(x *cluster) { x.join("a") },
	"lingering":  func(x *cluster) { _, leave := x.join("a"); leave() },
	"expiring": func(x *cluster) {
		_, leave := x.join("a")
		leave()
		virtual.Sleep(linger)
	},
	"dialling": func(x *cluster) {
		x.nodes[0].net.hang.Store(true)
		x.Channel("a").Join()
		x.Channel("b").Join()
		synctest.Wait()
	},
	"refused": func(x *cluster) {
		x.nodes[0].shard.Refuse(func(string) string { return "CLUSTERDOWN" })
		x.Channel("a").Join()
		virtual.Sleep(time.Second)
	},
}

func TestCloseEndsShardsInEveryState(t *testing.T) {
	for name, reach := range shardStates {
		t.Run(name, func(t *testing.T) {
			sharded(t, func(t *testing.T, x *cluster) {
				reach(x)
				began := time.Now()
				x.Close()
				x.Close()
				if took := time.Since(began); took > 0 {
					t.Errorf("Close took %v", took)
				}
				x.connections(0, 0)
				c := x.Channel("a")
				c.Join()()
				if err := c.Ready(t.Context()); !errors.Is(err, inbox.ErrClosed) || c.Up() {
					t.Errorf("after Close: Ready = %v, Up = %v", err, c.Up())
				}
			})
		})
	}
}

func TestClosedClientIsTerminal(t *testing.T) {
	t.Run("before the start", func(t *testing.T) {
		bubble(t, func(t *testing.T, x *fixture) {
			_ = x.rdb.Close()
			if err := x.Ready(t.Context()); !errors.Is(err, redis.ErrClosed) {
				t.Errorf("Ready = %v, want %v", err, redis.ErrClosed)
			}
			x.quiet(time.Hour)
		})
	})
	t.Run("while up", func(t *testing.T) {
		bubble(t, func(t *testing.T, x *fixture) {
			x.ready()
			_ = x.rdb.Close()
			if err := awaitRefusal(x); !errors.Is(err, redis.ErrClosed) {
				t.Errorf("Ready = %v, want %v", err, redis.ErrClosed)
			}
			x.quiet(time.Hour)
			if x.Up() {
				t.Error("up on a closed client")
			}
			if err := x.Ready(t.Context()); !errors.Is(err, redis.ErrClosed) {
				t.Errorf("Ready an hour later = %v, want %v", err, redis.ErrClosed)
			}
		})
	})
}

// awaitRefusal returns what Ready says once the link that was up has ended.
func awaitRefusal(x *fixture) error {
	x.t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(x.t.Context(), 10*time.Second)
	defer cancel()
	return x.Ready(ctx)
}

// inboxStates are those that Close may meet, and how each is reached.
var inboxStates = map[string]func(*fixture){
	"before the start": func(*fixture) {},
	"while up":         (*fixture).ready,
	"after a suspicion": func(x *fixture) {
		x.ready()
		virtual.Sleep(time.Minute)
		x.Suspect()
	},
	"while half-open": func(x *fixture) {
		x.ready()
		x.net.deafen()
	},
	"while backing off": func(x *fixture) {
		x.ready()
		x.srv.Partition()
		virtual.Sleep(time.Minute)
	},
	"while a dial hangs": func(x *fixture) {
		x.net.hang.Store(true)
		ctx, cancel := context.WithTimeout(x.t.Context(), time.Second)
		defer cancel()
		_ = x.Ready(ctx)
	},
	"while the server is stalled": func(x *fixture) {
		x.srv.Stall()
		ctx, cancel := context.WithTimeout(x.t.Context(), time.Second)
		defer cancel()
		_ = x.Ready(ctx)
	},
}

func TestCloseEndsEverything(t *testing.T) {
	for name, prepare := range inboxStates {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, x *fixture) {
				prepare(x)
				begin := time.Now()
				x.Close()
				x.Close()
				if d := time.Since(begin); d > 10*time.Second {
					t.Errorf("Close took %v", d)
				}
				if x.Up() {
					t.Error("up after Close")
				}
				if err := x.Ready(t.Context()); !errors.Is(err, inbox.ErrClosed) {
					t.Errorf("Ready = %v, want %v", err, inbox.ErrClosed)
				}
				x.Suspect()
				x.quiet(time.Hour)
			})
		})
	}
}

func TestCloseWakesReady(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.srv.Partition()
		got := make(chan error)
		for range 3 {
			go func() { got <- x.Ready(context.Background()) }()
		}
		virtual.Sleep(time.Minute)
		x.Close()
		for range 3 {
			if err := <-got; !errors.Is(err, inbox.ErrClosed) {
				t.Errorf("Ready = %v, want %v", err, inbox.ErrClosed)
			}
		}
	})
}
