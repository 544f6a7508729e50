package check

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/relock-go/relock/torture/history"
)

// A perfect is a lock without a fault, on a server with or without them, and its
// users: whatever it writes is a correct history.
type perfect struct {
	r     *rand.Rand
	kind  string
	named bool // owners have names, and re-enter
	wild  bool // with faults that allow two holders
	ttl   int64

	now     int64
	todo    agenda
	events  []history.Event
	token   int64
	ids     int64
	workers []int
	nextW   int

	sessions []*visit // what Redis has
	queue    []*visit
	newest   int64 // of the store
}

// A visit is a call and its hold.
type visit struct {
	id       int64
	worker   int
	owner    string
	read     bool
	dead     bool // its process is gone
	waiting  bool
	token    int64
	deadline int64
	until    int64
	over     bool // for its holder
	frozen   bool
}

type job struct {
	at int64
	do func()
}

type agenda []job

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(job)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	j := (*a)[last]
	*a = (*a)[:last]
	return j
}

func (p *perfect) in(d int64, do func()) { heap.Push(&p.todo, job{p.now + d, do}) }

// hop is the way to Redis, or back.
func (p *perfect) hop() int64 { return 50_000 + p.r.Int64N(ms) }

func (p *perfect) chance(percent int) bool { return p.r.IntN(100) < percent }

func (p *perfect) emit(v *visit, what history.What, e history.Event) {
	if v != nil {
		if v.dead {
			return
		}
		e.Worker, e.ID, e.Lock = v.worker, v.id, lock
	}
	e.What = what
	if e.T == 0 {
		e.T = p.now
	}
	p.events = append(p.events, e)
}

// simulate makes a history of some calls.
func simulate(seed uint64, kind string, named, wild bool, calls int) *tale {
	p := &perfect{r: rand.New(rand.NewPCG(seed, 7)), kind: kind, named: named, wild: wild, ttl: 1000 * ms, now: start, workers: []int{1, 2, 3, 4}, nextW: 5}
	at := int64(0)
	for range calls {
		at += p.r.Int64N(12 * ms)
		p.in(at, p.call)
		if p.chance(2) {
			at += p.r.Int64N(1500 * ms)
		}
	}
	if wild {
		for range 3 {
			p.in(p.r.Int64N(at), p.calamity)
		}
	}
	for p.todo.Len() > 0 {
		j := heap.Pop(&p.todo).(job)
		p.now = j.at
		j.do()
	}
	slices.SortStableFunc(p.events, func(a, b history.Event) int { return compare(a.T, b.T) })
	return &tale{kind: kind, events: p.events}
}

func (p *perfect) call() {
	p.ids++
	v := &visit{id: p.ids, worker: p.workers[p.r.IntN(len(p.workers))], waiting: true}
	v.read = (p.kind == "rw" || p.kind == "fair rw") && p.chance(60)
	if p.named && p.chance(70) {
		v.owner = string(rune('a' + p.r.IntN(3)))
	}
	mode := "w"
	if v.read {
		mode = "r"
	}
	p.emit(v, history.Call, history.Event{Kind: p.kind, Mode: mode, Owner: v.owner, TTL: p.ttl / ms})
	p.in(p.hop(), func() { p.arrive(v) })
	if p.chance(10) {
		p.in(p.r.Int64N(30*ms), func() { p.cancel(v) })
	}
	if p.chance(2) {
		p.in(p.r.Int64N(30*ms), func() { p.die(v.worker) })
	}
}

func (p *perfect) cancel(v *visit) {
	if !v.waiting {
		return
	}
	v.waiting = false
	p.queue = slices.DeleteFunc(p.queue, func(w *visit) bool { return w == v })
	p.in(p.hop(), func() { p.emit(v, history.Failed, history.Event{Err: "ctx"}) })
	p.settle()
}

func (p *perfect) die(worker int) {
	i := slices.Index(p.workers, worker)
	if i < 0 {
		return
	}
	p.emit(nil, history.Died, history.Event{Worker: worker})
	p.workers[i] = p.nextW
	p.nextW++
	kill := func(v *visit) {
		if v.worker == worker {
			v.dead = true
		}
	}
	// Also what is on its way, as what that does then is not seen any more.
	for _, v := range append(slices.Clone(p.sessions), p.queue...) {
		kill(v)
	}
	p.queue = slices.DeleteFunc(p.queue, func(v *visit) bool { return v.dead })
	p.settle()
}

func (p *perfect) gone(v *visit) bool { return v.dead || !slices.Contains(p.workers, v.worker) }

func (p *perfect) arrive(v *visit) {
	if !v.waiting {
		return
	}
	if p.gone(v) {
		v.dead = true
		if p.chance(50) {
			return
		}
	}
	joins, upgrade := p.joins(v)
	switch {
	case upgrade:
		v.waiting = false
		p.in(p.hop(), func() { p.emit(v, history.Failed, history.Event{Err: "upgrade"}) })
	case joins || p.free(v) && (len(p.queue) == 0 || p.kind == "plain" && p.chance(30)):
		p.grant(v)
	case v.dead:
	default:
		p.queue = append(p.queue, v)
		p.in(p.hop(), func() {
			if v.waiting && !p.gone(v) {
				p.emit(v, history.Queued, history.Event{})
			}
		})
	}
}

func (p *perfect) joins(v *visit) (joins, upgrade bool) {
	own, writes := false, false
	for _, s := range p.sessions {
		if v.owner != "" && s.owner == v.owner {
			own, writes = true, writes || !s.read
		}
	}
	return own && (v.read || writes), own && !v.read && !writes
}

