package check

import (
	"slices"

	"github.com/relock-go/relock/test/torture/history"
)

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
	if p.kind == "semaphore" {
		used := v.weight
		for _, s := range p.sessions {
			used += s.weight
		}
		return used <= semaphoreOf
	}
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
		p.token += (1 + p.r.Int64N(4)) * us
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
