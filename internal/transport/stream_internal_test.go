package transport

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/script"
)

func aFlight(s *stream) *flight { return &flight{s: s, wake: make(chan struct{}, 1)} }

// Of eight callers the first lets the others come, and the fourth writes for all four.
// Fails when the server has to wait for all of them.
func TestHalfOfACrowdIsNotKeptWaiting(t *testing.T) {
	s := &stream{}
	s.load.Store(8)
	s.pace.yield.Store(true)
	s.pace.half = 4
	var crowd [8]*flight
	come := func(i int, want todo) {
		t.Helper()
		crowd[i] = aFlight(s)
		if do, err := s.enter(crowd[i], &bare{}); do != want || err != nil {
			t.Fatalf("call %d is to do %d, %v; want %d", i, do, err, want)
		}
	}
	come(0, gathers)
	come(1, waits)
	come(2, waits)
	come(3, writes)
	if n := len(s.batch); n != 4 || len(s.queue) != 0 {
		t.Errorf("%d calls are written, %d are left; want 4 and none", n, len(s.queue))
	}
	come(4, waits)
	if do := s.gather(crowd[0]); do == writes || do == gathers || len(s.batch) != 4 {
		t.Errorf("who has let others come is to do %d, and %d calls are written; want nothing and 4", do, len(s.batch))
	}
}

// Fails when who has been cut short while it lets others come writes, or leaves nobody to write.
func TestWhoIsCutShortAsItGathersLeavesTheWritingToAnother(t *testing.T) {
	s := &stream{}
	s.load.Store(8)
	s.pace.yield.Store(true)
	s.pace.half = 8
	first, second := aFlight(s), aFlight(s)
	for _, f := range []*flight{first, second} {
		if _, err := s.enter(f, &bare{}); err != nil {
			t.Fatal(err)
		}
	}
	s.interrupt(first, first.calls)
	if do := s.gather(first); do != leaves || len(s.batch) != 0 {
		t.Fatalf("it is to do %d with %d calls taken, want to leave and none", do, len(s.batch))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.leave(ctx, first); !errors.Is(err, errNotSent) {
		t.Errorf("it leaves with %v, want that it was not sent", err)
	}
	if s.writer != second || len(second.wake) != 1 {
		t.Error("nobody is to write what the other has to say")
	}
}

// The connection is lost while one reads from it and one writes to it, and neither system call
// ends by itself: TLS can be read when it can be written no more.
func TestWhoIsInASystemCallLeavesAConnectionThatIsLost(t *testing.T) {
	for what, do := range map[string]todo{"reads": reads, "writes": writes} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				defer func() { _, _ = here.Close(), there.Close() }()
				s := newStream(&own{}, here)
				f := aFlight(s)
				s.flying.push(f)
				if do == reads {
					s.reader = f
				} else {
					s.writer, s.writing, s.sending, s.out = f, true, true, []byte("x")
				}
				ended := make(chan error, 1)
				go func() { ended <- s.fly(t.Context(), f, do) }()
				synctest.Wait()
				s.mu.Lock()
				s.fail(errLost)
				s.mu.Unlock()
				synctest.Wait()
				select {
				case err := <-ended:
					if err != nil || !errors.Is(f.reply.err, errLost) {
						t.Errorf("it ends with %v and %v, want the connection's loss as its reply", err, f.reply.err)
					}
				default:
					t.Error("it is in its system call still")
				}
			})
		})
	}
}

// Half of a reply has come when the context of its caller ends, who reads for all.
// Fails when its other half, or the reply behind it, is lost to the other caller.
func TestWhoLeavesInTheMiddleOfAReplyLeavesTheRestToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer func() { _, _ = here.Close(), there.Close() }()
		s := newStream(&own{}, here)
		first, second := aFlight(s), aFlight(s)
		s.flying.push(first)
		s.flying.push(second)
		s.reader = first
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 2)
		go func() { ended <- s.fly(ctx, first, reads) }()
		go func() { ended <- s.fly(t.Context(), second, waits) }()
		say := func(text string) {
			if _, err := there.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		say("*2\r\n:1\r\n$5\r\nhal")
		cancel()
		synctest.Wait()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("the first ends with %v, want its context's end", err)
		}
		say("ve\r\n:7\r\n")
		if err := <-ended; err != nil || second.reply != (reply{val: int64(7)}) || s.dead {
			t.Errorf("the second ends with %v and %v, the connection is lost: %t; want 7", err, second.reply, s.dead)
		}
	})
}

