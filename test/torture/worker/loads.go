package worker

import (
	"context"
	"fmt"
	"time"
)

// order is that of the workloads' names, so that actors are numbered alike in every run.
var order = []string{"plain", "fair", "reentrant", "rw", "try", "storm", "long", "mixed", "crowd", "shared", "upset", "pair", "permits", "buffer", "handed", "once", "several"}

// Loads are all workloads, with how many actors each has in a worker.
func Loads() map[string]int {
	return map[string]int{"plain": 6, "fair": 4, "reentrant": 3, "rw": 5, "try": 2, "storm": 1, "long": 3, "mixed": 3, "crowd": 1, "shared": 3, "upset": 2, "pair": 1, "permits": 3, "buffer": 4, "handed": 3, "once": 2, "several": 2}
}

var loads = map[string]func(ctx context.Context, a *actor){
	"plain": plain, "fair": fair, "reentrant": reentrant, "rw": readWrite, "try": tries, "storm": storm, "long": long, "mixed": mixed,
	"crowd": crowd, "shared": sharing, "upset": upsets, "pair": pair, "permits": permits, "buffer": buffer, "handed": handed, "once": once, "several": several,
}

// Lock is one of the locks that all workers share.
type Lock struct {
	Name, Kind string
	TTL        time.Duration
	Permits    int // of a semaphore
}

// pairs is how many locks the pairs of all workers have.
const pairs = 3

// severals is how many locks there are of which some are taken together.
const severals = 12

// Locks are the names under a deployment.
func Locks() (all []Lock) {
	for i := range 3 {
		all = append(all,
			Lock{fmt.Sprintf("plain%d", i), "plain", 500 * time.Millisecond, 0},
			Lock{fmt.Sprintf("fair%d", i), "fair", 500 * time.Millisecond, 0})
	}
	for i := range 2 {
		all = append(all,
			Lock{fmt.Sprintf("reentrant%d", i), "plain", 400 * time.Millisecond, 0},
			Lock{fmt.Sprintf("rw%d", i), "rw", 600 * time.Millisecond, 0},
			Lock{fmt.Sprintf("fairrw%d", i), "fair rw", 600 * time.Millisecond, 0},
			Lock{fmt.Sprintf("try%d", i), "plain", 300 * time.Millisecond, 0})
	}
	for i := range pairs {
		all = append(all, Lock{fmt.Sprintf("pair%d", i), "plain", 500 * time.Millisecond, 0})
	}
	for i := range severals {
		all = append(all, Lock{fmt.Sprintf("several%d", i), []string{"plain", "fair"}[i%2], 400 * time.Millisecond, 0})
	}
	return append(all,
		Lock{"crowd0", "plain", 600 * time.Millisecond, 0}, Lock{"crowd1", "rw", 600 * time.Millisecond, 0},
		Lock{"shared0", "plain", 400 * time.Millisecond, 0}, Lock{"shared1", "rw", 400 * time.Millisecond, 0},
		Lock{"upset0", "plain", 400 * time.Millisecond, 0},
		Lock{"refair0", "fair", 500 * time.Millisecond, 0},
		Lock{"storm0", "plain", 300 * time.Millisecond, 0}, Lock{"storm1", "fair", 300 * time.Millisecond, 0},
		Lock{"long0", "plain", 300 * time.Millisecond, 0}, Lock{"long1", "fair", 300 * time.Millisecond, 0},
		Lock{"long2", "rw", 300 * time.Millisecond, 0}, Lock{"long3", "fair rw", 300 * time.Millisecond, 0},
		Lock{"permits0", "semaphore", 500 * time.Millisecond, 5}, Lock{"permits1", "semaphore", 300 * time.Millisecond, 3},
		Lock{"buffer0", "plain", 500 * time.Millisecond, 0}, Lock{"buffer1", "fair", 500 * time.Millisecond, 0},
		Lock{"handed0", "plain", 400 * time.Millisecond, 0}, Lock{"handed1", "fair", 500 * time.Millisecond, 0},
		Lock{"once0", "plain", 300 * time.Millisecond, 0}, Lock{"once1", "plain", 300 * time.Millisecond, 0})
}

var terms = func() map[string]Lock {
	all := map[string]Lock{}
	for _, l := range Locks() {
		all[l.Name] = l
	}
	return all
}()

// on picks one of n locks with a common beginning.
func (a *actor) on(base string, n int) (string, *handles) {
	return a.handle(terms[fmt.Sprintf("%s%d", base, a.rand.IntN(n))])
}

// patiently bounds most waits, and leaves some unbounded.
func (a *actor) patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.rand.IntN(3) == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(500+a.rand.IntN(5000))*time.Millisecond)
}

// shortly is how long most holds last.
func (a *actor) shortly() time.Duration {
	switch n := a.rand.IntN(100); {
	case n < 70:
		return 0
	case n < 97:
		return time.Duration(a.rand.IntN(2000)) * time.Microsecond
	}
	return time.Duration(a.rand.IntN(20)) * time.Millisecond
}

