package explore_test

import (
	"context"
	"strings"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// finish ends a schedule: faults stop, everybody who waits gets the lock in turn,
// and nothing is left.
func (w *world) finish() {
	w.say("-- faults end")
	for _, p := range w.procs {
		w.setFrozen(p, false)
	}
	for _, f := range w.fly(orphaned) {
		w.execute(f)
	}
	w.pump()
	w.worked()
	w.serve()
	w.counts()
	w.drain()
	w.close()
}

// bound is how long a live waiter may wait for a lock that nobody holds any more,
// once faults have ended: the lease of a holder that is gone, and the time in
// which an inbox that is deaf is noticed and replaced.
func (w *world) bound() time.Duration {
	if w.setup.risk == 0 {
		return 50 * time.Millisecond // nothing has gone wrong: the message does it
	}
	d := 4*w.setup.ttl + 5*time.Second
	if w.dumb {
		d += 10 * time.Second // which it waits for the acknowledgement
	}
	return d
}

// serve lets every holder release until nobody waits.
func (w *world) serve() {
	since := w.now()
	for w.wrong == "" {
		w.pump()
		kept, waiting := w.kept(), w.waiting()
		busy := false
		for _, h := range w.holds {
			busy = busy || (h.state == 1 || h.down != nil) && !h.by.dead
		}
		if len(kept) == 0 && waiting == 0 && !busy {
			return
		}
		for _, h := range kept {
			w.letGo(h)
			since = w.now()
		}
		if len(kept) > 0 {
			continue
		}
		if w.now()-since > w.bound() {
			w.violate("lost wake-up: %d calls still wait %v after faults ended and the last hold was released", waiting, w.now()-since)
			return
		}
		w.pass(w.setup.ttl/3 + 19*time.Microsecond)
	}
}

func (w *world) waiting() (n int) {
	for _, a := range w.calls {
		if !a.ended && !a.by.dead {
			n++
		}
	}
	return n
}

// counts checks that once every lease of the dead is over, nobody holds or waits.
func (w *world) counts() {
	if w.wrong != "" {
		return
	}
	w.live(2*w.setup.ttl + 29*time.Microsecond)
	now := time.Now().UnixMilli()
	for name, s := range w.look() {
		if n := len(s.live(now)); n > 0 {
			w.violate("%d owners hold %s in redis though every hold was released: %v", n, name, s.live(now))
		}
		for _, q := range s.queue {
			if q.expiry > now {
				w.violate("%s still waits for %s in redis", q.nonce, name)
			}
		}
	}
}

// drain waits until the clients have forgotten all sessions.
func (w *world) drain() {
	const patience = 2*2903*2*time.Millisecond + 20*time.Second
	for end := w.now() + patience; w.wrong == ""; {
		w.pump()
		left := ""
		for _, p := range w.alive() {
			if r := rig.Remains(p.client); r != "" {
				left = r
			}
		}
		if left == "" {
			return
		}
		if w.now() > end {
			w.violate("a client still keeps %s", left)
		}
		w.pass(time.Second)
	}
}

// close ends everything that the world has started, whatever state it is in, and
// looks what is left in Redis.
func (w *world) close() {
	w.endAll()
	if w.wrong != "" {
		return
	}
	virtual.Sleep(3 * w.setup.ttl)
	for _, k := range w.srv.Direct().Keys() {
		// What the dead leave in a queue lasts until somebody comes, or for TokenKeep.
		if !w.faulty && !strings.HasPrefix(k, "relock:h:") {
			w.violate("%s is left", k)
		}
	}
	virtual.Sleep(2 * time.Minute)
	if left := w.srv.Direct().Keys(); len(left) > 0 {
		w.violate("left in redis after TokenKeep: %v", left)
	}
	_ = w.wire.Ping(context.Background())
}

// endAll ends the processes and their calls, and waits until they are gone.
func (w *world) endAll() {
	for _, a := range w.calls {
		a.stop()
	}
	for _, p := range w.alive() {
		w.kill(p, false)
	}
	for _, f := range w.fly(func(f *flight) bool { return !f.orphan }) {
		w.answer(f, errCut)
	}
	for _, p := range w.procs {
		<-p.closed
		_ = p.rdb.Close()
		for _, e := range p.ears {
			e.cut()
		}
	}
	for _, a := range w.calls {
		<-a.done
	}
	for _, h := range w.holds {
		if h.state == 1 {
			<-h.released
		}
	}
	synctest.Wait()
}
