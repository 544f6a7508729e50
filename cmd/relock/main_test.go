//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/relock-go/relock"
)

// beRelock in the environment makes the test binary relock itself: the
// processes that tests and the demo start are real ones.
const beRelock = "RELOCK_TEST_MAIN=1"

// noNap keeps the race detector from sleeping a second before each exit.
const noNap = "GORACE=atexit_sleep_ms=0"

// run is relock without its process: it returns the exit status.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := &tool{env: env, in: stdin, out: stdout, err: stderr}
	return t.main(ctx, args)
}

func TestMain(m *testing.M) {
	if slices.Contains(os.Environ(), beRelock) {
		main()
	}
	// Under nohup, or behind a script's &, this process ignores these, and so would all
	// that it starts: what is caught here has its default there.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	goleak.VerifyTestMain(m)
}

// A world is a Redis and a client that looks at what relock does there.
type world struct {
	*testing.T
	url   string
	locks *relock.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w, _ := newWorldOf(t)
	return w
}

// newWorldOf is newWorld with its Redis, for what is to befall that.
func newWorldOf(t *testing.T) (*world, *miniredis.Miniredis) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { rdb.Close() })
	locks, err := relock.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	return &world{t, "redis://" + m.Addr(), locks}, m
}

func (w *world) env(more ...string) []string {
	return append(append(os.Environ(), "REDIS_URL="+w.url, noNap), more...)
}

// relock runs relock in this process.
func (w *world) relock(args ...string) (status int, out, complaint string) {
	w.Helper()
	return w.relockEnv(nil, args...)
}

