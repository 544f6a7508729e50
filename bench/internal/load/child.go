package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/relock-go/relock/bench/internal/rival"
)

// HoldFlag makes this program a process that holds locks; a Holding follows.
const HoldFlag = "-hold"

// Holding is what such a process is told.
type Holding struct {
	Rival, Addr, Prefix string
	Locks               int
	TTL, Every          time.Duration // Every is after how much of the TTL the library renews
	Window              time.Duration
}

// Held is what it found. Memory is compared with that of the same process before
// its first lock.
type Held struct {
	Goroutines     int
	Heap, Stack    int64 // after a collection
	CPU            time.Duration
	Errors         int64
	Err            string
	Renewals       int64
	Late           time.Duration // the longest that a renewal came after its time
	AcquireElapsed time.Duration
}

// Hold is such a process' main. It writes "held", waits for a line, then writes
// what it found in the window that follows.
func Hold(ctx context.Context, arg string, in io.Reader, out io.Writer) error {
	var h Holding
	if err := json.Unmarshal([]byte(arg), &h); err != nil {
		return err
	}
	var found Held
	renewals := newRenewals(h)
	c, err := openNamed(h.Rival, h.Addr, rival.Setup{TTL: h.TTL, Renewed: renewals.note})
	if err != nil {
		return err
	}
	if err := warm(ctx, c, h.Prefix); err != nil {
		return err
	}
	goroutines, heap, stack := footprint()
	begin := time.Now()
	locks, errs := holdAll(ctx, c, h, renewals)
	found.AcquireElapsed = time.Since(begin)
	g, hp, st := footprint()
	found.Goroutines, found.Heap, found.Stack = g-goroutines, hp-heap, st-stack
	if _, err := fmt.Fprintln(out, "held"); err != nil {
		return err
	}
	if _, err := in.Read(make([]byte, 1)); err != nil {
		return err
	}
	cpu := cpuTime()
	if err := pause(ctx, h.Window); err != nil {
		return err
	}
	found.CPU = cpuTime() - cpu
	found.Renewals, found.Late = renewals.judge()
	found.Errors, found.Err = unlockSome(locks, errs)
	runtime.KeepAlive(locks)
	return json.NewEncoder(out).Encode(found)
}

// openNamed opens a client of the rival that has the name.
func openNamed(name, addr string, setup rival.Setup) (rival.Client, error) {
	for _, r := range append(rival.All(), rival.RelockSticky()) {
		if r.Name == name && r.Open != nil {
			return r.Open(addr, setup)
		}
	}
	return nil, fmt.Errorf("no rival %q", name)
}

// unlockSome shows whether what was held still is: what was lost cannot be unlocked.
// Unlocking 100,000 one by one takes long, so it is a thousand of them. It returns how
// many errors there were in all, and the first.
func unlockSome(locks []rival.Lock, errs *tally) (n int64, first string) {
	for i := 0; i < len(locks); i += 1 + len(locks)/1000 {
		if err := locks[i].Unlock(); err != nil {
			errs.add(err)
		}
	}
	var s Sample
	errs.into(&s)
	return s.Errors, s.Err
}

// openers acquire at a time.
const openers = 64

// warm has the client make its connections and buffers, which are no lock's.
func warm(ctx context.Context, c rival.Client, prefix string) error {
	var locks []rival.Lock
	for i := range openers {
		locks = append(locks, c.Lock(prefix+"warm"+strconv.Itoa(i)))
	}
	var errs tally
	drive(ctx, locks, 50*time.Millisecond, &errs)
	if first := errs.first.Load(); first != nil {
		return errors.New(*first)
	}
	return nil
}

// holdAll acquires with some goroutines, which end.
func holdAll(ctx context.Context, c rival.Client, h Holding, renewals *renewals) ([]rival.Lock, *tally) {
	locks := make([]rival.Lock, h.Locks)
	var errs tally
	var next atomic.Int64
	var wg sync.WaitGroup
	for range openers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < h.Locks; i = int(next.Add(1)) - 1 {
				name := h.Prefix + strconv.Itoa(i)
				locks[i] = c.Lock(name)
				renewals.begin(i)
				if err := locks[i].Lock(ctx); err != nil {
					errs.add(err)
				}
			}
		})
	}
	wg.Wait()
	return locks, &errs
}

// renewals keeps for each lock when it was last renewed. It is there before the
// memory is measured.
type renewals struct {
	prefix string
	every  time.Duration
	start  time.Time
	last   []atomic.Int64 // ns after start; 0 is never
	n      atomic.Int64
	late   atomic.Int64
}

func newRenewals(h Holding) *renewals {
	return &renewals{prefix: h.Prefix, every: h.Every, start: time.Now(), last: make([]atomic.Int64, h.Locks)}
}

func (r *renewals) begin(i int) { r.last[i].Store(int64(time.Since(r.start))) }

func (r *renewals) note(name string) {
	i, err := strconv.Atoi(strings.TrimPrefix(name, r.prefix))
	if err != nil || i >= len(r.last) {
		return
	}
	now := int64(time.Since(r.start))
	r.n.Add(1)
	r.lateBy(now - r.last[i].Swap(now) - int64(r.every))
}

func (r *renewals) lateBy(ns int64) {
	for {
		old := r.late.Load()
		if ns <= old || r.late.CompareAndSwap(old, ns) {
			return
		}
	}
}

// judge counts as late as well what is still due.
func (r *renewals) judge() (n int64, late time.Duration) {
	n = r.n.Load()
	if n > 0 {
		now := int64(time.Since(r.start))
		for i := range r.last {
			r.lateBy(now - r.last[i].Load() - int64(r.every))
		}
	}
	return n, time.Duration(r.late.Load())
}

func footprint() (goroutines int, heap, stack int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapAlloc), int64(m.StackInuse)
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
