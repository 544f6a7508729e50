package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// deployWithin bounds the wait for a deployment to be complete, or to have done what it was asked for.
const deployWithin = time.Minute

// Replication is a primary and its replicas.
type Replication struct {
	Primary  *RealServer
	Replicas []*RealServer
}

// StartReplication starts a primary with replicas, and waits until they follow it.
func StartReplication(t testing.TB, replicas int, args ...string) *Replication {
	t.Helper()
	// Without the delay a replica that comes back waits five seconds for others.
	args = append([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, args...)
	r := &Replication{Primary: Real(t, args...)}
	for range replicas {
		follower := append([]string{"--replicaof", "127.0.0.1 " + r.Primary.port}, args...)
		r.Replicas = append(r.Replicas, Real(t, follower...))
	}
	for _, replica := range r.Replicas {
		replica.await("follows its primary", func(ctx context.Context) string {
			return replica.lacks(ctx, "master_link_status:up")
		})
	}
	// WAIT also counts a replica that has just come and owes an answer to nothing;
	// on newer servers the next write then has none for up to a second.
	for range 2 {
		r.Primary.await("they acknowledge a write", func(ctx context.Context) string { return r.Primary.acked(ctx, replicas) })
	}
	return r
}

// acked returns "" if that many replicas acknowledge a write, which leaves no key behind.
func (r *RealServer) acked(ctx context.Context, replicas int) string {
	rdb := r.admin()
	defer func() { _ = rdb.Close() }()
	var wait *redis.Cmd
	_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Publish(ctx, "replicated", "")
		wait = pipe.Do(ctx, "WAIT", replicas, 100)
		return nil
	})
	if err != nil || wait.Val() != int64(replicas) {
		return fmt.Sprintf("%v of %d replicas: %v", wait.Val(), replicas, err)
	}
	return ""
}

// All returns the servers, with the one that was started as the primary first.
func (r *Replication) All() []*RealServer {
	return append([]*RealServer{r.Primary}, r.Replicas...)
}

// withPort finds the server that listens on addr's port.
func withPort(servers []*RealServer, addr string) *RealServer {
	_, port, _ := net.SplitHostPort(addr)
	for _, s := range servers {
		if s.port == port {
			return s
		}
	}
	return nil
}

// admin returns a client for administrative commands. It makes one short try, because the server may be stopped.
func (r *RealServer) admin() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: r.Addr(), MaxRetries: -1, DialerRetries: 1, PoolSize: 1, Protocol: 2, DisableIdentity: true,
		DialTimeout: time.Second, ReadTimeout: 3 * time.Second, WriteTimeout: time.Second,
	})
}

// call runs one administrative command.
func (r *RealServer) call(ctx context.Context, args ...any) (any, error) {
	rdb := r.admin()
	defer func() { _ = rdb.Close() }()
	return rdb.Do(ctx, args...).Result()
}

// must is call for a command that must succeed. Only connecting may fail, on a busy machine: then nothing was sent.
func (r *RealServer) must(args ...any) any {
	r.t.Helper()
	var v any
	var err error
	for range 5 {
		v, err = r.call(context.Background(), args...)
		if op := (*net.OpError)(nil); !errors.As(err, &op) || op.Op != "dial" {
			break
		}
	}
	if err != nil {
		r.t.Fatalf("redistest: %v: %v", args, err)
	}
	return v
}

// lacks returns "" if INFO replication has the line, otherwise what it has.
func (r *RealServer) lacks(ctx context.Context, line string) string {
	v, err := r.call(ctx, "INFO", "replication")
	if err != nil {
		return err.Error()
	}
	info, _ := v.(string)
	if strings.Contains(info, line+"\r\n") {
		return ""
	}
	return fmt.Sprintf("INFO replication lacks %q:\n%s", line, info)
}

// await waits until amiss returns "".
func (r *RealServer) await(what string, amiss func(ctx context.Context) string) {
	r.t.Helper()
	awaitState(r.t, what, amiss)
}

// awaitState waits until amiss, which says what is still to come, returns "".
func awaitState(t testing.TB, what string, amiss func(ctx context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deployWithin)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		missing := amiss(ctx)
		if missing == "" {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("redistest: not so within %v: %s: %s", deployWithin, what, missing)
		}
	}
}
