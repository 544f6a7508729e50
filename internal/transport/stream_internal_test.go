package transport

import (
	"bufio"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/virtual"
)

// onPipe returns a stream on which nobody is alone, and the server's end of its connection.
func onPipe(t *testing.T) (*stream, net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	s := newStream(&streamSource{t: &Transport{}}, here, 0)
	s.load.Add(1)
	t.Cleanup(func() {
		_ = there.Close()
		s.close()
		s.running.Wait()
	})
	return s, there
}

// A sent is a call on a stream, and how it ended.
type sent struct {
	reply
	ended chan struct{}
}

// sends makes a call on a goroutine of its own.
func sends(ctx context.Context, s *stream) *sent {
	c := &sent{ended: make(chan struct{})}
	s.load.Add(1)
	go func() {
		defer close(c.ended)
		defer s.end()
		c.reply, _ = s.send(ctx, time.Time{}, rawCmd{verb: evalsha})
	}()
	synctest.Wait()
	return c
}

// wants waits for the end of the call, and demands this reply.
func (c *sent) wants(t *testing.T, n int64) {
	t.Helper()
	if <-c.ended; c.reply != (reply{val: n}) {
		t.Errorf("it ends with %v, want %d", c.reply, n)
	}
}

// hears takes the commands that have been sent.
func hears(t *testing.T, there net.Conn) {
	t.Helper()
	if _, err := there.Read(make([]byte, 4<<10)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// says sends text to the stream.
func says(t *testing.T, there net.Conn, text string) {
	t.Helper()
	if _, err := there.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// One command is on the wire, the next is being written, and a third is queued.
// Fails when a call never ends, when what may have run is called unsent, or when a goroutine stays.
func TestEveryCallOnAConnectionThatIsLostEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := onPipe(t)
		wired := sends(t.Context(), s)
		hears(t, there)
		written, queued := sends(t.Context(), s), sends(t.Context(), s)
		_ = there.Close()
		for what, c := range map[string]*sent{"on the wire": wired, "being written": written, "queued": queued} {
			<-c.ended
			if notSent := errors.Is(c.err, errNotSent); c.err == nil || notSent != (c == queued) {
				t.Errorf("%s: %v, %v", what, c.val, c.err)
			}
		}
		s.running.Wait()
		if late := sends(t.Context(), s); !errors.Is(late.err, errLost) || !errors.Is(late.err, errNotSent) {
			t.Errorf("one that comes later: %v, want that it was not sent", late.err)
		}
	})
}

// Half of a reply has come when its call ends.
// Fails when the next call gets the reply's other half, or loses its own.
func TestTheRestOfAReplyWhoseCallHasEndedIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := onPipe(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := sends(ctx, s)
		hears(t, there)
		second := sends(t.Context(), s)
		hears(t, there)
		says(t, there, "*2\r\n:1\r\n$5\r\nhal")
		cancel()
		<-first.ended
		if !errors.Is(first.err, context.Canceled) || errors.Is(first.err, errNotSent) {
			t.Errorf("the first: %v, want its context's end, and that it may have run", first.err)
		}
		says(t, there, "ve\r\n:7\r\n")
		second.wants(t, 7)
	})
}

// The reply comes between the end of the call's time and the moment at which its caller runs.
func TestAReplyThatComesAsTheTimeOfItsCallEndsIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := onPipe(t)
		f := &flight{taken: true, deadline: time.Now(), done: make(chan struct{}, 1)}
		s.flying = append(s.flying, f)
		s.alarmFired()
		if _, err := s.take(reply{val: int64(7)}); err != nil {
			t.Fatal(err)
		}
		if _, left := s.leave(f); left || f.reply != (reply{val: int64(7)}) {
			t.Errorf("it leaves with %v, without a reply: %t", f.reply, left)
		}
	})
}

// Fails when the next call gets a flight whose command may still be on the wire, and with it the reply of another.
func TestAFlightThatWasLeftIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := onPipe(t)
		ctx, cancel := context.WithCancel(t.Context())
		c := sends(ctx, s)
		hears(t, there)
		cancel()
		if <-c.ended; s.free.Get() != nil {
			t.Error("it is there for the next call")
		}
	})
}

