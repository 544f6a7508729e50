package interop_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/spawn"
)

// redissonVersion is which Redisson the tests are to meet; `make interop` sets it.
func redissonVersion() string { return os.Getenv("RELOCK_INTEROP") }

// A jvm is a process with Redisson's clients, which does what it is told.
type jvm struct {
	t      testing.TB
	cmd    *exec.Cmd
	exited <-chan struct{}

	mu    sync.Mutex
	in    io.Writer
	last  int
	calls map[string]chan string
}

// startJVM starts one, or skips the test where no Redisson is to be met.
func startJVM(t testing.TB) *jvm {
	t.Helper()
	version := redissonVersion()
	if version == "" {
		t.Skip("no Redisson: run make interop")
	}
	dir, err := filepath.Abs(filepath.Join("out", version))
	must(t, err)
	j := &jvm{t: t, calls: make(map[string]chan string)}
	j.cmd = exec.Command("java", "-Xmx256m", "-cp", filepath.Join(dir, "classes")+":"+filepath.Join(dir, "lib", "*"), "interop.Driver")
	j.cmd.Stderr = os.Stderr
	j.in, err = j.cmd.StdinPipe()
	must(t, err)
	out, err := j.cmd.StdoutPipe()
	must(t, err)
	if j.exited, err = spawn.Start(j.cmd); err != nil {
		t.Fatalf("java does not start: %v; make interop needs Java 17 and Maven", err)
	}
	t.Cleanup(j.kill)
	ready := make(chan struct{})
	go j.read(bufio.NewScanner(out), ready)
	select {
	case <-ready:
	case <-j.exited:
		t.Fatal("java has ended: run make interop, which builds the driver")
	case <-time.After(time.Minute):
		t.Fatal("java has not begun within a minute")
	}
	return j
}

// kill ends the process as nobody can survive it.
func (j *jvm) kill() {
	_ = j.cmd.Process.Kill()
	<-j.exited
}

func (j *jvm) read(out *bufio.Scanner, ready chan struct{}) {
	for out.Scan() {
		id, said, _ := strings.Cut(out.Text(), " ")
		if id == "ready" {
			close(ready)
			continue
		}
		j.mu.Lock()
		if done := j.calls[id]; done != nil {
			done <- said
			delete(j.calls, id)
		}
		j.mu.Unlock()
	}
}

// A reply is what a command comes to.
type reply struct {
	t    testing.TB
	what string
	said chan string
}

// tell begins a command of a thread of a client.
func (j *jvm) tell(client string, thread int, op string, args ...any) reply {
	j.t.Helper()
	words := []string{"", client, strconv.Itoa(thread), op}
	for _, a := range args {
		words = append(words, fmt.Sprint(a))
	}
	said := make(chan string, 1)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	words[0] = strconv.Itoa(j.last)
	j.calls[words[0]] = said
	_, err := fmt.Fprintln(j.in, strings.Join(words, " "))
	must(j.t, err)
	return reply{j.t, strings.Join(words[1:], " "), said}
}

// longest is how long any command may take.
const longest = 4 * time.Minute

// result waits for what Java says: "ok VALUE" or "error WHAT".
func (r reply) result() string {
	r.t.Helper()
	select {
	case said := <-r.said:
		return said
	case <-time.After(longest):
		r.t.Fatalf("java has not answered to %q within %v", r.what, longest)
	}
	return ""
}

// ok waits for success, and returns the value.
func (r reply) ok() string {
	r.t.Helper()
	value, ok := strings.CutPrefix(r.result()+" ", "ok ")
	if !ok {
		r.t.Fatalf("java: %s: %s", r.what, value)
	}
	return strings.TrimSpace(value)
}

// pending fails unless the command goes on for as long as d.
func (r reply) pending(d time.Duration) {
	r.t.Helper()
	select {
	case said := <-r.said:
		r.t.Fatalf("java: %s: %s, want it to wait", r.what, said)
	case <-time.After(d):
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
