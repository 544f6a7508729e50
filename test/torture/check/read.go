package check

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// maxLine is more than any event has.
const maxLine = 64 << 10

// An input is what the files say, by lock. It takes some 250 bytes a call.
type input struct {
	files, events  int
	torn           int // last lines that were cut short
	stories        map[string]*story
	faults         []*fault
	first, last    map[int]int64 // event of each worker
	begun, until   int64         // of the whole run
	planned        time.Duration
	seed           int64
	sweeps         []history.Event
	leaked         []history.Event
	scripts, pings []history.Event
	malformed      []misprint

	open map[holdID]*call
	died map[int]int64
}

type misprint struct {
	t   int64
	why string
}

func newInput() *input {
	return &input{
		stories: map[string]*story{}, first: map[int]int64{}, last: map[int]int64{}, begun: never,
		open: map[holdID]*call{}, died: map[int]int64{},
	}
}

// readDir reads all histories of a directory.
func readDir(dir string) (*input, error) {
	paths, err := histories(dir)
	if err != nil {
		return nil, err
	}
	in, p := newInput(), newParser()
	for _, path := range paths {
		if err := in.readFile(path, p); err != nil {
			return nil, err
		}
	}
	in.close()
	return in, nil
}

func (in *input) readFile(path string, p *parser) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in.files++
	torn, err := lines(f, func(line []byte) { in.read(p, filepath.Base(path), line) })
	if torn {
		in.torn++
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// read takes in a line.
func (in *input) read(p *parser, file string, line []byte) {
	var e history.Event
	if err := p.line(line, &e); err != nil {
		in.misprint(in.until, fmt.Sprintf("%s: garbled: %.80q", file, line))
		return
	}
	in.event(&e, file)
}

// lines calls a function with each line. A last one without an end is what a
// killed process leaves: it is left out.
func lines(r io.Reader, each func([]byte)) (torn bool, err error) {
	in := bufio.NewReaderSize(r, maxLine)
	for {
		b, err := in.ReadSlice('\n')
		switch {
		case err == nil:
			each(b[:len(b)-1])
		case errors.Is(err, io.EOF):
			return len(b) > 0, nil
		case errors.Is(err, bufio.ErrBufferFull):
			each([]byte("a line that is too long")) // garbled, whatever it says
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = in.ReadSlice('\n')
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return false, err
			}
		default:
			return false, err
		}
	}
}

func (in *input) misprint(t int64, why string) {
	in.malformed = append(in.malformed, misprint{t, why})
}

// event takes in one event.
func (in *input) event(e *history.Event, file string) {
	in.events++
	if e.T <= 0 {
		in.misprint(0, fmt.Sprintf("%s: an event %q without a time", file, e.What))
		return
	}
	in.clock(e)
	switch e.What {
	case history.Start:
		in.seed, in.planned = e.By, time.Duration(e.Until-e.T)
	case history.Fault:
		in.faults = append(in.faults, newFault(e))
	case history.Died:
		in.died[e.Worker] = e.T
		if w, ok := workerOf(e.On); ok {
			in.died[w] = e.T
		}
	case history.Free, history.Kept, history.Effect, history.Signal:
		in.story(e.Lock).event(e)
	case history.Script:
		in.scripts = append(in.scripts, *e)
	case history.Ping:
		in.pings = append(in.pings, *e)
	case history.Swept:
		in.sweeps = append(in.sweeps, *e)
	case history.Leak:
		in.leaked = append(in.leaked, *e)
	case history.Call, history.Await:
		in.call(e, file)
	default:
		in.progress(e, file)
	}
}

// event takes what happened to one lock.
func (s *story) event(e *history.Event) {
	switch e.What {
	case history.Free:
		s.frees = append(s.frees, *e)
	case history.Kept:
		s.kept = append(s.kept, *e)
	case history.Effect:
		s.effects = append(s.effects, effect{e.T, e.ID, e.Token, e.Worker, e.Mode == "r", e.Owner, e.Err, e.On, e.By, e.Of})
	case history.Signal:
		s.signals = append(s.signals, signal{e.T, e.Until, e.Token, e.On, e.Err})
	}
}

