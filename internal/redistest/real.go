package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/spawn"
)

// requireEnv, set to 1, turns the lack of a redis-server into a failure.
const requireEnv = "RELOCK_TEST_REQUIRE"

// virtualEnv, set to 0, skips the tests in virtual time.
const virtualEnv = "RELOCK_TEST_VIRTUAL"

// lacksEnv lists what the redis-server was built without: "tls", or "preload" if it is linked statically,
// because some tests move its clock with a preloaded library.
const lacksEnv = "RELOCK_TEST_LACKS"

// Lacks reports whether the redis-server was built without that feature.
func Lacks(what string) bool { return slices.Contains(strings.Fields(os.Getenv(lacksEnv)), what) }

// startWithin bounds the wait for a server's first answer.
const startWithin = 20 * time.Second

// RealServer is a redis-server process on a free port of the loopback interface.
// Its methods are for one goroutine at a time.
type RealServer struct {
	t    testing.TB
	bin  string
	dir  string
	port string
	side string                       // a second free port: of a cluster's bus, or for TLS
	line func(r *RealServer) []string // the arguments, once the ports are known
	proc *process
}

// process is one run of the binary.
type process struct {
	cmd    *exec.Cmd
	out    bytes.Buffer // what it printed; read it after exited only
	exited <-chan struct{}
}

// Real starts a redis-server that keeps nothing on disk, and kills it when t ends.
// args go to the binary after the defaults and so prevail over them.
//
// Without the binary the test is skipped, or fails if RELOCK_TEST_REQUIRE is 1.
func Real(t testing.TB, args ...string) *RealServer {
	t.Helper()
	return launch(t, func(r *RealServer) []string { return append(r.defaults(), args...) })
}

// defaults returns the arguments of a server that keeps nothing on disk.
func (r *RealServer) defaults() []string {
	return []string{"--port", r.port, "--bind", "127.0.0.1", "--dir", r.dir, "--save", "", "--appendonly", "no"}
}

// launch starts the binary with the arguments that line returns once there are ports.
func launch(t testing.TB, line func(r *RealServer) []string) *RealServer {
	t.Helper()
	r, err := tryLaunch(t, line)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryLaunch(t testing.TB, line func(r *RealServer) []string) (*RealServer, error) {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv(requireEnv) == "1" {
			t.Fatalf("redis-server is not installed, and %s=1 demands it: run `make test`, which installs it", requireEnv)
		}
		t.Skip("left out: this test needs a redis-server on PATH; `make test` installs one and runs it")
	}
	r := &RealServer{t: t, bin: bin, dir: t.TempDir(), line: line}
	t.Cleanup(r.Kill)
	const attempts = 5 // the ports found free may be taken before the server binds them
	for range attempts {
		r.port, r.side = freePorts(t)
		if err = r.start(); err == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("redistest: no redis-server after %d attempts: %w", attempts, err)
}

// freePorts returns two ports: both are kept until both are known.
func freePorts(t testing.TB) (first, second string) {
	t.Helper()
	var ports [2]string
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		defer func() { _ = l.Close() }()
		ports[i] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return ports[0], ports[1]
}

func (r *RealServer) start() error {
	p := &process{cmd: exec.Command(r.bin, r.line(r)...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	var err error
	if p.exited, err = spawn.Start(p.cmd); err != nil {
		return err
	}
	r.proc = p
	if err := r.awaitPong(); err != nil {
		r.Kill()
		return fmt.Errorf("%w; it said:\n%s", err, p.out.String())
	}
	return nil
}

func (r *RealServer) awaitPong() error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		err := r.pong(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.proc.exited:
			return errors.New("redis-server exited")
		case <-ctx.Done():
			return fmt.Errorf("no PONG: %w", errors.Join(ctx.Err(), err))
		case <-again.C:
		}
	}
}

// pong reports what is missing until the process serves. Another server may have won the port: ours
// then exits, and until it has, the other answers.
func (r *RealServer) pong(ctx context.Context) error {
	if reply, err := r.do(ctx, "PING"); err != nil || string(reply) != "+PONG\r\n" {
		return errors.Join(fmt.Errorf("PING was answered %q", reply), err)
	}
	info, err := r.do(ctx, "INFO server")
	if err != nil || !strings.Contains(string(info), fmt.Sprintf("\r\nprocess_id:%d\r\n", r.PID())) {
		return errors.Join(errors.New("another server answers on the port"), err)
	}
	return nil
}

// do runs one command without arguments that need quoting on a connection of its
// own, with no handshake that would show in the server's statistics.
func (r *RealServer) do(ctx context.Context, line string) ([]byte, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Addr())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if by, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(by)
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", line); err != nil {
		return nil, err
	}
	f, err := readFrame(bufio.NewReader(conn))
	return f.raw, err
}

// Addr returns the server's address.
func (r *RealServer) Addr() string { return net.JoinHostPort("127.0.0.1", r.port) }

// Client returns a client of r that is closed when t ends. Its options are the
// defaults of go-redis as changed by mod.
func (r *RealServer) Client(t testing.TB, mod ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, &redis.Options{Addr: r.Addr()}, mod)
}

// Dial connects to r over TCP, whatever the address asked for. It fits [NewLink].
func (r *RealServer) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", r.Addr())
}

// PID returns the id of the running process.
func (r *RealServer) PID() int { return r.proc.cmd.Process.Pid }

// Pause stops the process without closing its connections, as a host that hangs.
func (r *RealServer) Pause() {
	r.t.Helper()
	r.signal(syscall.SIGSTOP)
	AwaitStopped(r.t, r.PID())
}

// Resume continues a paused process.
func (r *RealServer) Resume() { r.signal(syscall.SIGCONT) }

func (r *RealServer) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.proc.cmd.Process.Signal(sig); err != nil {
		r.t.Fatalf("redistest: %v to redis-server: %v", sig, err)
	}
}

// Kill ends the process at once, paused or not, and returns when it is gone.
func (r *RealServer) Kill() {
	if r.proc == nil || r.proc.cmd.Process == nil {
		return
	}
	_ = r.proc.cmd.Process.Kill() // fails only if it is gone already
	<-r.proc.exited
}

// Restart kills the process and starts another on the same port, without the
// data, the scripts and the connections of the first.
func (r *RealServer) Restart() {
	r.t.Helper()
	r.Kill()
	left, err := filepath.Glob(filepath.Join(r.dir, "*"))
	for _, f := range left {
		err = errors.Join(err, os.RemoveAll(f))
	}
	if err == nil {
		err = r.start()
	}
	if err != nil {
		r.t.Fatalf("redistest: restart: %v", err)
	}
}

// Revive starts a killed server again on the same port, with the files that it has.
func (r *RealServer) Revive() {
	r.t.Helper()
	if err := r.start(); err != nil {
		r.t.Fatalf("redistest: revive: %v", err)
	}
}

// CommandStats returns how often the server has executed each command, by its name
// in lower case. It counts those that scripts call; rejected ones are left out.
func (r *RealServer) CommandStats(ctx context.Context) map[string]int64 {
	r.t.Helper()
	info, err := r.do(ctx, "INFO commandstats")
	if err != nil {
		r.t.Fatalf("redistest: %v", err)
	}
	stats := map[string]int64{}
	for line := range strings.Lines(string(info)) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			r.t.Fatalf("redistest: statistics line %q: %v", line, err)
		}
		stats[name] = n
	}
	return stats
}
