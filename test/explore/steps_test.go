package explore_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/virtual"
)

// A setup is what the first number of a schedule says.
type setup struct {
	procs int
	names int
	kind  int // 0 plain, 1 fair, 2 read/write, 3 fair read/write
	ttl   time.Duration
	warm  bool // the inboxes hear from the beginning
	risk  int  // which table of steps
	trouble
}

func decodeSetup(n uint32) setup {
	s := setup{procs: 2 + int(n%3), kind: int(n / 3 % 4), warm: n/12%4 != 0, risk: int(n / 48 % 4), names: 1}
	if n/192%4 == 3 {
		s.names = 2
	}
	s.ttl = time.Duration([]int{301, 301, 907, 2903}[n/768%4]) * time.Millisecond
	s.trouble = decodeTrouble(n / 3072)
	return s
}

func (s setup) shared() bool  { return s.kind >= 2 }
func (s setup) ordered() bool { return s.kind%2 == 1 }

func (s setup) String() string {
	kind := []string{"plain", "fair", "rw", "fair rw"}[s.kind]
	return fmt.Sprintf("%d processes, %d %s locks, ttl %v, warm %v, risk %d, %v", s.procs, s.names, kind, s.ttl, s.warm, s.risk, s.trouble)
}

// A step is a kind of decision. do returns false where it is not possible now.
type step struct {
	name   string
	weight [4]int // by risk: calm, delays, faults, disasters
	do     func(w *world, n int) bool
}

// errCut is what a client sees of a connection that was closed.
var errCut = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}

var steps = []step{
	{"begin", [4]int{24, 20, 20, 20}, (*world).begin},
	{"release", [4]int{16, 14, 14, 12}, (*world).release},
	{"downgrade", [4]int{3, 3, 3, 3}, (*world).downgrade},
	{"cancel", [4]int{4, 6, 6, 4}, (*world).cancel},
	{"execute", [4]int{28, 28, 24, 24}, (*world).stepExecute},
	{"deliver", [4]int{20, 18, 16, 16}, (*world).stepDeliver},
	{"hear", [4]int{12, 12, 10, 10}, (*world).stepHear},
	{"pump", [4]int{8, 4, 6, 6}, (*world).stepPump},
	{"write", [4]int{3, 3, 3, 3}, (*world).write},
	{"tick", [4]int{4, 8, 6, 6}, (*world).tick},
	{"stall", [4]int{0, 3, 2, 2}, (*world).stall},
	{"age", [4]int{2, 3, 4, 5}, (*world).age},
	{"lose request", [4]int{0, 0, 3, 2}, (*world).loseRequest},
	{"lose reply", [4]int{0, 0, 4, 3}, (*world).loseReply},
	{"duplicate", [4]int{0, 0, 4, 3}, (*world).duplicate},
	{"orphan", [4]int{0, 2, 3, 2}, (*world).makeOrphan},
	{"late copy", [4]int{0, 3, 5, 4}, (*world).lateCopy},
	{"lose message", [4]int{0, 0, 3, 2}, (*world).loseMessage},
	{"cut inbox", [4]int{0, 0, 1, 1}, (*world).cutInbox},
	{"deafen inbox", [4]int{0, 0, 1, 1}, (*world).deafen},
	{"freeze", [4]int{0, 1, 2, 2}, (*world).freeze},
	{"thaw", [4]int{0, 2, 2, 2}, (*world).thaw},
	{"crash", [4]int{0, 0, 1, 3}, (*world).crash},
	{"forget scripts", [4]int{0, 1, 1, 1}, (*world).forgetScripts},
	{"lose data", [4]int{0, 0, 0, 2}, (*world).loseData},
	{"force", [4]int{0, 0, 0, 2}, (*world).force},
	{"crowd", [4]int{4, 4, 4, 4}, (*world).crowd},
	{"bar", [4]int{0, 0, 3, 3}, (*world).bar},
	{"unbar", [4]int{0, 0, 1, 1}, (*world).unbar},
}

// fallback is tried where a step is not possible.
var fallback = []string{"execute", "deliver", "hear", "begin", "release", "age"}

// stepTable maps the lower part of a number to a step, by risk.
var stepTable = func() (tables [4][]int) {
	for risk := range tables {
		for i, s := range steps {
			for range s.weight[risk] {
				tables[risk] = append(tables[risk], i)
			}
		}
	}
	return tables
}()

func stepNamed(name string) int {
	for i, s := range steps {
		if s.name == name {
			return i
		}
	}
	panic(name)
}

const stepBase = 256 // a number is the choice of the step below it, and of its target above