// Fails when the next call gets a flight that is still told of its end, and returns without a reply.
func TestAFlightWhoseReplyComesAsItsTimeEndsIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := onPipe(t)
		c := sends(t.Context(), s)
		hears(t, there)
		s.mu.Lock()
		f := s.flying[0]
		f.expired = true
		wake(f.done)
		for len(f.done) > 0 { // the caller is told, and waits for the mutex
			runtime.Gosched()
		}
		f.finish(reply{val: int64(7)})
		s.flying, s.reading = nil, false
		s.mu.Unlock()
		if c.wants(t, 7); s.free.Get() != nil {
			t.Error("it is there for the next call")
		}
	})
}

// A hook sends a call again that ended without an answer, before or after it was sent.
func TestACallThatGotNoAnswerIsNotSentAgain(t *testing.T) {
	for what, taken := range map[string]bool{"sent": true, "not sent": false} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, there := onPipe(t)
				if !taken { // another call's command is stuck in the writer's hands
					defer func(c *sent) { _ = there.Close(); <-c.ended }(sends(t.Context(), s))
				}
				c := &sharedCall{stream: s, deadline: time.Now().Add(time.Second)}
				s.load.Add(1)
				go func() { _, _ = c.send(t.Context(), rawCmd{verb: evalsha}) }()
				synctest.Wait()
				if taken {
					hears(t, there)
				}
				virtual.Sleep(time.Second)
				synctest.Wait()
				first := c.failure
				if _, err := c.send(t.Context(), rawCmd{verb: evalsha}); !errors.Is(err, first) || !errors.Is(err, ErrNoReply) || errors.Is(err, errNotSent) == taken {
					t.Errorf("the hook is told %v; the call failed with %v", err, first)
				}
				if n := len(s.queue); n != 0 {
					t.Errorf("%d are queued", n)
				}
				s.end()
			})
		})
	}
}

// Fails when new calls begin on a connection to a server that accepts no writes, or when a reply that it owes is lost.
func TestAServerThatTakesNoWritesStillGivesTheRepliesThatItOwes(t *testing.T) {
	for what, grouped := range map[string]int{"alone": 0, "made together": 2} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, there := onPipe(t)
				s.load.Add(1)
				defer s.end()
				flights := make([]*flight, 3)
				for i := range flights {
					flights[i] = &flight{done: make(chan struct{}, 1)}
				}
				flights[0].group = grouped
				s.flying, s.reading = append(s.flying, flights...), true
				wake(s.toRead)
				w := bufio.NewWriter(there)
				_, _ = w.WriteString("-READONLY You can't write against a read only replica.\r\n")
				for range len(flights) - max(grouped, 1) {
					_, _ = w.WriteString(":7\r\n")
				}
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if !s.retired.Load() || s.source.stream.Load() != nil {
					t.Error("calls begin on it")
				}
				if last := flights[2]; !last.ended || last.reply != (reply{val: int64(7)}) || s.dead {
					t.Errorf("the last call has %v, want 7; the connection is lost: %t", last.reply, s.dead)
				}
			})
		})
	}
}

// A call has left because nothing comes, and the writer is stuck. Another has begun by then and sends its command now.
// Fails when it waits behind the writer for its whole time, instead of going by the client's pool.
func TestACallThatHasBegunIsNotQueuedOnAConnectionThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := onPipe(t)
		s.load.Add(1)
		defer s.end()
		ctx, cancel := context.WithCancel(t.Context())
		first := sends(ctx, s)
		cancel()
		<-first.ended
		r, _ := s.send(t.Context(), time.Now().Add(time.Minute), rawCmd{verb: evalsha})
		if !errors.Is(r.err, errNotSent) || !errors.Is(r.err, errLost) {
			t.Errorf("%v, want that it was not sent for want of a connection", r.err)
		}
	})
}

// The context of a call ends because another call failed with an answer of Redis, as in an errgroup.
// Fails when that answer is taken for the answer to this call, whose error then is not its context's.
func TestAnAnswerInTheCauseOfAContextIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := onPipe(t)
		stuck := sends(t.Context(), s)
		s.load.Add(1)
		ctx, cancel := context.WithCancelCause(t.Context())
		c := &sharedCall{stream: s, deadline: time.Now().Add(time.Minute)}
		go func() {
			synctest.Wait()
			cancel(answerError("LOADING Redis is loading the dataset in memory"))
		}()
		_, err := c.send(ctx, rawCmd{verb: evalsha})
		if why := c.callerError(ctx); c.failure == nil || !errors.Is(why, context.Canceled) || !errors.Is(why, errNotSent) {
			t.Errorf("it ends with %v, and its caller is told %v; want its context's end", err, why)
		}
		s.end()
		_ = there.Close()
		<-stuck.ended
	})
}

