package check

import (
	"fmt"

	"github.com/relock-go/relock/test/torture/history"
)

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
	e := history.Event{Kind: p.kind, Mode: mode, Owner: v.owner, TTL: p.ttl / ms}
	if p.kind == "semaphore" {
		v.read, v.weight = true, 1+p.r.Int64N(3)
		e.Mode, e.Weight, e.Of = "s", v.weight, semaphoreOf
	}
	p.emit(v, history.Call, e)
	p.in(p.hop(), func() { p.arrive(v) })
	if p.chance(10) {
		p.in(p.r.Int64N(30*ms), func() { p.cancel(v) })
	}
	if p.chance(2) {
		p.in(p.r.Int64N(30*ms), func() { p.die(v.worker) })
	}
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