// step takes the decision that a number stands for.
func (w *world) step(number uint32) {
	table := stepTable[w.setup.risk]
	kind, n := table[int(number%stepBase)%len(table)], int(number/stepBase)
	if !steps[kind].do(w, n) {
		for _, name := range fallback {
			if kind = stepNamed(name); steps[kind].do(w, n) {
				break
			}
		}
	}
	w.census.steps[kind]++
	w.rest()
}

func unlanded(f *flight) bool { return !f.landed && !f.orphan }
func landed(f *flight) bool   { return f.landed && !f.orphan }
func orphaned(f *flight) bool { return f.orphan && !f.landed }

func pick[T any](all []T, n int) (one T, ok bool) {
	if len(all) == 0 {
		return one, false
	}
	return all[n%len(all)], true
}

func (w *world) alive() (all []*process) {
	for _, p := range w.procs {
		if !p.dead {
			all = append(all, p)
		}
	}
	return all
}

// kept are the holds whose processes live and have not begun to release them.
func (w *world) kept() (all []*holding) {
	for _, h := range w.holds {
		if h.state == 0 && !h.by.dead && h.down == nil {
			all = append(all, h)
		}
	}
	return all
}

func (w *world) release(n int) bool {
	all := slices.DeleteFunc(w.kept(), func(h *holding) bool { return h.hangs })
	h, ok := pick(all, n)
	if ok {
		w.letGo(h)
	}
	return ok
}

func (w *world) letGo(h *holding) {
	h.state, h.released = 1, make(chan struct{})
	w.say("p%d releases %s (token %d)", h.by.index, h, h.token)
	go func() {
		defer close(h.released)
		h.result = h.hold.Release()
	}()
	synctest.Wait() // which of two speaks first for their session is up to the Go scheduler otherwise
}

func (w *world) downgrade(n int) bool {
	for i, all := 0, w.kept(); i < len(all); i++ {
		h := all[(n+i)%len(all)]
		if h.rw == nil || h.read || h.shares {
			continue
		}
		w.say("p%d downgrades %s", h.by.index, h)
		h.down, h.read, h.fell = make(chan error, 1), true, true
		ctx, stop := context.WithTimeout(context.Background(), w.setup.ttl)
		go func() {
			defer stop()
			h.down <- h.rw.Downgrade(ctx)
		}()
		return true
	}
	return false
}

func (w *world) cancel(n int) bool {
	var open []*wish
	for _, a := range w.calls {
		if !a.ended && !a.by.dead {
			open = append(open, a)
		}
	}
	a, ok := pick(open, n)
	if ok {
		w.say("p%d cancels: %s", a.by.index, a)
		a.stop()
	}
	return ok
}

func (w *world) stepExecute(n int) bool {
	f, ok := pick(w.fly(unlanded), n)
	if ok {
		w.execute(f)
	}
	return ok
}

func (w *world) stepDeliver(n int) bool {
	f, ok := pick(w.fly(landed), n)
	if ok {
		w.say("deliver to p%d the reply to %s", f.from.index, f.label)
		w.deliver(f)
	}
	return ok
}

func (w *world) stepHear(n int) bool {
	e, ok := pick(w.heard(), n)
	if ok {
		w.hand(e)
	}
	return ok
}

func (w *world) stepPump(int) bool { w.pump(); return true }

// write makes a holder, also one that has lost its hold, write to the fenced store.
func (w *world) write(n int) bool {
	var all []*holding
	for _, h := range w.holds {
		if !h.read && h.rw == nil || h.rw != nil && !h.read {
			all = append(all, h)
		}
	}
	h, ok := pick(all, n)
	if ok {
		w.storeWrite(h)
	}
	return ok
}

// tick lets a little time pass, up to the next thing that comes.
func (w *world) tick(n int) bool {
	d := []time.Duration{w.setup.ttl / 3, w.setup.ttl / 9, time.Millisecond, 7 * time.Millisecond}[n%4]
	if w.setup.risk == 0 {
		w.pump() // nothing is ever late
	}
	w.say("time passes, at most %v", d)
	w.pass(d + 13*time.Microsecond)
	return true
}

// stall lets time pass while nothing is delivered.
func (w *world) stall(n int) bool {
	d := w.setup.ttl * time.Duration(1+n%8) / 6
	w.say("nothing is delivered for %v", d)
	if d >= w.setup.ttl/3 {
		w.fair, w.faulty = false, true
	}
	virtual.Sleep(d + 17*time.Microsecond)
	return true
}

// age lets time pass while everything is delivered, except for those frozen.
func (w *world) age(n int) bool {
	d := w.setup.ttl * time.Duration(1+n%6) / 4
	w.say("%v pass, all is delivered", d)
	w.live(d)
	return true
}