// section is a critical section: an effect, some time, and mostly another effect.
func (a *actor) section(h *held, d time.Duration) {
	a.effect(h)
	if d > 0 {
		a.keep(h, d)
		if a.rand.IntN(4) > 0 {
			a.effect(h)
		}
	}
}

func (a *actor) exclusive(ctx context.Context, name string, hs *handles, d time.Duration) {
	ctx, cancel := a.patiently(ctx)
	defer cancel()
	if h := a.acquire(ctx, name, hs, try{}); h != nil {
		a.section(h, d)
		a.release(h)
	}
}

func plain(ctx context.Context, a *actor) {
	name, hs := a.on("plain", 3)
	a.exclusive(ctx, name, hs, a.shortly())
	a.rest(8 * time.Millisecond)
}

func fair(ctx context.Context, a *actor) {
	name, hs := a.on("fair", 3)
	a.exclusive(ctx, name, hs, a.shortly())
	a.rest(8 * time.Millisecond)
}

// long holds through renewals, and past a lease that a fault keeps from it.
func long(ctx context.Context, a *actor) {
	n := 4
	name, hs := a.on("long", n)
	d := time.Duration(float64(hs.ttl) * (0.3 + 1.5*a.rand.Float64()))
	t := try{read: hs.read != nil && a.rand.IntN(3) > 0}
	ctx, cancel := a.patiently(ctx)
	defer cancel()
	if h := a.acquire(ctx, name, hs, t); h != nil {
		a.section(h, d)
		a.release(h)
	}
	a.rest(20 * time.Millisecond)
}

// reentrant nests holds of a named owner. Some names are those of several
// actors, in several processes: their holds join.
func reentrant(ctx context.Context, a *actor) {
	name, hs := a.on("reentrant", 2)
	if a.rand.IntN(3) == 0 {
		name, hs = a.on("refair", 1)
	}
	owner := a.name
	if a.rand.IntN(2) == 0 {
		owner = fmt.Sprintf("shared-%d", a.rand.IntN(4))
	}
	ctx, cancel := a.patiently(ctx)
	defer cancel()
	a.nest(ctx, name, hs, owner, 1+a.rand.IntN(3))
	a.rest(10 * time.Millisecond)
}

func (a *actor) nest(ctx context.Context, name string, hs *handles, owner string, depth int) {
	h := a.acquire(ctx, name, hs, try{owner: owner})
	if h == nil {
		return
	}
	a.section(h, a.shortly())
	if depth > 1 {
		a.nest(ctx, name, hs, owner, depth-1)
	}
	if a.rand.IntN(20) == 0 {
		a.section(h, time.Duration(a.rand.Int64N(int64(hs.ttl))))
	}
	a.release(h)
}

func readWrite(ctx context.Context, a *actor) {
	base := "rw"
	if a.rand.IntN(2) == 0 {
		base = "fairrw"
	}
	name, hs := a.on(base, 2)
	ctx, cancel := a.patiently(ctx)
	defer cancel()
	t := try{read: a.rand.IntN(10) < 7}
	if a.rand.IntN(4) == 0 {
		t.owner = a.name
	}
	h := a.acquire(ctx, name, hs, t)
	if h == nil {
		return
	}
	a.section(h, a.shortly())
	switch {
	case !t.read && t.owner != "" && a.rand.IntN(2) == 0:
		if r := a.acquire(ctx, name, hs, try{owner: t.owner, read: true}); r != nil {
			a.section(r, a.shortly())
			a.release(r)
		}
	case !t.read && a.rand.IntN(2) == 0:
		a.downgrade(ctx, hs, h)
	}
	a.release(h)
	a.rest(10 * time.Millisecond)
}

func tries(ctx context.Context, a *actor) {
	name, hs := a.on("try", 2)
	t := try{once: true}
	if a.rand.IntN(2) == 0 {
		t.wait = time.Duration(a.rand.IntN(40)) * time.Millisecond
	}
	if h := a.acquire(ctx, name, hs, t); h != nil {
		a.section(h, a.shortly())
		a.release(h)
	}
	a.rest(6 * time.Millisecond)
}

// storm gives up nearly as soon as it has asked. What is given up before it was
// answered stays in Redis for seconds, and each step on that lock reads it: a
// storm without rests would measure that, and nothing else.
func storm(ctx context.Context, a *actor) {
	name, hs := a.on("storm", 2)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(a.rand.IntN(20_000))*time.Microsecond)
	defer cancel()
	if h := a.acquire(ctx, name, hs, try{}); h != nil {
		a.section(h, a.shortly())
		a.release(h)
	}
	a.rest(20 * time.Millisecond)
}

// mixed does a bit of all, on the same locks.
func mixed(ctx context.Context, a *actor) {
	all := []func(context.Context, *actor){plain, fair, reentrant, readWrite, tries, storm}
	all[a.rand.IntN(len(all))](ctx, a)
}