// clock notes from when to when there is a history, of the run and of each worker.
func (in *input) clock(e *history.Event) {
	if e.What != history.Effect { // those are the store's
		if t, ok := in.first[e.Worker]; !ok || e.T < t {
			in.first[e.Worker] = e.T
		}
		in.last[e.Worker] = max(in.last[e.Worker], e.T)
	}
	in.begun, in.until = min(in.begun, e.T), max(in.until, e.T)
}

func (in *input) story(lock string) *story {
	s := in.stories[lock]
	if s == nil {
		s = &story{name: lock}
		in.stories[lock] = s
	}
	return s
}

func (in *input) call(e *history.Event, file string) {
	id := holdID{e.Worker, e.ID}
	if in.open[id] != nil {
		in.misprint(e.T, fmt.Sprintf("%s: worker %d has two calls with id %d", file, e.Worker, e.ID))
	}
	s := in.story(e.Lock)
	c := &call{
		id: e.ID, worker: e.Worker, owner: e.Owner, read: e.Mode != "w", kind: e.Kind,
		ttl: time.Duration(e.TTL) * time.Millisecond, began: e.T, weight: e.Weight, of: e.Of,
	}
	if c.of == 0 {
		c.of, c.weight = whole, whole
		if c.read {
			c.weight = 1
		}
	}
	if e.What == history.Call {
		c.resumes, c.every, c.together = e.By, e.Until, e.On == history.Together
	}
	if e.What == history.Await {
		c.awaits, c.deadline, c.parted = e.On, e.Until, in.open[holdID{e.Worker, e.By}]
		if c.parted == nil {
			in.misprint(e.T, fmt.Sprintf("%s: worker %d waits by hold %d, which has no call", file, e.Worker, e.By))
			return
		}
		c.parted.awaiting = c
	}
	in.open[id] = c
	s.calls = append(s.calls, c)
	s.ttl = max(s.ttl, c.ttl)
}

// progress takes in an event that belongs to a call.
func (in *input) progress(e *history.Event, file string) {
	c := in.open[holdID{e.Worker, e.ID}]
	if c == nil {
		in.misprint(e.T, fmt.Sprintf("%s: %q of worker %d, id %d, which has no call", file, e.What, e.Worker, e.ID))
		return
	}
	switch e.What {
	case history.Queued:
		c.queued = e.T
	case history.Acquired:
		c.acquired, c.token, c.until, c.stale = e.T, e.Token, max(c.until, e.Until), time.Duration(e.By)
		c.unwoken = e.Err != ""
	case history.Failed:
		c.failed, c.why, c.into = e.T, e.Err, e.By
	case history.Trusted:
		c.until = max(c.until, e.Until)
	case history.Lost:
		c.lost = earlier(c.lost, e.T)
	case history.Releasing:
		c.releasing, c.unspent = earlier(c.releasing, e.T), e.Err == "unspent"
	case history.Released:
		c.released, c.confirmed, c.unanswered = e.T, e.Err == "", e.Err == "unconfirmed"
	case history.Downgrade:
		c.downgraded = earlier(c.downgraded, e.T)
	default:
		in.misprint(e.T, fmt.Sprintf("%s: unknown event %q", file, e.What))
		return
	}
}

// earlier is the first of two times, where 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// close brings in what was said of workers elsewhere.
func (in *input) close() {
	for _, s := range in.stories {
		s.handedOver()
		for _, c := range s.calls {
			if t := in.died[c.worker]; t != 0 && (c.released == 0 || !c.confirmed && c.released > t) && c.failed == 0 {
				c.died = t
			}
		}
		slices.SortStableFunc(s.frees, func(a, b history.Event) int { return compare(a.T, b.T) })
	}
	in.open = nil
}