// What another could not write is left to the only call that is under way, which reads.
// Fails when nobody reads its reply once it has written.
func TestWhoHasToWriteAndReadsForAllReadsOn(t *testing.T) {
	s := &stream{}
	f := aFlight(s)
	s.flying.push(f)
	s.reader, s.writer = f, f
	s.passReader(f)
	if s.reader != f {
		t.Error("nobody reads")
	}
	s.finish(f, reply{})
	s.passReader(f)
	if s.reader != nil {
		t.Error("it reads on though it has its reply")
	}
}

// Fails when a hook that sends a call again, whose first end was its context's, waits for a
// reply that is dropped, or changes what is being written.
func TestACallThatHasEndedIsNotSentAgain(t *testing.T) {
	s := &stream{}
	f := aFlight(s)
	f.cmd.verb, f.left = evalsha, true
	if do, err := s.enter(f, &bare{verb: eval}); !errors.Is(err, errNotSent) || len(s.queue) != 0 {
		t.Errorf("it is to do %d, %v, with %d queued; want that it is not sent", do, err, len(s.queue))
	}
	if f.cmd.verb != evalsha {
		t.Errorf("what was sent before is %q by now", f.cmd.verb)
	}
}

// Fails when a hook that sends a call again, whose time was over before it was sent, hides that
// from the caller, or has the flight used for another call.
func TestACallThatEndedUnsentStaysEnded(t *testing.T) {
	f := aFlight(&stream{})
	f.left, f.gone = true, leaving(t.Context(), false)
	if _, err := f.send(t.Context(), bare{}); !errors.Is(err, errNotSent) || !errors.Is(f.gone, ErrNoReply) {
		t.Errorf("the hook is told %v, and the caller %v; want that it was not sent in time", err, f.gone)
	}
}

// Fails when calls begin on a connection to a server that takes no writes, or when a reply that
// it owes is lost.
func TestAServerThatTakesNoWritesStillGivesTheRepliesThatItOwes(t *testing.T) {
	for what, group := range map[string]int{"alone": 0, "made together": 2} {
		t.Run(what, func(t *testing.T) {
			here, there := net.Pipe()
			defer func() { _, _ = here.Close(), there.Close() }()
			s := newStream(&own{}, here)
			s.own.stream.Store(s)
			flights := []*flight{aFlight(s), aFlight(s), aFlight(s)}
			for _, f := range flights {
				s.flying.push(f)
			}
			flights[0].group = group
			s.got = []reply{{err: answerError("READONLY You can't write against a read only replica.")}}
			for len(s.got) < len(flights)-max(group-1, 0) {
				s.got = append(s.got, reply{val: int64(7)})
			}
			s.deliver(flights[0])
			if !s.over.Load() || s.own.stream.Load() != nil {
				t.Error("calls begin on it")
			}
			if last := flights[2]; !last.done.Load() || last.reply != (reply{val: int64(7)}) || s.dead {
				t.Errorf("the last call has %v, want 7; the connection is lost: %t", last.reply, s.dead)
			}
		})
	}
}

// A hook has a reply of its own for a call that was left. Fails when the flight, which may be
// on the wire still, is used for another call.
func TestAFlightThatWasLeftIsNotUsedAgain(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
	defer func() { _ = rdb.Close() }()
	here, there := net.Pipe()
	defer func() { _, _ = here.Close(), there.Close() }()
	var f *flight
	rdb.AddHook(hookOf(func(cmd *led) {
		f.gone = ErrNoReply
		cmd.SetVal(int64(1))
	}))
	tr := New(rdb)
	s := newStream(tr.own, here)
	s.load.Add(1)
	f = aFlight(s)
	r := tr.alone(t.Context(), 0, f, &Call{Script: &script.Script{}})
	if r.Err != nil || r.Reply[0] != int64(1) {
		t.Errorf("%v, want the hook's reply", r)
	}
	if s.free.Get() != nil {
		t.Error("it is there for the next call")
	}
}

// hookOf is a hook that has a command's reply by itself.
type hookOf func(cmd *led)

func (f hookOf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f hookOf) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		f(cmd.(*led))
		return nil
	}
}

func (f hookOf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
