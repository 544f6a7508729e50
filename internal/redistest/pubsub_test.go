package redistest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/redistest"
)

// raw is a connection over a link that speaks the protocol by hand.
type raw struct {
	net.Conn
	lines *bufio.Reader
}

func dialRaw(t *testing.T, link *redistest.Link) raw {
	t.Helper()
	conn, err := link.Dial(t.Context(), "tcp", "192.0.2.1:6379")
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return raw{conn, bufio.NewReader(conn)}
}

func encode(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func (r raw) send(t *testing.T, args ...string) {
	t.Helper()
	r.write(t, encode(args...))
}

func (r raw) write(t *testing.T, requests string) {
	t.Helper()
	if _, err := r.Write([]byte(requests)); err != nil {
		t.Fatalf("send %q: %v", requests, err)
	}
}

// expect reads as many lines as it is given.
func (r raw) expect(t *testing.T, lines ...string) {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(10 * time.Second))
	for _, want := range lines {
		got, err := r.lines.ReadString('\n')
		if err != nil || strings.TrimSuffix(got, "\r\n") != want {
			t.Fatalf("line %q, %v, want %q", got, err, want)
		}
	}
}

// expectEnd reads until the connection ends in the way that want says.
func (r raw) expectEnd(t *testing.T, want string) {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	line, err := r.lines.ReadString('\n')
	if got := outcomeOf(err); got != want {
		t.Errorf("connection %s with %q, want %s", got, line, want)
	}
}

func message(kind, channel, payload string) []string {
	return []string{kind + "3", "$7", "message", fmt.Sprintf("$%d", len(channel)), channel, fmt.Sprintf("$%d", len(payload)), payload}
}

func ack(kind, command, channel string, left int) []string {
	return []string{
		kind + "3", fmt.Sprintf("$%d", len(command)), command,
		fmt.Sprintf("$%d", len(channel)), channel, fmt.Sprintf(":%d", left),
	}
}

func TestMessagesAreNotTakenForReplies(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		s.link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("subscribe") && cmd.Args[1] == "swallowed" {
				return redistest.SwallowReply
			}
			return redistest.Pass
		})
		conn := dialRaw(t, s.link)
		conn.send(t, "subscribe", "a", "b")
		conn.expect(t, ack("*", "subscribe", "a", 1)...)
		conn.expect(t, ack("*", "subscribe", "b", 2)...)
		s.direct.Publish(t.Context(), "a", "1")
		conn.expect(t, message("*", "a", "1")...)
		conn.send(t, "ping")
		conn.expect(t, "*2", "$4", "pong", "$0", "")
		s.direct.Publish(t.Context(), "b", "2")
		conn.expect(t, message("*", "b", "2")...)
		conn.send(t, "subscribe", "swallowed")
		conn.expectEnd(t, timeout)
		if n := s.direct.Publish(t.Context(), "swallowed", "3").Val(); n != 1 {
			t.Errorf("PUBLISH reached %d, want 1: the swallowed SUBSCRIBE has executed", n)
		}
		conn.expectEnd(t, timeout)
	})
}

// skip reads n values of the form of an acknowledgement in RESP2.
func (r raw) skip(t *testing.T, n int) {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(10 * time.Second))
	for range n {
		r.expect(t, "*3")
		lines := 5
		for i := 0; i < lines; i++ {
			line, err := r.lines.ReadString('\n')
			if err != nil {
				t.Fatalf("acknowledgement: %v", err)
			}
			if line == "$-1\r\n" { // no channel
				lines--
			}
		}
	}
}

