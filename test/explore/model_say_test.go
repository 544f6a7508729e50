package explore_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/relock-go/relock/internal/rig"
)

// draws takes the next part of the number that a step is made of, which is below its argument.
type draws func(below uint32) uint32

// A speaker is an actor of the model, the client that speaks for it, and the lock's kind.
type speaker struct {
	modelRequest
	number int // of the actor
	client string
	kind   string
}

// say draws a statement and makes it on both sides.
func (r *modelRun) say(n draws) (said string, got, modelled []any) {
	what, i := n(16), int(n(uint32(len(modelActors))))
	if holding := r.model.holding(); what >= 7 && len(holding) > 0 && n(4) > 0 {
		i = holding[i%len(holding)]
	}
	a := speaker{r.actor(i), i, modelClient(i), r.kind()}
	if what >= 7 && n(16) == 15 {
		a.client = modelClient(i + 1) // whose nonce it is not
	}
	if isShared(a.kind) && n(2) == 0 {
		a.mode = "r"
	}
	switch {
	case what < 7:
		return r.sayAcquire(a, n)
	case what < 10:
		return r.sayHold(a, n)
	case what < 11 && isShared(a.kind):
		return r.sayDowngrade(a, n)
	case what < 14:
		return r.sayRelease(a, n)
	case what < 15 && n(2) == 0:
		return r.sayDetach(a, n)
	case what < 15:
		return r.sayResume(speaker{r.actor(i), i, modelClient(i), a.kind}, n)
	}
	return r.sayForce(a, n)
}

func (r *modelRun) sayAcquire(a speaker, n draws) (said string, got, modelled []any) {
	if n(24) == 0 {
		a.kind = []string{"plain", "rw"}[n(2)]
	}
	echo := []int{0, 1, 0, 1, 2}[n(5)]
	requests := []modelRequest{r.place(a.modelRequest, n)}
	if other := (a.number + 3) % 8; n(4) == 0 && modelClient(other) == a.client {
		requests = append(requests, r.place(r.actor(other), n))
	}
	notAfter := r.micros + 1000*[]int64{10_000, 60_000, 10_000, 10_000, 10_000, 10_000, 0, 60_001}[n(8)]
	args := []any{rig.StoredKind(a.kind), notAfter, fmt.Sprint(600_000, " ", echo, " ", modelPrefix)}
	for _, q := range requests {
		counts := " 1 0 "
		if q.mode != "w" {
			counts = " 0 1 "
		}
		args = append(args, q.identity(a.client, q.owner), "o:"+q.owner, fmt.Sprint(q.op, counts, q.ttl, q.rest, " "), q.block, q.ttl+600_000, q.place)
	}
	if slices.ContainsFunc(requests, func(q modelRequest) bool { return q.rest != "" }) {
		args = append(args, "rests")
	}
	keys := keysOf(n)
	got = r.eval("acquire", keys, args...)
	modelled = r.model.acquire(a.kind, a.client, notAfter, echo, keys == 2, requests)
	return fmt.Sprint("acquire ", args, " keys ", keys), taken(got, requests), modelled
}

func (r *modelRun) sayHold(a speaker, n draws) (said string, got, modelled []any) {
	op, ttl, writes, reads, keys := int64(n(9)), int64(n(3))*modelTTL, int64(1+n(2)), int64(n(2)), 1+int(n(2))
	if isShared(a.kind) && n(2) == 0 {
		writes, reads = 0, reads+1
	}
	if a.mode == "s" {
		writes, reads = 0, writes
	}
	said = fmt.Sprint("hold ", a.nonce, " op ", op, " writes ", writes, " reads ", reads, " ttl ", ttl, " keys ", keys)
	got = r.eval("hold", keys, ttl, ttl+600_000, a.identity(a.client, a.owner), "o:"+a.owner, op, writes, reads)
	return said, got, r.model.hold(a.client, a.nonce, a.owner, op, writes, reads, ttl, keys == 2)
}

func (r *modelRun) sayDowngrade(a speaker, n draws) (said string, got, modelled []any) {
	op, reads, ttl := int64(n(9)), int64(1+n(2)), int64(n(2))*modelTTL
	said = fmt.Sprint("downgrade ", a.nonce, " op ", op, " reads ", reads)
	got = r.eval("downgrade", 2, modelIdentity(a.client, a.nonce, a.owner), op, reads, ttl, 600_000, modelPrefix)
	return said, got, r.model.downgrade(a.client, a.nonce, a.owner, op, reads, ttl)
}

