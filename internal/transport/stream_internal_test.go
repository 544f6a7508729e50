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

// The first of eight callers yields. The fourth takes over and writes for all four.
// Fails when the server has to wait for all eight.
func TestHalfOfACrowdIsNotKeptWaiting(t *testing.T) {
	s := &stream{}
	s.load.Store(8)
	s.tuner.yield.Store(true)
	s.tuner.halfPeak = 4
	var crowd [8]*flight
	come := func(i int, want todo) {
		t.Helper()
		crowd[i] = aFlight(s)
		if do, err := s.enter(crowd[i], &rawCmd{}); do != want || err != nil {
			t.Fatalf("call %d is to do %d, %v; want %d", i, do, err, want)
		}
	}
	come(0, collects)
	come(1, waits)
	come(2, waits)
	come(3, writes)
	if n := len(s.batch); n != 4 || len(s.queue) != 0 {
		t.Errorf("%d calls are written, %d are left; want 4 and none", n, len(s.queue))
	}
	come(4, waits)
	if do := s.collect(crowd[0]); do == writes || do == collects || len(s.batch) != 4 {
		t.Errorf("who has let others come is to do %d, and %d calls are written; want nothing and 4", do, len(s.batch))
	}
}

// Fails when a writer that was cancelled while it yielded still writes, or leaves the stream without a writer.
func TestWhoIsCutShortAsItGathersLeavesTheWritingToAnother(t *testing.T) {
	s := &stream{}
	s.load.Store(8)
	s.tuner.yield.Store(true)
	s.tuner.halfPeak = 8
	first, second := aFlight(s), aFlight(s)
	for _, f := range []*flight{first, second} {
		if _, err := s.enter(f, &rawCmd{}); err != nil {
			t.Fatal(err)
		}
	}
	s.interrupt(first, first.uses)
	if do := s.collect(first); do != leaves || len(s.batch) != 0 {
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

// The connection is lost while one caller reads and one writes, and neither system call ends on its own: TLS can still
// be read when it cannot be written.
func TestWhoIsInASystemCallLeavesAConnectionThatIsLost(t *testing.T) {
	for what, do := range map[string]todo{"reads": reads, "writes": writes} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				defer func() { _, _ = here.Close(), there.Close() }()
				s := newStream(&streamSource{}, here)
				f := aFlight(s)
				s.flying = append(s.flying, f)
				if do == reads {
					s.reader = f
				} else {
					s.writer, s.writerActive, s.batchTaken, s.out = f, true, true, []byte("x")
				}
				ended := make(chan error, 1)
				go func() { ended <- s.roundTrip(t.Context(), f, do) }()
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

// The reader has received half of its reply when its context ends.
// Fails when the other caller loses the reply's other half, or the reply after it.
func TestWhoLeavesInTheMiddleOfAReplyLeavesTheRestToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer func() { _, _ = here.Close(), there.Close() }()
		s := newStream(&streamSource{}, here)
		first, second := aFlight(s), aFlight(s)
		s.flying = append(s.flying, first)
		s.flying = append(s.flying, second)
		s.reader = first
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 2)
		go func() { ended <- s.roundTrip(ctx, first, reads) }()
		go func() { ended <- s.roundTrip(t.Context(), second, waits) }()
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

// A writer left unsent bytes, and the only remaining caller is the reader.
// Fails when nobody reads that caller's reply after it has written the bytes.
func TestWhoHasToWriteAndReadsForAllReadsOn(t *testing.T) {
	s := &stream{}
	f := aFlight(s)
	s.flying = append(s.flying, f)
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

// A hook sends a call again after the call's context has ended. Fails when it waits for a reply that will be dropped, or
// changes a command that is being written.
func TestACallThatHasEndedIsNotSentAgain(t *testing.T) {
	s := &stream{}
	f := aFlight(s)
	f.cmd.verb, f.abandoned = evalsha, true
	if do, err := s.enter(f, &rawCmd{verb: eval}); !errors.Is(err, errNotSent) || len(s.queue) != 0 {
		t.Errorf("it is to do %d, %v, with %d queued; want that it is not sent", do, err, len(s.queue))
	}
	if f.cmd.verb != evalsha {
		t.Errorf("what was sent before is %q by now", f.cmd.verb)
	}
}

// A hook sends a call again that had ended before it was sent. Fails when the caller gets no error, or when another call
// gets the flight.
func TestACallThatEndedUnsentStaysEnded(t *testing.T) {
	f := aFlight(&stream{})
	f.abandoned, f.failure = true, leaveError(t.Context(), false)
	if _, err := f.send(t.Context(), rawCmd{}); !errors.Is(err, errNotSent) || !errors.Is(f.failure, ErrNoReply) {
		t.Errorf("the hook is told %v, and the caller %v; want that it was not sent in time", err, f.failure)
	}
}

// Fails when new calls begin on a connection to a server that accepts no writes, or when a reply that it owes is lost.
func TestAServerThatTakesNoWritesStillGivesTheRepliesThatItOwes(t *testing.T) {
	for what, group := range map[string]int{"alone": 0, "made together": 2} {
		t.Run(what, func(t *testing.T) {
			here, there := net.Pipe()
			defer func() { _, _ = here.Close(), there.Close() }()
			s := newStream(&streamSource{}, here)
			s.source.stream.Store(s)
			flights := []*flight{aFlight(s), aFlight(s), aFlight(s)}
			s.flying = append(s.flying, flights...)
			flights[0].group = group
			s.got = []reply{{err: answerError("READONLY You can't write against a read only replica.")}}
			for len(s.got) < len(flights)-max(group-1, 0) {
				s.got = append(s.got, reply{val: int64(7)})
			}
			s.deliver(flights[0])
			if !s.over.Load() || s.source.stream.Load() != nil {
				t.Error("calls begin on it")
			}
			if last := flights[2]; !last.done.Load() || last.reply != (reply{val: int64(7)}) || s.dead {
				t.Errorf("the last call has %v, want 7; the connection is lost: %t", last.reply, s.dead)
			}
		})
	}
}

// A hook makes a reply itself for a call that has ended. Fails when another call gets the flight, whose command may still
// be on the wire.
func TestAFlightThatWasLeftIsNotUsedAgain(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
	defer func() { _ = rdb.Close() }()
	here, there := net.Pipe()
	defer func() { _, _ = here.Close(), there.Close() }()
	var f *flight
	rdb.AddHook(hookOf(func(cmd *flightCmd) {
		f.failure = ErrNoReply
		cmd.SetVal(int64(1))
	}))
	tr := New(rdb)
	s := newStream(tr.source, here)
	s.load.Add(1)
	f = aFlight(s)
	r := tr.doShared(t.Context(), 0, f, &Call{Script: &script.Script{}})
	if r.Err != nil || r.Reply[0] != int64(1) {
		t.Errorf("%v, want the hook's reply", r)
	}
	if s.free.Get() != nil {
		t.Error("it is there for the next call")
	}
}

// hookOf is a hook that makes the reply of a command itself.
type hookOf func(cmd *flightCmd)

func (f hookOf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f hookOf) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		f(cmd.(*flightCmd))
		return nil
	}
}

func (f hookOf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
