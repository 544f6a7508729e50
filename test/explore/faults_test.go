package explore_test

import (
	"context"
	"io"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/virtual"
)

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
	virtual.Sleep(time.Millisecond + 7*time.Microsecond) // no server loses its data in no time
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