func (p *perfect) free(v *visit) bool {
	for _, s := range p.sessions {
		if (v.owner == "" || s.owner != v.owner) && (!s.read || !v.read) {
			return false
		}
	}
	return true
}

func (p *perfect) settle() {
	for len(p.queue) > 0 {
		v := p.queue[0]
		if joins, upgrade := p.joins(v); !joins && (upgrade || !p.free(v)) {
			return
		}
		p.queue = p.queue[1:]
		p.grant(v)
	}
}

func (p *perfect) grant(v *visit) {
	v.waiting = false
	v.token = 0
	for _, s := range p.sessions {
		if v.owner != "" && s.owner == v.owner {
			v.token = s.token
		}
	}
	if v.token == 0 {
		p.token += 1 + p.r.Int64N(4)
		v.token = p.token
	}
	p.sessions = append(p.sessions, v)
	p.lease(v)
	p.in(p.hop(), func() {
		if p.gone(v) {
			v.dead = true
			return
		}
		p.emit(v, history.Acquired, history.Event{Token: v.token, Until: v.until})
		p.live(v)
	})
}

// lease gives a session a new deadline, and its holder a trust that ends before it.
func (p *perfect) lease(v *visit) {
	v.deadline = p.now + p.ttl
	v.until = v.deadline - 15*ms
	p.in(p.ttl, func() { p.expire(v) })
}

func (p *perfect) has(v *visit) bool { return slices.Contains(p.sessions, v) }

func (p *perfect) expire(v *visit) {
	if p.now >= v.deadline && p.has(v) {
		p.remove(v)
	}
}

func (p *perfect) remove(v *visit) {
	p.sessions = slices.DeleteFunc(p.sessions, func(w *visit) bool { return w == v })
	p.settle()
}

// live decides how a hold is used, and ends.
func (p *perfect) live(v *visit) {
	p.in(p.r.Int64N(2*ms), func() { p.effect(v) })
	long := 1 + p.r.Int64N(10*ms)
	switch n := p.r.IntN(100); {
	case n < 3:
		long = p.r.Int64N(2500 * ms)
		p.in(p.ttl/3, func() { p.renew(v) })
	case n < 6:
		p.in(long, func() { p.freeze(v) })
		return
	case n < 8:
		p.in(long, func() { p.die(v.worker) })
	case n < 20 && !v.read && (p.kind == "rw" || p.kind == "fair rw"):
		p.in(long/2, func() { p.downgrade(v) })
	}
	p.in(long, func() { p.release(v) })
}

func (p *perfect) renew(v *visit) {
	if v.over || p.gone(v) || !p.has(v) {
		return
	}
	p.lease(v)
	until := v.until
	p.in(p.hop(), func() {
		if !v.over && !p.gone(v) {
			p.emit(v, history.Trusted, history.Event{Until: until})
		}
	})
	p.in(p.ttl/3, func() { p.renew(v) })
}

func (p *perfect) downgrade(v *visit) {
	if v.over || p.gone(v) || !p.has(v) {
		return
	}
	p.emit(v, history.Downgrade, history.Event{})
	p.in(p.hop()/10, func() {
		v.read = true
		p.settle()
	})
}

func (p *perfect) freeze(v *visit) {
	if v.over || p.gone(v) {
		return
	}
	long := p.r.Int64N(2500 * ms)
	v.frozen = true
	p.emit(nil, history.Fault, history.Event{Worker: -1, Fault: history.StopWorker, On: fmt.Sprint("worker ", v.worker), Until: p.now + long})
	p.in(long, func() {
		v.frozen = false
		p.effect(v)
		p.release(v)
	})
}

func (p *perfect) effect(v *visit) {
	if p.gone(v) || v.frozen {
		return
	}
	e := history.Event{Token: v.token, Owner: v.owner, Mode: "w"}
	if v.read {
		e.Mode = "r"
	}
	if v.token < p.newest {
		e.Err = "stale"
	} else if !v.read {
		p.newest = v.token
	}
	p.emit(v, history.Effect, e)
}

// release is how a user ends a hold, if it is not lost by then.
func (p *perfect) release(v *visit) {
	if v.over || p.gone(v) || v.frozen {
		return
	}
	v.over = true
	if p.now >= v.until {
		p.emit(v, history.Lost, history.Event{})
		p.emit(v, history.Releasing, history.Event{})
		p.emit(v, history.Released, history.Event{Err: "lost"})
		return
	}
	p.emit(v, history.Releasing, history.Event{})
	if p.chance(3) {
		p.in(200*ms, func() { p.finish(v, "unconfirmed") })
		return
	}
	p.in(p.hop(), func() {
		why := ""
		if !p.has(v) {
			why = "lost"
		}
		p.remove(v)
		p.in(p.hop(), func() { p.finish(v, why) })
	})
}

func (p *perfect) finish(v *visit, why string) {
	if !p.gone(v) {
		p.emit(v, history.Released, history.Event{Err: why})
	}
}

// calamity is a fault for which two may hold.
func (p *perfect) calamity() {
	e := history.Event{Worker: -1, Fault: history.FlushAll, On: "one"}
	if p.chance(50) {
		e.Fault, e.Lock = history.ForceUnlock, lock
	}
	e.Until = p.now + p.hop()
	p.emit(nil, history.Fault, e)
	for _, v := range p.sessions {
		p.in(p.r.Int64N(p.ttl/3), func() {
			if v.over || p.gone(v) || v.frozen {
				return
			}
			v.over = true
			p.emit(v, history.Lost, history.Event{})
			p.emit(v, history.Releasing, history.Event{})
			p.emit(v, history.Released, history.Event{Err: "lost"})
		})
	}
	p.sessions = nil
	p.settle()
}
