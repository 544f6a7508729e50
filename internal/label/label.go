// Package label stores a client's label in Redis, and reads the labels of other clients. Labels are for people: no
// decision depends on them.
package label

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

const (
	// firstWithin is how long a client's first call waits until the label is stored. It is short, because a label must not
	// delay a lock.
	firstWithin = 100 * time.Millisecond
	// readWithin bounds the wait for the labels of other clients.
	readWithin = time.Second
	// within bounds one try to store the label.
	within = 5 * time.Second
	// every is how often the label is stored again, and soon is the pause after a failure.
	every = 5 * time.Minute
	soon  = 30 * time.Second
	// page is how many labels one script reads, and mostKnown how many are cached.
	page      = 128
	mostKnown = 4096
)

// HostAndProcess returns the default label.
var HostAndProcess = sync.OnceValue(func() string {
	host, err := os.Hostname()
	text := fmt.Sprintf("%s:%d", host, os.Getpid())
	if err != nil || key.CheckLabel(text) != nil {
		return fmt.Sprintf("unknown-host:%d", os.Getpid())
	}
	return text
})

// Config is what a book needs.
type Config struct {
	Transport  *transport.Transport
	OneKeyEach *atomic.Bool // the server refuses commands with keys of several locks
	Wire       *wire.Encoder
	Prefix     string // of the keys
	Client     string
	Text       string // the client's label
	Now        func() clock.Instant
	Spawn      func(fn func(ctx context.Context)) bool // false: the client is closed
	Log        *slog.Logger
}

// A Book stores one client's label, and caches the labels of others.
type Book struct {
	cfg Config

	open  atomic.Bool                   // the label may be stored
	due   atomic.Pointer[clock.Instant] // when the label must be stored again; nil: storing it was never tried
	lease atomic.Int64                  // the longest lease asked for so far

	mu    sync.Mutex
	known map[string]string // by client; a label never changes
}

// New returns the book of a client. It does no I/O.
func New(cfg Config) *Book { return &Book{cfg: cfg} }

// Open permits the label to be stored: the user has been found to have the permissions that the client needs.
func (b *Book) Open() { b.open.Store(true) }

// Introduce stores the label in the client's first call, before that acquires anything: so an inspection of its first
// lock shows who holds it. The call waits for that, but no longer than firstWithin.
func (b *Book) Introduce(ctx context.Context, lease time.Duration) {
	if b.due.Load() != nil || !b.open.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, firstWithin)
	defer cancel()
	if b.begin(nil, b.cfg.Now(), lease, cancel) {
		<-ctx.Done() // the label is stored, or the wait is over
	}
}

// Keep stores the label again if it is time, or if lease is longer than all leases before. It does not wait.
func (b *Book) Keep(lease time.Duration, now clock.Instant) {
	due := b.due.Load()
	if due == nil || int64(lease) <= b.lease.Load() && !now.Reached(*due) {
		return
	}
	b.begin(due, now, lease, func() {})
}

// begin stores the label on a goroutine and then calls done. It returns false without that if the client is closed, or
// if another call has begun since due was read. If storing fails, the first Keep after soon tries again.
func (b *Book) begin(due *clock.Instant, now clock.Instant, lease time.Duration, done func()) (begun bool) {
	then := now.Add(soon)
	if !b.due.CompareAndSwap(due, &then) {
		return false
	}
	b.lease.Store(max(b.lease.Load(), int64(lease)))
	return b.cfg.Spawn(func(ctx context.Context) {
		defer done()
		if err := b.store(ctx, now); err != nil {
			b.cfg.Log.Warn("label not stored, trying again", slog.Any("err", err))
		}
	})
}

// store stores the label, in a few tries, for the longest lease plus twice the time to the next store. So the label
// outlives the leases of a process that dies.
func (b *Book) store(ctx context.Context, now clock.Instant) error {
	tries := 0
	return transport.Try(ctx, nil, func() (again bool, err error) {
		tries++
		life := time.Duration(b.lease.Load()) + 2*every
		call := b.cfg.Wire.Introduce(key.Label(b.cfg.Prefix, b.cfg.Client), b.cfg.Text, life)
		// Use the client's pool: the first lock must not wait on the stream behind a label that gets no answer.
		call.Apart = true
		_, err = b.cfg.Transport.Do(ctx, within, call)
		if err == nil {
			then := now.Add(every)
			b.due.Store(&then)
		}
		return err != nil && tries < 3, err
	})
}

// Doubt makes the next Keep store the label again, because another server may have taken over.
func (b *Book) Doubt(now clock.Instant) {
	if due := b.due.Load(); due != nil {
		b.due.CompareAndSwap(due, &now)
	}
}

// Replace replaces client IDs with labels. A label that is unknown, invalid, or not read within a second, is "".
func (b *Book) Replace(ctx context.Context, at []*string) {
	found := map[string]string{wire.NoClient: "", b.cfg.Client: b.cfg.Text}
	var unknown []string
	b.mu.Lock()
	for _, id := range at {
		if _, seen := found[*id]; seen {
			continue
		}
		text, known := b.known[*id]
		if found[*id] = text; !known {
			unknown = append(unknown, *id)
		}
	}
	b.mu.Unlock()
	b.read(ctx, unknown, found)
	for _, id := range at {
		*id = found[*id]
	}
}

// read asks Redis for the labels of these clients, caches them, and puts them into found. If a server refuses a script
// for several labels, it may keep its keys in several places. Then a script reads one label, now and from now on.
func (b *Book) read(ctx context.Context, ids []string, found map[string]string) {
	size := 1
	if b.cfg.Transport.OneServer() && !b.cfg.OneKeyEach.Load() {
		size = page
	}
	var calls []transport.Call
	var pages [][]string
	for some := range slices.Chunk(ids, size) {
		keys := make([]string, len(some))
		for i, id := range some {
			keys[i] = key.Label(b.cfg.Prefix, id)
		}
		pages, calls = append(pages, some), append(calls, b.cfg.Wire.Labels(keys))
	}
	ctx, cancel := context.WithTimeout(ctx, readWithin) // a call may take longer, if the server does not know the script
	defer cancel()
	var again []string
	for i, result := range b.cfg.Transport.DoAll(ctx, readWithin, calls) {
		texts, err := wire.DecodeLabels(result.Reply, len(pages[i])) // a result with an error has no reply
		switch {
		case err == nil:
			for n, text := range texts {
				b.learn(pages[i][n], text, found)
			}
		case result.Err != nil && len(pages[i]) > 1 && transport.Classify(result.Err) == transport.Refused:
			again = append(again, pages[i]...)
		}
	}
	if len(again) > 0 {
		b.cfg.OneKeyEach.Store(true)
		b.read(ctx, again, found)
	}
}

// learn puts a label into found and the cache if it is valid. Other programs may have written anything to its key.
func (b *Book) learn(id, text string, found map[string]string) {
	if key.CheckLabel(text) != nil {
		return
	}
	found[id] = text
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) >= mostKnown {
		b.known = make(map[string]string)
	}
	b.known[id] = text
}
