package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/jvm"
)

// redissonVersion is which Redisson the tests are to meet; `make interop` sets it.
func redissonVersion() string { return os.Getenv("RELOCK_INTEROP") }

// A driver is a process with Redisson's clients, which does what it is told.
type driver struct {
	*jvm.JVM
	t testing.TB
}

// startJVM starts one, or skips the test where no Redisson is to be met.
func startJVM(t testing.TB) *driver {
	t.Helper()
	version := redissonVersion()
	if version == "" {
		t.Skip("no Redisson: run make interop")
	}
	j, err := jvm.Start(filepath.Join("out", version))
	if err != nil {
		t.Fatalf("%v; make interop needs Java 17 and Maven, and builds the driver", err)
	}
	t.Cleanup(j.Kill)
	return &driver{j, t}
}

// A reply is what a command comes to.
type reply struct {
	t    testing.TB
	what string
	said <-chan string
}

// tell begins a command of a thread of a client.
func (j *driver) tell(client string, thread int, op string, args ...any) reply {
	j.t.Helper()
	said, err := j.Tell(client, thread, op, args...)
	must(j.t, err)
	return reply{j.t, strings.TrimSuffix(fmt.Sprintln(append([]any{client, thread, op}, args...)...), "\n"), said}
}

// longest is how long any command may take.
const longest = 15 * time.Minute

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
	value, err := jvm.Value(r.result())
	if err != nil {
		r.t.Fatalf("%s: %v", r.what, err)
	}
	return value
}

// soon waits for success, which is to come no later than a message does.
func (r reply) soon(after string) {
	r.t.Helper()
	began := time.Now()
	select {
	case said := <-r.said:
		_, err := jvm.Value(said)
		must(r.t, err)
	case <-time.After(2 * watchdog):
		r.t.Fatalf("%s: not within %v after %s", r.what, 2*watchdog, after)
	}
	if took := time.Since(began); took > soon {
		r.t.Errorf("%s: %v after %s, want %v at most", r.what, took, after, soon)
	}
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
