package explore_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing/synctest"
	"time"
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
	{"flow", [4]int{8, 4, 6, 6}, (*world).flow},
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
		h.down, h.read = make(chan error, 1), true
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

func (w *world) flow(int) bool { w.pump(); return true }

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
	time.Sleep(d + 17*time.Microsecond)
	return true
}

// age lets time pass while everything is delivered, except for those frozen.
func (w *world) age(n int) bool {
	d := w.setup.ttl * time.Duration(1+n%6) / 4
	w.say("%v pass, all is delivered", d)
	w.live(d)
	return true
}

func (w *world) loseRequest(n int) bool {
	f, ok := pick(w.fly(unlanded), n)
	if ok {
		w.say("lose %s", f.label)
		w.hurt("lost requests")
		w.answer(f, errCut)
	}
	return ok
}

func (w *world) loseReply(n int) bool {
	f, ok := pick(w.fly(landed), n)
	if ok {
		w.say("lose the reply to %s", f.label)
		w.hurt("lost replies")
		w.answer(f, []error{errCut, io.EOF}[n%2])
	}
	return ok
}

// copyOf puts a copy of a command on its way, to arrive late.
func (w *world) copyOf(f *flight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flights = append(w.flights, &flight{from: f.from, script: f.script, args: f.args, born: w.now(), orphan: true})
}

func (w *world) duplicate(n int) bool {
	f, ok := pick(w.fly(unlanded), n)
	if ok {
		w.say("a copy will follow of %s", f.label)
		w.hurt("duplicates")
		w.copyOf(f)
		w.execute(f)
	}
	return ok
}

// makeOrphan breaks the connection of a command that is on its way and goes on.
func (w *world) makeOrphan(n int) bool {
	f, ok := pick(w.fly(unlanded), n)
	if ok {
		w.say("p%d's connection breaks, it may arrive later: %s", f.from.index, f.label)
		w.hurt("late requests")
		w.copyOf(f)
		w.answer(f, errCut)
	}
	return ok
}

func (w *world) lateCopy(n int) bool {
	f, ok := pick(w.fly(orphaned), n)
	if !ok {
		return false
	}
	if n%8 == 7 {
		w.say("never arrives: %s", f.label)
		w.forget(f)
		return true
	}
	w.census.count("late copies executed")
	w.execute(f)
	return true
}

func (w *world) loseMessage(n int) bool {
	e, ok := pick(w.heard(), n)
	if !ok || payload(w.next(e)) == "subscribe" {
		return false // a connection loses its end, not something in the middle; a message, the server may lose
	}
	w.say("p%d does not hear %s", e.of.index, payload(w.take(e)))
	w.hurt("lost messages")
	return true
}

func (w *world) openEars(n int) (*ear, bool) {
	var all []*ear
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.procs {
		for _, e := range p.ears {
			if !p.dead && !e.closed && !e.deaf {
				all = append(all, e)
			}
		}
	}
	return pick(all, n)
}

func (w *world) cutInbox(n int) bool {
	e, ok := w.openEars(n)
	if ok {
		w.say("the inbox of p%d loses its connection", e.of.index)
		w.hurt("cut inboxes")
		e.cut()
	}
	return ok
}

func (w *world) deafen(n int) bool {
	e, ok := w.openEars(n)
	if ok {
		w.say("the inbox of p%d is half open from now on", e.of.index)
		w.hurt("half-open inboxes")
		w.dumb = w.dumb || !e.acked
		w.mu.Lock()
		e.deaf, e.waits = true, nil
		w.mu.Unlock()
	}
	return ok
}

func (w *world) freeze(n int) bool {
	p, ok := pick(w.alive(), n)
	if !ok || p.frozen {
		return false
	}
	w.say("p%d is cut off", p.index)
	w.hurt("pauses")
	w.setFrozen(p, true)
	return true
}

func (w *world) setFrozen(p *process, frozen bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.frozen = frozen
}

func (w *world) thaw(n int) bool {
	for i := range w.procs {
		if p := w.procs[(n+i)%len(w.procs)]; p.frozen && !p.dead {
			w.say("p%d goes on", p.index)
			w.setFrozen(p, false)
			return true
		}
	}
	return false
}

func (w *world) crash(n int) bool {
	all := w.alive()
	if len(all) < 2 {
		return false
	}
	p, _ := pick(all, n)
	w.say("p%d dies", p.index)
	w.hurt("crashes")
	w.setFrozen(p, false)
	for _, f := range w.fly(unlanded) {
		if f.from == p && n%2 == 0 {
			w.copyOf(f)
		}
	}
	w.kill(p, n/4%2 == 1)
	if len(w.procs) < 6 {
		w.addProcess()
	}
	return true
}

func (w *world) forgetScripts(int) bool {
	w.say("the server forgets its scripts")
	w.census.count("script flushes")
	w.known = map[string]bool{}
	return true
}

// forgiven allows two holders for as long as those before can trust their holds.
func (w *world) forgive(name string) {
	w.amnesty[name] = w.now() + 2*w.setup.ttl
	w.fair = false
}

func (w *world) loseData(int) bool {
	w.say("the server loses all data")
	w.hurt("flushes")
	w.srv.FlushAll()
	time.Sleep(time.Millisecond + 7*time.Microsecond) // no server loses its data in no time
	for _, name := range w.names {
		w.forgive(name)
	}
	return true
}

func (w *world) force(n int) bool {
	p, ok := pick(w.alive(), n)
	if !ok {
		return false
	}
	w.remove(p, w.names[n/4%len(w.names)])
	return true
}

// remove is a ForceUnlock by a process.
func (w *world) remove(p *process, name string) {
	w.say("p%d forces %s", p.index, name)
	w.hurt("forced unlocks")
	ctx, stop := context.WithTimeout(context.Background(), w.setup.ttl)
	w.amnesty[name] = w.now() + 4*w.setup.ttl
	go func() {
		defer stop()
		_, _ = p.client.NewLock(name).ForceUnlock(ctx)
	}()
	synctest.Wait()
}

// hurt counts a fault.
func (w *world) hurt(fault string) {
	w.census.count(fault)
	w.faulty, w.fair = true, false
}