func (w *world) relockEnv(env []string, args ...string) (status int, out, complaint string) {
	w.Helper()
	var stdout, stderr bytes.Buffer
	status = run(w.Context(), args, w.env(env...), strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

func (w *world) info(name string) relock.Info {
	w.Helper()
	info, err := w.locks.NewLock(name).Info(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return info
}

func (w *world) wantFree(name string) {
	w.Helper()
	if info := w.info(name); len(info.Holders) > 0 || info.Waiters > 0 {
		w.Errorf("%s after the run: %+v, want it free", name, info)
	}
}

func (w *world) hold(name string) *relock.Hold {
	w.Helper()
	h, err := w.locks.NewLock(name).Acquire(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return h
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The package comment is what a reader of the documentation sees of the verbs.
func TestEachCommandHasHelpAndUsage(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(source), "package main")
	comment = strings.Join(strings.Fields(strings.ReplaceAll(comment, "//", "")), " ")
	for line := range strings.Lines(usage()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "relock ") && !strings.Contains(string(source), "\n//\t"+line+"\n") {
			t.Errorf("the package comment does not show %q", line)
		}
	}
	for _, e := range exits {
		if !strings.Contains(comment, e.status+" "+e.says) {
			t.Errorf("the package comment does not explain the status %s: %s", e.status, e.says)
		}
	}
	for _, v := range verbs() {
		var out bytes.Buffer
		if got := run(context.Background(), []string{v.name, "-h"}, nil, nil, &out, io.Discard); got != 0 || !strings.HasPrefix(out.String(), "relock "+v.line()+": ") {
			t.Errorf("%s -h: status %d, %q", v.name, got, out.String())
		}
		fs, _ := v.flags(&tool{})
		for _, f := range fs.rows() {
			if f.text == "" || takesValue(fs, f.name) != (f.value != "") {
				t.Errorf("%s: nothing explains -%s, or what it takes: %+v", v.name, f.name, f)
			}
		}
	}
	for _, code := range []string{"64", "69", "75", "76", "126", "127", "128+n"} {
		if !strings.Contains(runAfter, code) {
			t.Errorf("exit status %s is not explained", code)
		}
	}
}

// wrongArguments are of commands that start nothing.
var wrongArguments = [][]string{
	{},
	{"dance"},
	{"run"},
	{"run", "x"},
	{"run", "x", "--"},
	{"-redis"},
	{"-what", "info", "x"},
	{"run", "x", "-wait", "nan", "true"},
	{"run", "x", "-wait", "1e99", "true"},
	{"doctor", "x"},
	{"hold", "x", "true"},
	{"ls", "x", "y"},
	{"top", "-every", "often"},
	{"hold"},
	{"hold", "x", "-read", "-write"},
	{"wait", "x", "-wait", "-1"},
	{"version", "x"},
	{"help", "x"},
	{"man", "x"},
	{"completion"},
	{"completion", "tcsh"},
	{"complete", "bash"},
	{"run", "--", "true"},
	{"run", "-wait", "soon", "x", "--", "true"},
	{"run", "-wait", "-1s", "x", "--", "true"},
	{"run", "-grace", "-1s", "x", "--", "true"},
	{"run", "-read", "-write", "x", "--", "true"},
	{"run", "-n", "0", "x", "--", "true"},
	{"run", "-n", "many", "x", "--", "true"},
	{"run", "-n", "3", "-read", "x", "--", "true"},
	{"run", "-what", "x", "--", "true"},
	{"run", "-ttl", "1us", "x", "--", "true"},
	{"run", "a\nb", "--", "true"},
	{"run", "-prefix", "{", "x", "--", "true"},
	{"run", "-redis", "http://x", "x", "--", "true"},
	{"run", "-owner", "\xff", "x", "--", "true"},
	{"info"},
	{"info", "x", "y"},
	{"waiters"},
	{"unlock", "x"},
	{"demo", "x"},
	{"serve", "x"},
	{"serve", "-listen", "nowhere"},
	{"serve", "-listen", "0.0.0.0:0", "-allow-force"},
	{"serve", "-listen", "127.0.0.1:0", "-match", "["},
}

func TestWrongArgumentsExit64(t *testing.T) {
	for _, args := range wrongArguments {
		status, out, complaint := newWorld(t).relock(args...)
		if status != exitUsage || out != "" || !strings.HasPrefix(complaint, "relock: ") {
			t.Errorf("relock %q: status %d, output %q, complaint %q", args, status, out, complaint)
		}
	}
}

func TestUnreachableRedisExits69(t *testing.T) {
	w := newWorld(t)
	w.url = "redis://127.0.0.1:1"
	for _, args := range [][]string{
		{"run", "-wait", "0", "x", "--", "echo", "started"}, {"run", "-every", "1h", "x", "--", "echo", "started"}, {"info", "x"}, {"demo", "-redis", w.url}, {"doctor"},
	} {
		if status, out, complaint := w.relock(args...); status != exitUnavailable || out != "" || complaint == "" {
			t.Errorf("relock %q: status %d, output %q, complaint %q", args, status, out, complaint)
		}
	}
}

// A Redis that takes connections and never answers: -wait bounds the first question too,
// which had 5 s.
func TestSilentRedisExits69WithinTheWait(t *testing.T) {
	w := newWorld(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, wait := range []string{"0", "500ms"} {
		for _, verb := range [][]string{{"run", "x", "echo", "ran"}, {"wait", "x"}} {
			began := time.Now()
			status, _, complaint := w.relock(slices.Insert(verb, 1, "-redis", "redis://"+silent.Addr().String(), "-wait", wait)...)
			if took := time.Since(began); status != exitUnavailable || took > 4*time.Second {
				t.Errorf("%s -wait %s: status %d after %v, want %d within the wait; complaint %q", verb[0], wait, status, took, exitUnavailable, complaint)
			}
		}
	}
}

func TestPasswordIsNotInAComplaint(t *testing.T) {
	w := newWorld(t)
	for _, w.url = range []string{"redis://:hunter2@127.0.0.1:1", "redis://:hunter2@127.0.0.1:bad", "redis://u:hunter2@[::1", "http://:hunter2@x"} {
		status, out, complaint := w.relock("info", "x")
		if status == 0 || strings.Contains(out+complaint, "hunter2") {
			t.Errorf("%s: status %d, complaint %q", w.url, status, complaint)
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	w := newWorld(t)
	if status, out, _ := w.relock("version"); status != 0 || !strings.HasPrefix(out, "relock ") {
		t.Errorf("version: status %d, %q", status, out)
	}
	if status, out, _ := w.relock("help"); status != 0 || out != usage() {
		t.Errorf("help: status %d, %q", status, out)
	}
}
