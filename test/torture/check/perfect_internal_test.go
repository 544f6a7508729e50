package check

import (
	"container/heap"
	"math/rand/v2"
	"slices"

	"github.com/relock-go/relock/test/torture/history"
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
	weight   int64
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