func (r *modelRun) sayRelease(a speaker, n draws) (said string, got, modelled []any) {
	owner, until := a.owner, int64(0)
	if n(6) == 0 {
		owner = ""
	}
	if n(8) == 0 {
		until = r.micros/1000 + int64(n(3))*400
	}
	keys := keysOf(n)
	args := []any{a.identity(a.client, owner), "o:" + owner, until, "600000 " + modelPrefix}
	undone := n(4) == 0
	var served []string
	switch {
	case undone:
		args = append(args, 600_000, "undone")
	case n(3) == 0:
		for i, other := range modelActors {
			if i != a.number && modelClient(i) == a.client && n(2) == 0 {
				served = append(served, other.nonce)
			}
		}
		args = append(args, 600_000, "", strings.Join(served, " "))
		r.seen["served"] += len(served)
	}
	said = fmt.Sprint("release ", args, " keys ", keys)
	got = r.eval("release", keys, args...)
	modelled = r.model.release(a.client, a.nonce, owner, until, keys == 2, undone, served...)
	if len(got) == 1 {
		modelled = modelled[:1] // nobody waited: there is no more to say
	}
	return said, got, modelled
}

func (r *modelRun) sayForce(a speaker, n draws) (said string, got, modelled []any) {
	token := r.model.token
	if r.model.resting() > 0 && n(2) == 0 {
		a.owner, token = "", r.model.rests
	} else if g := r.model.grants[a.owner]; g != nil {
		token = g.low - int64(n(4)/3) // of the grant, or of none
	}
	got = r.eval("force", 2, a.owner, token, 0, 600_000, modelPrefix)
	return fmt.Sprint("force ", a.owner, " ", token), got, r.model.force(a.owner, token)
}

// keysOf is how many keys a script is told: one in a slot that migrates.
func keysOf(n draws) int { return 2 - int(n(5)/4) }

// place makes a a request under some number, with or without a ticket.
func (r *modelRun) place(a modelRequest, n draws) modelRequest {
	a.op, a.ttl = int64(1+n(8)), int64(1+n(2))*modelTTL
	if q := r.model.waiter(a.nonce); r.branches() && q != nil {
		a.mode = q.mode // no client changes that, and one that read would be let in late
	}
	switch n(5) {
	case 0:
		a.place = -1
	case 1, 2:
		a.place = r.micros - int64(n(3))*1000 // one that it may have had
		for r.branches() && slices.ContainsFunc(r.model.queue, func(q *storedWaiter) bool { return q.place == a.place }) {
			a.place-- // the lists of branches have equal places in another order, and no two waiters have
		}
		if q := r.model.waiter(a.nonce); q != nil {
			a.place = q.place
		}
	}
	if a.mode == "w" && r.rests() && n(3) == 0 {
		a.rest = []string{"+700", "+2500", "%1000", "%3000"}[n(4)]
	}
	return a
}

// inspect compares what the two scripts say that only read.
func (r *modelRun) inspect(now int64) string {
	if len(r.said)%8 != 0 {
		return ""
	}
	wantHolders, wantWaiters := r.model.holders(), r.model.waiters()
	info := r.eval("info", 2, 0, 250)
	var holders, waiters []string
	for i := 6; i+7 < len(info); i += 8 {
		holders = append(holders, fmt.Sprint(info[i:i+6]...))
	}
	page := r.eval("waiters", 2, 0, 500)
	for i := 2; i+3 < len(page); i += 4 {
		waiters = append(waiters, fmt.Sprint(page[i:i+3]...))
	}
	slices.Sort(holders)
	if !slices.Equal(holders, wantHolders) {
		return fmt.Sprintf("info names %q, the model %q", holders, wantHolders)
	}
	want := r.model.resting()
	if want > 0 {
		r.seen["resting"]++
	}
	if info[4] != want {
		return fmt.Sprintf("info says that the name rests for %v, the model %d", info[4], want)
	}
	if !slices.Equal(waiters, wantWaiters) || info[2] != int64(len(waiters)) {
		return fmt.Sprintf("waiters and info name %q and %v, the model %q", waiters, info[2], wantWaiters)
	}
	return ""
}

// holders are those who live, as info tells them, sorted. Whose hold has ended is named while it is in the way.
func (m *modelLock) holders() (all []string) {
	for owner := range m.grants {
		if g := m.grantOf(owner); len(g.sessions) > 0 {
			var holds, until int64
			for _, s := range g.sessions {
				holds, until = holds+s.writes+s.reads, max(until, s.expiry)
			}
			mode := g.mode
			if entered := len(g.via) > 0; mode == "w" && entered && g.sessions[0].writes == 0 {
				mode = "r"
			} else if !entered && owner == m.holder {
				mode = "w"
			}
			all = append(all, fmt.Sprint(owner, mode, holds, g.low, g.high, until-m.now))
		}
	}
	slices.Sort(all)
	return all
}

// waiters are those who live, as the script of that name tells them, in their order.
func (m *modelLock) waiters() (all []string) {
	for _, q := range m.queue {
		if q.expiry > m.now {
			all = append(all, fmt.Sprint(q.owner, q.mode, q.place))
		}
	}
	return all
}
