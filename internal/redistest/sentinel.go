package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
)

// masterName is the Sentinels' name for the primary.
const masterName = "main"

// sentinelConf makes a primary count as down after half a second.
const sentinelConf = `port %s
bind 127.0.0.1
dir %s
sentinel monitor ` + masterName + ` 127.0.0.1 %s 2
sentinel down-after-milliseconds ` + masterName + ` 500
sentinel failover-timeout ` + masterName + ` 3000
sentinel parallel-syncs ` + masterName + ` 2
`

// Sentinel is a primary and its replicas, watched by three Sentinels.
type Sentinel struct {
	*Replication
	t        testing.TB
	watchers []*RealServer
	ordered  bool // a failover was asked for
}

// StartSentinel starts a primary, two replicas and three Sentinels, which know
// each other when it returns. args go to the primary and the replicas.
func StartSentinel(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	s := &Sentinel{t: t, Replication: StartReplication(t, 2, args...)}
	for range 3 {
		s.watchers = append(s.watchers, s.watch())
	}
	for _, w := range s.watchers {
		w.await("the Sentinels know all", func(ctx context.Context) string {
			known, err := w.master(ctx)
			if err != nil {
				return err.Error()
			}
			if known["num-slaves"] == "2" && known["num-other-sentinels"] == "2" && known["flags"] == "master" {
				return ""
			}
			return fmt.Sprint(known)
		})
	}
	return s
}

// watch starts one Sentinel and shortens its internal intervals.
func (s *Sentinel) watch() *RealServer {
	s.t.Helper()
	w := launch(s.t, func(r *RealServer) []string {
		conf := filepath.Join(r.dir, "sentinel.conf")
		text := fmt.Sprintf(sentinelConf, r.port, r.dir, s.Primary.port)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			s.t.Errorf("redistest: %v", err)
		}
		return []string{conf, "--sentinel"}
	})
	// Without this it would do nothing for 30 s after this machine paused for 2 s. It also does not promote a replica
	// that has been silent for five ping periods. With 100 ms, that would be every replica on a busy machine.
	w.must("SENTINEL", "DEBUG", "info-period", "200", "publish-period", "200", "ask-period", "200",
		"ping-period", "300", "tilt-trigger", "60000")
	return w
}

// master returns what a Sentinel knows of the primary.
func (r *RealServer) master(ctx context.Context) (map[string]string, error) {
	rdb := redis.NewSentinelClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true})
	defer func() { _ = rdb.Close() }()
	return rdb.Master(ctx, masterName).Result()
}

// Client returns a client that finds the primary by asking the Sentinels. It is closed when t ends.
func (s *Sentinel) Client(t testing.TB, mod ...func(*redis.FailoverOptions)) *redis.Client {
	t.Helper()
	o := &redis.FailoverOptions{MasterName: masterName, SentinelAddrs: s.Watchers()}
	for _, m := range mod {
		m(o)
	}
	c := redis.NewFailoverClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Watchers are the addresses of the Sentinels.
func (s *Sentinel) Watchers() (addrs []string) {
	for _, w := range s.watchers {
		addrs = append(addrs, w.Addr())
	}
	return addrs
}

// Now returns the server that is the primary by the word of a Sentinel and by its own.
func (s *Sentinel) Now() *RealServer {
	s.t.Helper()
	return s.Promoted(nil)
}

// Failover asks for a failover in order, and returns at once.
func (s *Sentinel) Failover() {
	s.t.Helper()
	s.watchers[0].must("SENTINEL", "FAILOVER", masterName)
	s.ordered = true
}

// Promoted waits until another server than old is the primary, by the word of a
// Sentinel and by its own, and returns it.
func (s *Sentinel) Promoted(old *RealServer) (primary *RealServer) {
	s.t.Helper()
	awaitState(s.t, "there is a new primary", func(ctx context.Context) string {
		known, err := s.watchers[0].master(ctx)
		if err != nil {
			return err.Error()
		}
		primary = withPort(s.All(), net.JoinHostPort(known["ip"], known["port"]))
		if s.ordered && primary == old && known["flags"] == "master" {
			// The chosen replica has not answered in time, and no Sentinel tries another one by itself.
			_, _ = s.watchers[0].call(ctx, "SENTINEL", "FAILOVER", masterName)
		}
		if primary == nil || primary == old {
			return fmt.Sprint(known)
		}
		return primary.lacks(ctx, "role:master")
	})
	s.ordered = s.ordered && old == nil
	return primary
}

// AwaitReplicas waits until so many replicas follow the primary.
func (s *Sentinel) AwaitReplicas(n int) {
	s.t.Helper()
	primary := s.Now()
	primary.await("replicas follow", func(ctx context.Context) string {
		return primary.lacks(ctx, fmt.Sprint("connected_slaves:", n))
	})
}