// TestSubscriptionIsAnsweredOnceAChannel judges the last of commands that have the
// same name and go out in one write: only their numbers of answers tell them apart.
func TestSubscriptionIsAnsweredOnceAChannel(t *testing.T) {
	for _, tt := range []struct {
		name string
		sent [][]string
		acks int // ahead of the last command's
	}{
		{"subscribe", [][]string{{"subscribe", "a", "b"}, {"subscribe", "last"}}, 2},
		{"unsubscribe some", [][]string{{"subscribe", "a", "b", "c"}, {"unsubscribe", "a", "b"}, {"unsubscribe", "last"}}, 5},
		{"unsubscribe all", [][]string{{"subscribe", "a", "b", "c"}, {"unsubscribe"}, {"unsubscribe", "last"}}, 6},
		{"unsubscribe the rest", [][]string{{"subscribe", "a", "b"}, {"unsubscribe", "a"}, {"unsubscribe"}, {"unsubscribe", "last"}}, 4},
		{"unsubscribe none", [][]string{{"unsubscribe"}, {"unsubscribe", "last"}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s site) {
				s.link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					if cmd.N == len(tt.sent) {
						return redistest.CutReply
					}
					return redistest.Pass
				})
				conn := dialRaw(t, s.link)
				var requests strings.Builder
				for _, args := range tt.sent {
					requests.WriteString(encode(args...))
				}
				conn.write(t, requests.String())
				conn.skip(t, tt.acks)
				conn.expectEnd(t, closed)
			})
		})
	}
}

// TestMessageAheadOfAReplyDoesNotTakeItsVerdict scripts the server, for no server
// can be made to publish between a command and its reply.
func TestMessageAheadOfAReplyDoesNotTakeItsVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		link := redistest.NewLink(t, func(context.Context, string, string) (net.Conn, error) { return near, nil })
		server := raw{far, bufio.NewReader(far)}
		conn := dialRaw(t, link)
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("ping") {
				return redistest.CutReply
			}
			return redistest.Pass
		})
		conn.send(t, "subscribe", "a")
		server.expect(t, "*2", "$9", "subscribe", "$1", "a")
		server.write(t, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
		conn.expect(t, ack("*", "subscribe", "a", 1)...)
		conn.send(t, "ping")
		server.expect(t, "*1", "$4", "ping")
		server.write(t, encode("message", "a", "1"))
		conn.expect(t, message("*", "a", "1")...)
		server.write(t, encode("pong", ""))
		conn.expectEnd(t, closed)
	})
}

// TestPushesInterleaveWithReplies needs a server that runs commands on a
// connection that has subscribed, which RESP3 allows.
func TestPushesInterleaveWithReplies(t *testing.T) {
	r := redistest.Real(t)
	s := site{redistest.NewLink(t, r.Dial), r.Client(t)}
	s.on("swallowed", redistest.SwallowReply)
	conn := dialRaw(t, s.link)
	conn.send(t, "hello", "3")
	conn.expect(t, "%7")
	conn.send(t, "echo", "end of hello") // which lists modules, that some servers have
	for {
		line, err := conn.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "end of hello\r\n" {
			break
		}
	}
	conn.send(t, "subscribe", "a")
	conn.expect(t, ack(">", "subscribe", "a", 1)...)
	conn.send(t, "rpush", "list", "message", "x", "y")
	conn.expect(t, ":3")
	conn.send(t, "lrange", "list", "0", "-1")
	conn.expect(t, message("*", "x", "y")...) // looks like one, and is a reply
	// A push comes ahead of the reply to the command that caused it, in Valkey behind.
	conn.send(t, "publish", "a", "1")
	if next, err := conn.lines.Peek(1); err == nil && next[0] == ':' {
		conn.expect(t, ":1")
		conn.expect(t, message(">", "a", "1")...)
	} else {
		conn.expect(t, message(">", "a", "1")...)
		conn.expect(t, ":1")
	}
	conn.send(t, "incr", "swallowed")
	conn.expectEnd(t, timeout)
	s.has(t, "swallowed", 1)
}

func TestVerdictOnACommandBehindMessages(t *testing.T) {
	r := redistest.Real(t)
	s := site{redistest.NewLink(t, r.Dial), r.Client(t)}
	free := make(chan struct{})
	s.link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		switch {
		case cmd.Is("ping"):
			return redistest.Hold(free)
		case cmd.Is("unsubscribe"):
			return redistest.CutReply
		}
		return redistest.Pass
	})
	conn := dialRaw(t, s.link)
	conn.send(t, "subscribe", "a")
	conn.expect(t, ack("*", "subscribe", "a", 1)...)
	conn.send(t, "ping")
	conn.send(t, "unsubscribe", "a")
	s.direct.Publish(t.Context(), "a", "1")
	conn.expect(t, message("*", "a", "1")...)
	close(free)
	conn.expect(t, "*2", "$4", "pong", "$0", "")
	conn.expectEnd(t, closed)
}
