package transport

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"time"
)

// takeBatch moves flights from the queue to the batch. It needs s.mu, and a writer.
func (s *stream) takeBatch() {
	n := min(len(s.queue), maxBatch)
	s.yielding = false
	s.tuner.sent(n, int(s.load.Load()), time.Now)
	s.batch = s.group.arrange(s.batch, s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	for _, f := range s.batch {
		f.queued, f.reads = false, s.reads.Load()
		s.flying = append(s.flying, f)
	}
	s.batchTaken = true
	if n == 0 || s.reader != nil && s.reader != s.writer {
		return
	}
	// If all socket buffers are full, a write blocks until somebody reads. So another caller than the writer must read.
	for _, s.reader = range s.batch {
		if s.reader != s.writer {
			s.reader.signal()
			break
		}
	}
}

// collect lets other callers run and queue their commands. Then it takes the batch, unless one of them has taken over
// as the writer.
func (s *stream) collect(f *flight) todo {
	if s.shouldYield() {
		runtime.Gosched()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.writer != f:
	case f.done.Load() || f.cancelled:
		s.passWriter(f)
	default:
		s.takeBatch()
	}
	return s.next(f)
}

// write sends the batch. The caller of f goes on as the writer if more is queued, unless its own call is over.
func (s *stream) write(f *flight) todo {
	err := s.send()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batchTaken = false
	switch {
	case err == nil || s.dead:
	case !s.writeInterrupted || !timedOut(err):
		s.fail(err)
	case !resumable(s.conn):
		s.stopWriting()
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	if s.writeInterrupted {
		s.writeInterrupted = s.conn.SetWriteDeadline(time.Time{}) != nil
	}
	if len(s.queue)+len(s.out) == 0 || f.done.Load() || f.cancelled {
		s.passWriter(f)
	}
	return s.next(f)
}

// resumable reports whether a write that timed out can go on at the next byte. With TLS all later writes fail, and other
// types of connections may use TLS inside.
func resumable(conn net.Conn) bool {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// send writes what is left of earlier batches, and then the batch. After an error it leaves in the batch the flights that
// were not written in full.
func (s *stream) send() error {
	for i := 0; i < len(s.batch); {
		made := s.batch[i : i+max(s.batch[i].group, 1)]
		if len(made) > 1 {
			s.out = s.group.appendTo(s.out, made)
		} else {
			s.out = appendCommand(s.out, made[0].cmd)
		}
		for _, f := range made {
			f.endsAt = len(s.out)
		}
		i += len(made)
	}
	if len(s.out) == 0 {
		return nil
	}
	n, err := s.conn.Write(s.out)
	if err != nil {
		s.batch = slices.DeleteFunc(s.batch, func(f *flight) bool { return f.endsAt <= n })
	}
	s.out = append(s.out[:0], s.out[n:]...)
	return err
}

// read reads replies for all calls until the caller of f has something else to do.
func (s *stream) read(f *flight) todo {
	for {
		err := s.receive()
		s.mu.Lock()
		others := s.deliver(f)
		switch {
		case err == nil:
		case s.readInterrupted && timedOut(err):
			s.readInterrupted = s.conn.SetReadDeadline(time.Time{}) != nil
		default:
			s.fail(err)
		}
		do := s.next(f)
		if do != reads {
			s.passReader(f)
		}
		s.mu.Unlock()
		for _, g := range others {
			g.signal()
		}
		if do != reads {
			return do
		}
	}
}

// errOrder is the error of a connection whose replies do not match the commands.
var errOrder = errors.New("replies out of order")

// receive waits for a reply and takes all complete ones into got. It may time out before the first one is complete: the
// decoder then keeps the part that has come.
func (s *stream) receive() error {
	for {
		r, whole, err := s.in.next()
		switch {
		case err != nil:
			return err
		case whole:
			s.got = append(s.got, r)
			if len(s.got) >= maxBatch {
				return nil
			}
		case len(s.got) > 0:
			return nil
		default:
			if err := s.in.fill(); err != nil {
				return err
			}
		}
	}
}

// deliver gives the received replies to their flights, and returns the flights other than f whose callers must be woken.
// It needs s.mu.
func (s *stream) deliver(f *flight) (others []*flight) {
	if len(s.got) > 1 {
		others = make([]*flight, 0, len(s.got))
	}
	for _, r := range s.got {
		if len(s.flying) == 0 {
			s.fail(fmt.Errorf("%w: one that nobody waits for", errOrder))
			break
		}
		g := s.flying[0]
		s.flying = slices.Delete(s.flying, 0, 1)
		if r.err != nil && takesNoWrites(r.err) && !s.madeRecently(r.err) {
			s.retire() // after a failover the address may lead to another server
		}
		if g.group > 1 {
			others = s.deliverGroup(g, r, f, others)
			continue
		}
		if g.abandoned {
			continue
		}
		s.finish(g, r)
		if g != f {
			others = append(others, g)
		}
	}
	if len(s.got) > 0 {
		s.reads.Add(1)
	}
	clear(s.got)
	s.got = s.got[:0]
	return others
}
