package layout_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/spawn"
)

// python is a command of relock.py. Without Python 3 and the redis-py of requirements.txt the test fails where all
// tests must run, and is skipped elsewhere.
func python(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	packages := filepath.Join(rig.Root(t), "out", "python")
	wanted, err := os.ReadFile("requirements.txt")
	rig.Must(t, err)
	there, _ := os.ReadFile(filepath.Join(packages, "requirements.txt"))
	path, err := exec.LookPath("python3")
	switch missing := err != nil || !bytes.Equal(there, wanted); {
	case missing && os.Getenv("RELOCK_TEST_REQUIRE") == "1":
		t.Fatal("python3 or redis-py is not installed, and RELOCK_TEST_REQUIRE=1 demands them: run `make deps`, which installs them")
	case missing:
		t.Skip("left out: this test needs python3 and redis-py; `make deps` installs them")
	}
	cmd := exec.Command(path, append([]string{"relock.py"}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages)
	return cmd
}

// Fails when a client in another language reads a vector in another way than the server.
func TestPythonPassesEveryVector(t *testing.T) {
	out, err := python(t, redistest.Real(t).Addr(), "vectors").CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), " vectors passed, 0 failed\n") || strings.HasPrefix(string(out), "0 ") {
		t.Errorf("relock.py: %v\n%s", err, out)
	}
}

// A reader is relock.py, which locks on order.
type reader struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newReader(t *testing.T, addr string) *reader {
	t.Helper()
	cmd := python(t, addr, "lock", "l")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	rig.Must(t, err)
	out, err := cmd.StdoutPipe()
	rig.Must(t, err)
	gone, err := spawn.Start(cmd)
	rig.Must(t, err)
	t.Cleanup(func() {
		_ = in.Close()
		<-gone
		if complaint.Len() > 0 {
			t.Errorf("relock.py: %s", complaint.String())
		}
	})
	return &reader{t, in, bufio.NewReader(out)}
}

func (r *reader) tell(order string) {
	r.t.Helper()
	_, err := fmt.Fprintln(r.in, order)
	rig.Must(r.t, err)
}

func (r *reader) hear() []string {
	r.t.Helper()
	line, err := r.out.ReadString('\n')
	rig.Must(r.t, err)
	return strings.Fields(line)
}

// hears fails unless the next line is what is wanted, before a token or the like; it returns that.
func (r *reader) hears(want string) int64 {
	r.t.Helper()
	words := r.hear()
	var n int64
	for i, word := range words {
		if number, err := strconv.ParseInt(word, 10, 64); err == nil {
			n, words[i] = number, "N"
		}
	}
	if got := strings.Join(words, " "); got != want {
		r.t.Fatalf("relock.py says %q, want %q", got, want)
	}
	return n
}

func (r *reader) does(order, want string) int64 { r.t.Helper(); r.tell(order); return r.hears(want) }

// A client in Python and one in Go take, renew, wait for and release one plain lock in turn.
// Fails when both hold it, one of them is not woken, or a token does not grow.
func TestPythonAndGoHoldAPlainLockInTurn(t *testing.T) {
	srv := redistest.Real(t)
	c := rig.Open(t, srv.Client(t))
	mine, py := c.NewLock("l"), newReader(t, srv.Addr())
	last := int64(0)
	grows := func(token int64) {
		t.Helper()
		if token <= last {
			t.Errorf("token %d after %d", token, last)
		}
		last = token
	}
	for range 5 {
		// It is free: Python takes it, renews it, and Go waits for it.
		grows(py.does("take", "held N free"))
		if left := py.does("renew", "left N"); left < 1 || left > 30_000 {
			t.Errorf("%d ms are left of a lease of 30 s", left)
		}
		if got, err := mine.TryLock(t.Context(), 0); got || err != nil {
			t.Fatalf("TryLock = %v, %v beside Python", got, err)
		}
		waits := rig.Beside(func() error { return mine.Lock(t.Context()) })
		rig.Soon(t, func() string { return other(rig.Describe(t, mine), " x1 waiting 1") })
		py.does("release", "released")
		rig.Must(t, <-waits)
		grows(mine.Token() / 1000)

		// Go holds: Python does not get it at once, waits for it, and is woken.
		py.does("try", "busy")
		py.does("take", "waits")
		rig.Must(t, mine.Unlock())
		grows(py.hears("held N woken"))
		if n := mine.HoldCount(); n != 0 {
			t.Errorf("Go has %d holds", n)
		}
		py.does("release", "released")
		py.does("release", "lost")
	}
	rig.WantState(t, mine, "at the end", "free waiting 0")
	rig.WantBare(t, srv.Client(t), "l")
	removed(t, c, py)
}

// removed: Python's hold is removed by an operator, and it finds out.
func removed(t *testing.T, c *relock.Client, py *reader) {
	t.Helper()
	py.does("take", "held N free")
	got, err := c.NewLock("l").ForceUnlock(t.Context())
	if !got || err != nil {
		t.Fatalf("ForceUnlock = %v, %v", got, err)
	}
	py.does("renew", "left N")
	if ok, err := c.NewLock("l").TryLock(t.Context(), time.Second); !ok || err != nil {
		t.Errorf("TryLock = %v, %v", ok, err)
	}
}

// other says how a text ends in another way.
func other(text, end string) string {
	if strings.HasSuffix(text, end) {
		return ""
	}
	return text + ", want " + end
}
