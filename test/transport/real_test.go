package transport_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/transport"
)

func realClient(t testing.TB, opt *redis.Options) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestRealServerIsSentTheTextItLacks(t *testing.T) {
	rdb := realClient(t, &redis.Options{Addr: redistest.Real(t).Addr()})
	tr := newTransport(t, rdb)
	runs := int64(0)
	for name, do := range ways {
		for range 2 {
			reply, err := do(t.Context(), tr, 10*time.Second, call("k"))
			if runs++; err != nil || reply[0] != runs || reply[1] != "x" {
				t.Errorf("%s: reply %v, error %v, want run %d", name, reply, err, runs)
			}
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// state is a state of a server, made and undone by commands, in which it
// refuses scripts.
type state struct {
	name       string
	made, undo string
	outcome    transport.Outcome
	code       string
}

func TestOutcomeOfWhatARealServerAnswers(t *testing.T) {
	addr := redistest.Real(t).Addr()
	admin := realClient(t, &redis.Options{Addr: addr})
	tr := newTransport(t, realClient(t, &redis.Options{Addr: addr}))
	for _, s := range []state{
		{"wrong type", "lpush k v", "del k", transport.Refused, "WRONGTYPE"},
		{"out of memory", "config set maxmemory 1", "config set maxmemory 0", transport.Refused, "OOM"},
		{"too few replicas", "config set min-replicas-to-write 1", "config set min-replicas-to-write 0", transport.NotExecuted, "NOREPLICAS"},
		{"replica", "replicaof 127.0.0.1 1", "replicaof no one", transport.NotExecuted, "READONLY"},
		{"stale replica", "config set replica-serve-stale-data no|replicaof 127.0.0.1 1", "replicaof no one|config set replica-serve-stale-data yes", transport.NotExecuted, "MASTERDOWN"},
		{"no permission", "acl setuser default -evalsha", "acl setuser default +evalsha", transport.Refused, "NOPERM"},
	} {
		for name, do := range ways {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				run(t, admin, s.made)
				_, err := do(t.Context(), tr, 10*time.Second, call("k"))
				run(t, admin, s.undo)
				if err == nil || !strings.Contains(err.Error(), s.code) || transport.Classify(err) != s.outcome {
					t.Errorf("error %v, want %s, %v", err, s.code, s.outcome)
				}
				if _, err := do(t.Context(), tr, 10*time.Second, call("other")); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
	}
}

// run runs commands with | between them.
func run(t *testing.T, rdb *redis.Client, commands string) {
	t.Helper()
	for command := range strings.SplitSeq(commands, "|") {
		var args []any
		for word := range strings.FieldsSeq(command) {
			args = append(args, word)
		}
		if err := rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
}

func TestBusyServerDidNotRunTheScript(t *testing.T) {
	addr := redistest.Real(t, "--busy-reply-threshold", "20").Addr()
	admin := realClient(t, &redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute})
	tr := newTransport(t, realClient(t, &redis.Options{Addr: addr}))
	looped := make(chan error, 1)
	go func() { looped <- admin.Eval(context.Background(), "while true do end", nil).Err() }()
	var err error
	await(t, func() bool {
		_, err = tr.Do(t.Context(), 10*time.Second, call("k"))
		return err != nil
	})
	if !redis.HasErrorPrefix(err, "BUSY") || transport.Classify(err) != transport.NotExecuted {
		t.Errorf("error %v, want BUSY, not executed", err)
	}
	if err := admin.ScriptKill(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	if err := <-looped; err == nil {
		t.Error("the endless script ended by itself")
	}
}

// TestServerThatCannotPersistDidNotRunTheScript: its disk is full for a while. A
// directory in the snapshot's place does the same, for root too.
func TestServerThatCannotPersistDidNotRunTheScript(t *testing.T) {
	addr := redistest.Real(t, "--save", "3600 1000000").Addr()
	admin := realClient(t, &redis.Options{Addr: addr})
	tr := newTransport(t, realClient(t, &redis.Options{Addr: addr}))
	inTheWay := filepath.Join(admin.ConfigGet(t.Context(), "dir").Val()["dir"], "dump.rdb")
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	saves := func(status string) {
		run(t, admin, "bgsave")
		await(t, func() bool {
			info := admin.Info(t.Context(), "persistence").Val()
			return strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info, "rdb_last_bgsave_status:"+status)
		})
	}
	saves("err")
	for name, do := range ways {
		if _, err := do(t.Context(), tr, 10*time.Second, call("k")); !redis.HasErrorPrefix(err, "MISCONF") || transport.Classify(err) != transport.NotExecuted {
			t.Errorf("%s: error %v, want MISCONF, not executed", name, err)
		}
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	saves("ok")
	if _, err := tr.Do(t.Context(), 10*time.Second, call("k")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// goneAddr returns an address that nobody listens on.
func goneAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestRealServerThatIsNotThereDidNotRunTheScript(t *testing.T) {
	for name, do := range ways {
		tr := newTransport(t, realClient(t, &redis.Options{Addr: goneAddr(t), DialerRetries: 1}))
		_, err := do(t.Context(), tr, 10*time.Second, call("k"))
		if err == nil || transport.Classify(err) != transport.NotExecuted {
			t.Errorf("%s: error %v, want not executed", name, err)
		}
	}
}

func TestRealServerThatWantsAPasswordRefuses(t *testing.T) {
	addr := redistest.Real(t).Addr()
	run(t, realClient(t, &redis.Options{Addr: addr}), "config set requirepass secret")
	for name, do := range ways {
		tr := newTransport(t, realClient(t, &redis.Options{Addr: addr}))
		_, err := do(t.Context(), tr, 10*time.Second, call("k"))
		if err == nil || !strings.Contains(err.Error(), "NOAUTH") || transport.Classify(err) != transport.Refused {
			t.Errorf("%s: error %v, want NOAUTH, refused", name, err)
		}
	}
}

// go-redis would ask once, or at each call where the ACL forbids the answer.
func TestRealClusterIsNotAskedWhereTheKeysAre(t *testing.T) {
	addr := redistest.Real(t, "--cluster-enabled", "yes").Addr()
	admin := realClient(t, &redis.Options{Addr: addr})
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
	t.Cleanup(func() { _ = rdb.Close() })
	tr := newTransport(t, rdb)
	run(t, admin, "cluster addslotsrange 0 16383")
	await(t, func() bool {
		return strings.Contains(admin.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	for name, do := range ways {
		for range 3 {
			if _, err := do(t.Context(), tr, 10*time.Second, call("k")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	stats := admin.Info(t.Context(), "commandstats").Val()
	if !strings.Contains(stats, "cmdstat_evalsha:calls=") {
		t.Errorf("no scripts in the statistics: %s", stats)
	}
	for line := range strings.Lines(stats) {
		if strings.HasPrefix(line, "cmdstat_command") {
			t.Errorf("the server was asked: %s", line)
		}
	}
	run(t, admin, "cluster delslotsrange 0 16383")
	for name, do := range ways {
		_, err := do(t.Context(), tr, 10*time.Second, call("k"))
		if err == nil || transport.Classify(err) != transport.NotExecuted {
			t.Errorf("%s without slots: error %v, want not executed", name, err)
		}
	}
}

// Fails when a connection that has been idle is taken for good without a look.
func TestConnectionThatTheServerClosedIsNotUsed(t *testing.T) {
	rdb := realClient(t, &redis.Options{Addr: redistest.Real(t).Addr()})
	tr := newTransport(t, rdb)
	for range 3 {
		if _, err := tr.Do(t.Context(), time.Minute, call("k")); err != nil {
			t.Fatal(err)
		}
		if err := rdb.ClientKillByFilter(t.Context(), "type", "normal", "skipme", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		await(t, func() bool { return time.Since(begin) > 20*time.Millisecond })
	}
}