// deaf is a connection that takes no deadlines.
type deaf struct{ net.Conn }

func (deaf) SetDeadline(time.Time) error { return errors.ErrUnsupported }

func TestConnectionsWithoutDeadlinesAreNotShared(t *testing.T) {
	here, there := net.Pipe()
	defer func() { _ = there.Close() }()
	o := &streamSource{}
	p := &opening{source: o, taken: true, cancelDial: func() {}, over: make(chan struct{})}
	p.conn = &holdable{Conn: deaf{here}, p: p}
	o.opened(p)
	if o.stream.Load() != nil || !o.closed {
		t.Errorf("it is shared: %t; another will be dialled: %t", o.stream.Load() != nil, !o.closed)
	}
	if _, err := here.Write([]byte("x")); err == nil {
		t.Error("it stays open")
	}
}

// The server does not know the script for groups, and the next call is alone.
// Fails when the text is not sent with the group after that one.
func TestALoneCallDoesNotSpendTheTextOfTheGroupsScript(t *testing.T) {
	g := grouping{cold: true}
	usual := func() *flight { return &flight{cmd: rawCmd{usual: &Usual{First: true}}} }
	g.arrange(nil, []*flight{usual()})
	if g.arrange(nil, []*flight{usual(), usual()}); !g.sendText {
		t.Error("the next group is sent by the script's SHA")
	}
}

// Fails when a caller that is alone outlives its context or its time, when the next one gets its reply, or when the
// connection stays interrupted.
func TestACallerThatIsAloneLeavesItsReplyToTheReader(t *testing.T) {
	for what, late := range map[string]bool{"its context ends": false, "its time is over": true} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, there := onPipe(t)
				s.end()
				s.load.Add(1)
				defer s.end()
				ctx, until := t.Context(), time.Now().Add(time.Second)
				if !late {
					ctx, until = t.Context(), time.Time{}
					c, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					ctx = c
				}
				go func() { _, _ = there.Read(make([]byte, 4<<10)) }()
				began := time.Now()
				r, _ := s.send(ctx, until, rawCmd{verb: evalsha})
				if took := time.Since(began); took != time.Second || r.err == nil || errors.Is(r.err, errNotSent) {
					t.Errorf("it ends with %v after %v, want an error that it may have run after 1s", r.err, took)
				}
				synctest.Wait()
				says(t, there, ":6\r\n")
				s.mu.Lock()
				s.dead = false // which it is after a silence
				alone, reading, interrupted := s.alone, s.reading, s.interrupted
				s.mu.Unlock()
				if alone != nil || reading || interrupted {
					t.Errorf("alone %v, reading %t, interrupted %t", alone, reading, interrupted)
				}
				go func() {
					_, _ = there.Read(make([]byte, 4<<10))
					_, _ = there.Write([]byte(":7\r\n"))
				}()
				if r, _ := s.send(t.Context(), time.Time{}, rawCmd{verb: evalsha}); r != (reply{val: int64(7)}) {
					t.Errorf("the next: %v, want 7", r)
				}
			})
		})
	}
}

// A second call comes while a caller that was alone still writes.
// Fails when its command passes the first one, so that each gets the other's reply, or is never written or answered.
func TestWhoComesWhileOneIsAloneIsWrittenAndAnsweredAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := onPipe(t)
		s.end()
		first := sends(t.Context(), s)
		second := &sent{ended: make(chan struct{})}
		s.load.Add(1)
		go func() {
			defer close(second.ended)
			defer s.end()
			second.reply, _ = s.send(t.Context(), time.Time{}, rawCmd{args: []any{"second"}})
		}()
		synctest.Wait()
		got := make([]byte, 4<<10)
		for _, want := range []string{evalsha, "second"} {
			n, err := there.Read(got)
			if err != nil || !strings.Contains(string(got[:n]), want) {
				t.Fatalf("%q, %v, want %s", got[:n], err, want)
			}
			synctest.Wait()
		}
		says(t, there, ":1\r\n:2\r\n")
		first.wants(t, 1)
		second.wants(t, 2)
	})
}

