// Package label is what people are told of clients: it stores who a client is in Redis, and
// reads who others are. Nothing is decided by it.
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
	// firstWithin is how long a client's first call waits until its label is stored, but not for
	// longer: what decides nothing is to hold up nobody.
	firstWithin = 100 * time.Millisecond
	// readWithin is how long the labels of others are waited for.
	readWithin = time.Second
	// within is how long one try may take to store it.
	within = 5 * time.Second
	// every is how often it is stored again, and soon when after that failed.
	every = 5 * time.Minute
	soon  = 30 * time.Second
	// page is how many labels one script reads, and mostKnown how many are kept.
	page      = 128
	mostKnown = 4096
)

// HostAndProcess is the label of a client that has no other.
var HostAndProcess = sync.OnceValue(func() string {
	host, err := os.Hostname()
	text := fmt.Sprintf("%s:%d", host, os.Getpid())
	if err != nil || key.CheckLabel(text) != nil {
		return fmt.Sprintf("unknown-host:%d", os.Getpid())
	}
	return text
})

// Config is whose book it is.
type Config struct {
	Transport *transport.Transport
	Wire      *wire.Encoder
	Prefix    string // of the keys
	Client    string
	Text      string // the client's label
	Now       func() clock.Instant
	Spawn     func(fn func(ctx context.Context)) bool // false: it is too late
	Log       *slog.Logger
}

// A Book has what one client tells of itself, and what it has read of others.
type Book struct {
	cfg Config

	open  atomic.Bool
	due   atomic.Pointer[clock.Instant] // when it is to be stored again; nil: it never was
	lease atomic.Int64                  // the longest that was asked for until now

	mu    sync.Mutex
	known map[string]string // by client: a label does not change
}

// New returns the book of a client. It does no I/O.
func New(cfg Config) *Book { return &Book{cfg: cfg} }

// Open says that the client may run what it needs, and so may store its label.
func (b *Book) Open() { b.open.Store(true) }

// Introduce has the label stored, once, before the client takes anything: so who looks
// after the first lock sees who holds. It waits for that, but not for long.
func (b *Book) Introduce(ctx context.Context, lease time.Duration) {
	if b.due.Load() != nil || !b.open.Load() {
		return
	}
	now, stored := b.cfg.Now(), make(chan struct{})
	if !b.next(nil, now, lease) || !b.begin(now, func() { close(stored) }) {
		return
	}
	limit := time.NewTimer(firstWithin)
	defer limit.Stop()
	select {
	case <-stored:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// Keep has the label stored again where it is time, or where a lease is asked for that is
// longer than all before. It does not wait.
func (b *Book) Keep(lease time.Duration, now clock.Instant) {
	due := b.due.Load()
	if due == nil || int64(lease) <= b.lease.Load() && !now.Reached(*due) {
		return
	}
	if b.next(due, now, lease) {
		b.begin(now, func() {})
	}
}

// next has the label stored again soon if the caller fails. Of several callers one does it.
func (b *Book) next(due *clock.Instant, now clock.Instant, lease time.Duration) bool {
	then := now.Add(soon)
	if !b.due.CompareAndSwap(due, &then) {
		return false
	}
	b.lease.Store(max(b.lease.Load(), int64(lease)))
	return true
}

// begin has the label stored, and done called after that, on a goroutine.
func (b *Book) begin(now clock.Instant, done func()) (begun bool) {
	return b.cfg.Spawn(func(ctx context.Context) {
		defer done()
		if err := b.store(ctx, now); err != nil {
			b.cfg.Log.Warn("label not stored, trying again", slog.Any("err", err))
		}
	})
}

// store stores the label, in a few tries.
func (b *Book) store(ctx context.Context, now clock.Instant) error {
	tries := 0
	return transport.Try(ctx, nil, func() (again bool, err error) {
		tries++
		_, err = b.cfg.Transport.Do(ctx, within, b.introduction())
		if err == nil {
			then := now.Add(every)
			b.due.Store(&then)
		}
		return err != nil && tries < 3, err
	})
}

// introduction stores the label for as long as anything may last that the client asks for
// until it is stored again: so it outlives the leases of a process that dies.
func (b *Book) introduction() transport.Call {
	life := time.Duration(b.lease.Load()) + 2*every
	call := b.cfg.Wire.Introduce(key.Label(b.cfg.Prefix, b.cfg.Client), b.cfg.Text, life)
	call.Apart = true // a connection that falls silent under it must not delay the first lock, which uses the shared one
	return call
}

// Doubt has the label stored again by whatever the client does next: the server may be
// another one.
func (b *Book) Doubt(now clock.Instant) {
	if due := b.due.Load(); due != nil {
		b.due.CompareAndSwap(due, &now)
	}
}

// Put puts labels in the place of the IDs of their clients. What is not known, or not read
// within a second, is "". Where a script may name the keys of many clients it reads as many.
func (b *Book) Put(ctx context.Context, at []*string, together bool) {
	found := map[string]string{wire.NoClient: ""}
	var unknown []string
	for _, id := range at {
		if _, seen := found[*id]; seen {
			continue
		}
		text, known := b.of(*id)
		if found[*id] = text; !known {
			unknown = append(unknown, *id)
		}
	}
	b.read(ctx, unknown, found, together)
	for _, id := range at {
		*id = found[*id]
	}
}

// of is what is known without asking Redis.
func (b *Book) of(id string) (text string, known bool) {
	if id == b.cfg.Client {
		return b.cfg.Text, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	text, known = b.known[id]
	return text, known
}

func (b *Book) read(ctx context.Context, ids []string, found map[string]string, together bool) {
	size := 1
	if together {
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
	for i, result := range b.cfg.Transport.DoAll(ctx, readWithin, calls) {
		texts, err := wire.DecodeLabels(result.Reply, len(pages[i]))
		if result.Err != nil || err != nil {
			continue
		}
		for n, text := range texts {
			b.learn(pages[i][n], text, found)
		}
	}
}

// learn keeps what is a label: whoever may write the locks' keys may write others.
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
