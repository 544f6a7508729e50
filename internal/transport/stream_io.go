package transport

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"time"
)

// take moves what is queued to what is being written. It needs s.mu, and s.writer.
func (s *stream) take() {
	n := min(len(s.queue), maxBatch)
	s.lets = false
	s.pace.sent(n, int(s.load.Load()), time.Now)
	s.batch = s.group.arrange(s.batch, s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	for _, f := range s.batch {
		f.queued, f.reads = false, s.reads.Load()
		s.flying.push(f)
	}
	s.sending = true
	if n == 0 || s.reader != nil && s.reader != s.writer {
		return
	}
	// What is written may have to wait until somebody reads, who is not to write.
	for _, s.reader = range s.batch {
		if s.reader != s.writer {
			s.reader.signal()
			break
		}
	}
}

// gather lets others come first, and takes what is queued then, unless one of them writes
// in the place of f by now.
func (s *stream) gather(f *flight) todo {
	if s.yields() {
		runtime.Gosched()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.writer != f:
	case f.done.Load() || f.cut:
		s.passWriter(f)
	default:
		s.take()
	}
	return s.next(f)
}

// write sends a batch. What has come since f writes as well, unless its call is over.
func (s *stream) write(f *flight) todo {
	err := s.send()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = false
	switch {
	case err == nil || s.dead:
	case !s.late || !timedOut(err):
		s.fail(err)
	case !goesOn(s.conn):
		s.hush()
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	if s.late {
		s.late = s.conn.SetWriteDeadline(time.Time{}) != nil
	}
	if len(s.queue)+len(s.out) == 0 || f.done.Load() || f.cut {
		s.passWriter(f)
	}
	return s.next(f)
}

// goesOn says that a write to a connection that has timed out can be gone on with. With TLS all
// further writes fail, and what else is in use may be TLS inside.
func goesOn(conn net.Conn) bool {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// send writes the batch, behind what is left of those before. Where that fails, the batch is
// what was not written in full.
func (s *stream) send() error {
	for i := 0; i < len(s.batch); {
		made := s.batch[i : i+max(s.batch[i].group, 1)]
		if len(made) > 1 {
			s.out = s.group.appendTo(s.out, made)
		} else {
			s.out = appendCommand(s.out, made[0].cmd)
		}
		for _, f := range made {
			f.ends = len(s.out)
		}
		i += len(made)
	}
	if len(s.out) == 0 {
		return nil
	}
	n, err := s.conn.Write(s.out)
	if err != nil {
		s.batch = slices.DeleteFunc(s.batch, func(f *flight) bool { return f.ends <= n })
	}
	s.out = append(s.out[:0], s.out[n:]...)
	return err
}

// read hands out replies until f's call is over.
func (s *stream) read(f *flight) todo {
	for {
		err := s.receive()
		s.mu.Lock()
		others := s.deliver(f)
		switch {
		case err == nil:
		case s.dated && timedOut(err):
			s.dated = s.conn.SetReadDeadline(time.Time{}) != nil
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

// errOrder is for replies that are not those that were waited for.
var errOrder = errors.New("replies out of order")

// receive waits for a reply, and takes all that have come in full. It may time out before
// the first of them, also where a part of it has come.
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

// deliver gives out what was received, and returns who is to be woken beside f's
// caller. It needs s.mu.
func (s *stream) deliver(f *flight) (others []*flight) {
	if len(s.got) > 1 {
		others = make([]*flight, 0, len(s.got))
	}
	for _, r := range s.got {
		g := s.flying.pop()
		if g == nil {
			s.fail(fmt.Errorf("%w: one that nobody waits for", errOrder))
			break
		}
		if takesNoWrites(r.err) && !s.leads(r.err) {
			s.retire() // the address may lead to another server by now
		}
		if g.group > 1 {
			others = s.deliverGroup(g, r, f, others)
			continue
		}
		if g.left {
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

// A fifo keeps flights in their order.
type fifo struct {
	list []*flight
	head int
}

func (q *fifo) push(f *flight) {
	if q.head > maxBatch && q.head > len(q.list)/2 {
		q.list = slices.Delete(q.list, 0, q.head)
		q.head = 0
	}
	q.list = append(q.list, f)
}

func (q *fifo) pop() *flight {
	if q.head == len(q.list) {
		return nil
	}
	f := q.list[q.head]
	q.list[q.head] = nil
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return f
}

func (q *fifo) all() []*flight { return q.list[q.head:] }
