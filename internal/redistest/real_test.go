package redistest_test

import (
	"bufio"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

func TestRealServerAnswersAndKeepsNothingOnDisk(t *testing.T) {
	r := redistest.Real(t)
	c := r.Client(t)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if got := c.ConfigGet(t.Context(), "save").Val()["save"]; got != "" {
		t.Errorf("save = %q, want none", got)
	}
}

func TestRealServerTakesArgumentsOverDefaults(t *testing.T) {
	r := redistest.Real(t, "--appendonly", "yes", "--maxmemory", "100mb")
	got := r.Client(t).ConfigGet(t.Context(), "*").Val()
	if got["appendonly"] != "yes" || got["maxmemory"] != "104857600" {
		t.Errorf("appendonly, maxmemory = %s, %s", got["appendonly"], got["maxmemory"])
	}
}

func TestPausedServerAnswersWhenResumed(t *testing.T) {
	r := redistest.Real(t)
	c := r.Client(t, once, func(o *redis.Options) { o.ReadTimeout = 50 * time.Millisecond })
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	r.Pause()
	if err := c.Incr(t.Context(), "n").Err(); err == nil {
		t.Error("a paused server answered")
	}
	r.Resume()
	// The late INCR is ahead of this GET: the server reads its sockets in turn,
	// and the command came before the connection that asks.
	if got := value(t, r.Client(t), "n"); got != 1 {
		t.Errorf("n = %d, want 1: the late INCR executes", got)
	}
}

func TestRestartForgetsAllAndKeepsTheAddress(t *testing.T) {
	for _, aof := range []string{"no", "yes"} {
		r := redistest.Real(t, "--appendonly", aof)
		c := r.Client(t)
		if err := c.Set(t.Context(), "k", "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
		addr, pid := r.Addr(), r.PID()
		r.Restart()
		if r.Addr() != addr || r.PID() == pid {
			t.Errorf("address %s -> %s, pid %d -> %d", addr, r.Addr(), pid, r.PID())
		}
		if n, err := c.Exists(t.Context(), "k").Result(); n != 0 || err != nil {
			t.Errorf("EXISTS = %d, %v after a restart, want 0", n, err)
		}
	}
}

func TestKilledServerRefuses(t *testing.T) {
	r := redistest.Real(t)
	c := r.Client(t, once, func(o *redis.Options) { o.DialerRetries = 1 })
	r.Pause()
	r.Kill()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a killed server answered")
	}
}

func TestCommandStatsCountsExecutions(t *testing.T) {
	r := redistest.Real(t)
	c := r.Client(t)
	for range 3 {
		c.Incr(t.Context(), "n")
	}
	c.Eval(t.Context(), `return redis.call('incr', KEYS[1])`, []string{"n"})
	got := r.CommandStats(t.Context())
	if got["incr"] != 4 || got["eval"] != 1 || got["get"] != 0 {
		t.Errorf("incr, eval, get = %d, %d, %d, want 4, 1, 0", got["incr"], got["eval"], got["get"])
	}
}

// Between the look for a free port and redis-server's use of it another server may take the port, and answer while ours is about to exit.
func TestAServerThatHasThePortIsNotTakenForOurs(t *testing.T) {
	redistest.Real(t).Kill() // skips this test if redis-server is missing; the recorder below cannot skip it
	rec := &recorder{TB: t}
	r := redistest.Real(rec)
	r.Kill()
	l, err := net.Listen("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go pongs(l)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Revive()
	}()
	<-done
	if rec.ended != "failed" {
		t.Error("a server that is about to exit was said to serve, by what another answered")
	}
}

// pongs answers the first command of each connection with a PONG, until l is closed.
func pongs(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = bufio.NewReader(conn).ReadString('\n')
		_, _ = conn.Write([]byte("+PONG\r\n"))
		_ = conn.Close()
	}
}

func TestTestsWithoutRedisServerSkipOrFail(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for env, want := range map[string]string{"": "skipped", "1": "failed"} {
		t.Setenv("RELOCK_TEST_REQUIRE", env)
		got := outcome(t)
		if got != want {
			t.Errorf("RELOCK_TEST_REQUIRE=%q: %s, want %s", env, got, want)
		}
	}
}

// outcome runs Real with a TB that records how it ended.
func outcome(t *testing.T) string {
	rec := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		redistest.Real(rec)
	}()
	<-done
	return rec.ended
}

type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()               {}
func (r *recorder) Skip(...any)           { r.ended = "skipped"; runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.ended = "failed"; runtime.Goexit() }
