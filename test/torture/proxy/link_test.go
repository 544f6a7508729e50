package proxy_test

import (
	"bufio"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock/test/torture/proxy"
)

// echo is a server that answers every line with itself, and counts them.
type echo struct {
	net.Listener
	lines atomic.Int64
	more  chan struct{} // has room for one: lines has grown
}

func serve(t *testing.T) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: l, more: make(chan struct{}, 1)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewScanner(c); in.Scan(); {
					e.count()
					if _, err := c.Write([]byte(in.Text() + "\n")); err != nil {
						return
					}
				}
			}()
		}
	}()
	return e
}

// link returns a link to e, and a function that dials over it.
func link(t *testing.T, e *echo) (*proxy.Link, func() net.Conn) {
	t.Helper()
	l, err := proxy.Listen(func(name string) string {
		if name != "there" {
			t.Errorf("the link was asked for %q", name)
		}
		return e.Addr().String()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	dial := proxy.Dialer(l.Addr(), "there")
	return l, func() net.Conn {
		c, err := dial(t.Context(), "tcp", "ignored")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
}

// say sends a line and returns the answer, or "" where the connection ends.
func say(c net.Conn, line string) string { return ask(c, line, 5*time.Second) }

// hush is say where there should be no answer.
func hush(c net.Conn, line string) string { return ask(c, line, 200*time.Millisecond) }

func ask(c net.Conn, line string, patience time.Duration) string {
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		return ""
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	answer, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(answer)
}

func (e *echo) count() {
	e.lines.Add(1)
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// soon waits until the server has seen so many lines.
func (e *echo) soon(t *testing.T, want int64) {
	t.Helper()
	for late := time.After(5 * time.Second); e.lines.Load() != want; {
		select {
		case <-e.more:
		case <-late:
			t.Fatalf("the server has seen %d lines, want %d", e.lines.Load(), want)
		}
	}
}

func TestLinkRelays(t *testing.T) {
	_, dial := link(t, serve(t))
	if got := say(dial(), "hello"); got != "hello" {
		t.Errorf("answer %q", got)
	}
}

func TestCutClosesAndRefusesUntilHealed(t *testing.T) {
	l, dial := link(t, serve(t))
	c := dial()
	say(c, "a")
	heal := l.Cut()
	if say(c, "b") != "" {
		t.Error("something passed a link that was cut")
	}
	if c, err := proxy.Dialer(l.Addr(), "there")(t.Context(), "tcp", "ignored"); err == nil { // else the dial met the end
		if say(c, "c") != "" {
			t.Error("something passed a new connection through a link that was cut")
		}
		c.Close()
	}
	heal()
	if got := say(dial(), "d"); got != "d" {
		t.Errorf("after heal: %q", got)
	}
}

func TestHoleKeepsConnectionsSilentForGood(t *testing.T) {
	e := serve(t)
	l, dial := link(t, e)
	c := dial()
	say(c, "a")
	l.Hole()()
	if got := hush(c, "b"); got != "" || e.lines.Load() != 1 {
		t.Errorf("answer %q, %d lines arrived", got, e.lines.Load())
	}
	if got := say(dial(), "c"); got != "c" {
		t.Errorf("a new connection: %q", got)
	}
}

func TestTrapCatchesItsScriptAlone(t *testing.T) {
	e := serve(t)
	l, dial := link(t, e)
	disarm := l.Arm(proxy.Trap{Fate: proxy.Swallow, SHA: "abc", Skip: 1, N: 1})
	for i, step := range []struct{ line, want string }{
		{"get abc", "get abc"},
		{"evalsha def", "evalsha def"},
		{"evalsha abc", "evalsha abc"}, // skipped
		{"evalsha abc", ""},
		{"evalsha abc", "evalsha abc"}, // one was to be caught
	} {
		tell := say
		if step.want == "" {
			tell = hush
		}
		if got := tell(dial(), step.line); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	e.soon(t, 5) // what was swallowed is the reply
	if n := disarm(); n != 1 {
		t.Errorf("%d caught", n)
	}
}

func TestLateRequestIsExecutedWhenItsClientHasGone(t *testing.T) {
	e := serve(t)
	l, dial := link(t, e)
	l.Arm(proxy.Trap{Fate: proxy.Late, N: 1, For: time.Second})
	c := dial()
	if got := hush(c, "evalsha abc"); got != "" || e.lines.Load() != 0 {
		t.Errorf("answer %q, %d lines arrived", got, e.lines.Load())
	}
	c.Close()
	e.soon(t, 1)
}

func TestDelayedRequestIsAnsweredLate(t *testing.T) {
	l, dial := link(t, serve(t))
	l.Arm(proxy.Trap{Fate: proxy.Delay, N: 1, For: 50 * time.Millisecond})
	begin := time.Now()
	if got := say(dial(), "evalsha abc"); got != "evalsha abc" || time.Since(begin) < 50*time.Millisecond {
		t.Errorf("%q after %v", got, time.Since(begin))
	}
}

func TestCutReplyClosesInsteadOfAnswering(t *testing.T) {
	e := serve(t)
	l, dial := link(t, e)
	l.Arm(proxy.Trap{Fate: proxy.CutReply, N: 1})
	c := dial()
	if got := say(c, "evalsha abc"); got != "" {
		t.Errorf("answer %q", got)
	}
	e.soon(t, 1)
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}