// The context of a caller that is alone ends in the moment in which its reply comes.
// Fails when the next call is interrupted in its place.
func TestAnInterruptionThatComesTooLateInterruptsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := onPipe(t)
		f := &flight{taken: true, done: make(chan struct{}, 1)}
		s.mu.Lock()
		s.flying, s.alone, s.reading = append(s.flying, f), f, true
		s.interrupt(f)
		s.mu.Unlock()
		if _, err := s.take(reply{val: int64(7)}); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.interrupt(f)
		s.mu.Unlock()
		next := sends(t.Context(), s)
		hears(t, there)
		says(t, there, ":8\r\n")
		next.wants(t, 8)
	})
}

// The context of a caller that is alone ends as its call does. Its end may come so late that another call has begun.
// Fails when that call gets the same flight, and is interrupted.
func TestAFlightThatMayStillBeInterruptedIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := onPipe(t)
		s.end()
		ctx, cancel := context.WithCancel(t.Context())
		c := sends(ctx, s)
		hears(t, there)
		s.mu.Lock() // the interruption waits, and the reply comes first
		cancel()
		f := s.alone
		f.finish(reply{val: int64(7)})
		s.flying, s.alone, s.reading = nil, nil, false
		_ = s.conn.SetReadDeadline(past)
		s.mu.Unlock()
		if <-c.ended; s.free.Get() != nil {
			t.Error("it is there for the next call")
		}
	})
}

// A group has done nothing for a call, whose context ends in that moment. Fails when the command is sent once more.
func TestACallOfAGroupIsNotSentAloneAfterItsContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := onPipe(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			c := &sharedCall{stream: s, deadline: time.Now().Add(time.Minute)}
			_, err := c.send(ctx, rawCmd{verb: evalsha})
			ended <- err // a caller that is alone would have begun to write, and could not say so
		}()
		synctest.Wait()
		hears(t, there)
		s.mu.Lock()
		f := s.flying[0]
		f.again = true
		cancel()
		f.finish(reply{})
		s.flying, s.alone, s.reading = nil, nil, false
		_ = s.conn.SetReadDeadline(past)
		s.mu.Unlock()
		if err := <-ended; !errors.Is(err, errNotSent) || !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v, want its context's end, and that it was not sent", err)
		}
	})
}

// A caller that is alone is stuck in its write, and another call is queued, when the first one's context ends.
// Fails when the queued call waits for a writer that never comes, or when it is said to have been sent.
func TestWhoComesWhileOneIsStuckGoesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := onPipe(t)
		s.end()
		ctx, cancel := context.WithCancel(t.Context())
		first, second := sends(ctx, s), sends(t.Context(), s)
		cancel()
		<-first.ended
		<-second.ended
		if !errors.Is(first.err, context.Canceled) || errors.Is(first.err, errNotSent) {
			t.Errorf("the first: %v, want its context's end, and that it may have run", first.err)
		}
		if !errors.Is(second.err, errLost) || !errors.Is(second.err, errNotSent) {
			t.Errorf("the second: %v, want that it was not sent for want of a connection", second.err)
		}
	})
}

// A broken connection takes no command, and its reads do not end.
type broken struct{ net.Conn }

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// Fails when a call waits until its time is over for a command that could not be written.
func TestACallWhoseCommandCannotBeWrittenEndsAtOnce(t *testing.T) {
	for what, more := range map[string]int{"alone": 0, "beside another": 1} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				defer there.Close()
				s := newStream(&streamSource{t: &Transport{}}, broken{here}, 0)
				for range more {
					s.load.Add(1)
					defer s.end()
				}
				c := sends(t.Context(), s)
				select {
				case <-c.ended:
				default:
					t.Fatal("it waits")
				}
				if !errors.Is(c.err, errBroken) || s.source.stream.Load() != nil {
					t.Errorf("%v, want that the connection is broken; calls begin on it: %t", c.err, s.source.stream.Load() != nil)
				}
			})
		})
	}
}

// The race detector sees if close can wait for goroutines that have not been counted yet.
func TestAStreamMayBeClosedAsSoonAsItIsFound(t *testing.T) {
	for range 200 {
		here, there := net.Pipe()
		o := &streamSource{t: &Transport{}}
		o.t.idle.L = &o.t.mu
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			for o.stream.Load() == nil {
				runtime.Gosched()
			}
			o.close()
		}()
		newStream(o, here, 0)
		<-closed
		o.t.mu.Lock()
		for o.t.working > 0 {
			o.t.idle.Wait()
		}
		o.t.mu.Unlock()
		_ = there.Close()
	}
}
