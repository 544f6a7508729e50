package history

import (
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"time"
)

// flushAt bounds what a killed process may leave unwritten, in bytes.
const flushAt = 16 << 10

// Writer appends events to a file. What was flushed survives a SIGKILL of its
// process; a write that is cut short leaves a last line that is no JSON.
type Writer struct {
	mu  sync.Mutex // guards the following fields; only writes to a local file happen under it
	f   *os.File
	buf []byte
}

// Create makes a Writer for a new file.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{f: f}, nil
}

// Add notes an event, without writing it yet. Its time is now where it has none.
func (w *Writer) Add(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.T == 0 {
		e.T = Now()
	}
	w.buf = e.append(w.buf)
	if len(w.buf) >= flushAt {
		w.write()
	}
}

// Flush writes what was added. It must come before whatever others may see of
// the event: an effect, or a release.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write()
}

// write panics where the disk fails: a history with a hole proves nothing.
func (w *Writer) write() {
	if len(w.buf) == 0 {
		return
	}
	if _, err := w.f.Write(w.buf); err != nil {
		panic(err)
	}
	w.buf = w.buf[:0]
}

// FlushEvery flushes until stop is closed.
func (w *Writer) FlushEvery(d time.Duration, stop <-chan struct{}) {
	again := time.NewTicker(d)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			w.Flush()
		case <-stop:
			w.Flush()
			return
		}
	}
}

// Close flushes and closes the file.
func (w *Writer) Close() error {
	w.Flush()
	return w.f.Close()
}

// append writes the event as a line: what encoding/json would write, sooner.
func (e *Event) append(b []byte) []byte {
	b = append(b, `{"t":`...)
	b = strconv.AppendInt(b, e.T, 10)
	b = append(b, `,"w":`...)
	b = strconv.AppendInt(b, int64(e.Worker), 10)
	b = appendText(b, "e", string(e.What))
	b = appendInt(b, "i", e.ID)
	b = appendText(b, "l", e.Lock)
	b = appendText(b, "k", e.Kind)
	b = appendText(b, "m", e.Mode)
	b = appendText(b, "o", e.Owner)
	b = appendInt(b, "f", e.Token)
	b = appendInt(b, "ttl", e.TTL)
	b = appendInt(b, "u", e.Until)
	b = appendText(b, "err", e.Err)
	b = appendText(b, "x", e.Fault)
	b = appendText(b, "on", e.On)
	b = appendInt(b, "n", e.Weight)
	b = appendInt(b, "of", e.Of)
	b = appendInt(b, "by", e.By)
	return append(b, "}\n"...)
}

func appendInt(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

func appendText(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	quoted, _ := json.Marshal(s) // a string always has a form
	return append(b, quoted...)
}
