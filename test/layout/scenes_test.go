package layout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
	"github.com/relock-go/relock/lua"
)

const (
	sceneTTL   = 30 * time.Second
	sceneKeep  = 10 * time.Minute
	sceneInbox = "relock:inbox:"
	sceneBegan = 1_795_442_740_000_000 // in µs
)

// A scene is a row of calls, each on what the one before has left. Its clients hear.
type scene struct {
	b      *bench
	name   string
	now    int64
	stored map[string]state
	all    *[]vector
}

var sceneClients = []string{"client-1AAAAAAAAAAAAAA", "client-2AAAAAAAAAAAAAA"}

// says makes the call that client i encodes, a second after the one before.
func (s *scene) says(what string, call transport.Call) vector {
	s.b.t.Helper()
	s.now += 1_000_000
	v := vector{
		Case: s.name + ": " + what, Script: call.Script.Name, Now: s.now, Hears: []string{}, Before: s.stored,
		Keys: call.Keys, Args: []string{},
	}
	for _, client := range sceneClients {
		v.Hears = append(v.Hears, sceneInbox+client)
	}
	for _, arg := range call.Args {
		v.Args = append(v.Args, fmt.Sprint(arg))
	}
	s.b.play(&v)
	s.stored = v.After
	*s.all = append(*s.all, v)
	return v
}

// notAfter is what a client says in a call that is made next.
func (s *scene) notAfter() int64 { return s.now/1000 + 11_000 }

func nonce(letter byte) string { return strings.Repeat(string(letter), 22) }

// anonymous is the owner of an acquisition without one.
func anonymous(letter byte) string { return "~owner:" + string(letter) }

func asks(letter byte) wire.Request {
	return wire.Request{Nonce: nonce(letter), Op: 1, Owner: anonymous(letter), TTL: sceneTTL, Block: 1}
}

func session(keys key.Keys, letter byte) wire.Session {
	return wire.Session{Hash: keys.Hash, Nonce: nonce(letter), Owner: anonymous(letter)}
}

// record plays all scenes.
func record(t *testing.T) (all []vector) {
	t.Helper()
	b := newBench(t)
	keys := key.For("relock", "orders/9")
	for _, one := range []struct {
		name string
		play func(s *scene, a, b *wire.Encoder, keys key.Keys)
	}{
		{"plain", plainScene},
		{"late", lateScene},
		{"owner", ownerScene},
		{"fair", fairScene},
		{"readers", readersScene},
		{"semaphore", semaphoreScene},
		{"rest", restScene},
		{"condition", conditionScene},
		{"ticket", ticketScene},
		{"client", clientScene},
	} {
		s := &scene{b: b, name: one.name, now: sceneBegan, stored: map[string]state{}, all: &all}
		one.play(s, wire.NewEncoder(sceneClients[0], sceneInbox, sceneTTL, sceneKeep), wire.NewEncoder(sceneClients[1], sceneInbox, sceneTTL, sceneKeep), keys)
	}
	return all
}

// states returns the call by which a session states how many write holds it has.
func states(e *wire.Encoder, s wire.Session, op int64, writes uint32, ttl time.Duration) transport.Call {
	return e.Renew(ttl, []wire.Renewal{{Session: s, Op: op, Writes: writes}})
}

func plainScene(s *scene, a, b *wire.Encoder, keys key.Keys) {
	s.says("a free lock is taken", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('a')))
	s.says("the same request again", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('a')))
	attempt := asks('b')
	attempt.Place = room.PlaceNone
	s.says("an attempt is busy", b.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, attempt))
	s.says("a release of what never arrived", b.Release(keys, session(keys, 'b'), 0, 0, false))
	queued := s.says("a request queues and hears an echo", b.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Prove, asks('c')))
	beat := asks('c')
	beat.Op, beat.Place = 2, queued.Reply.([]any)[3].(int64)
	s.says("a heartbeat keeps its place", b.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, beat))
	s.says("a request queues behind it", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('d')))
	s.says("a renewal", states(a, session(keys, 'a'), 2, 1, sceneTTL))
	s.says("an old statement", states(a, session(keys, 'a'), 1, 2, 0))
	s.says("who holds", a.Info(keys, 0, 250))
	s.says("who waits", a.Waiters(keys, 0, 500))
	s.says("another kind is in use", a.Acquire(keys, wire.KindFair, s.notAfter(), wire.Quiet, asks('e')))
	s.says("the lock is handed over", a.Release(keys, session(keys, 'a'), 0, 0, false))
	s.says("the same release again", a.Release(keys, session(keys, 'a'), 0, 0, false))
	s.says("not held any more", states(a, session(keys, 'a'), 3, 1, sceneTTL))
	token := s.stored[keys.Hash].Hash["token"]
	var instant int64
	_, err := fmt.Sscan(token, &instant)
	rig.Must(s.b.t, err)
	s.says("a counter is raised", b.Raise(session(keys, 'c'), instant+5_000_000, sceneTTL))
	s.says("an operator names a token of nobody", a.Force(keys, anonymous('c'), wire.Token(instant, anonymous('c')), 0))
	s.says("an operator removes a holder", a.Force(keys, anonymous('c'), wire.Token(instant+5_000_000, anonymous('c')), 0))
	s.says("the last holder leaves", a.Release(keys, session(keys, 'd'), 0, 0, false))
	togetherScene(s, a, keys)
}

// togetherScene goes on where plainScene ends.
func togetherScene(s *scene, a *wire.Encoder, keys key.Keys) {
	block := asks('f')
	block.Block = 129
	s.says("a free lock is taken with a block of tokens", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, block))
	other := key.For("relock", "orders/10")
	asked := a.Acquire(other, wire.KindPlain, s.notAfter(), wire.Quiet, asks('g'))
	s.says("a release and a request together", transport.Call{
		Script: script.MustLoad(lua.FS, "usual"), Keys: []string{keys.Hash, other.Hash},
		Args: append([]any{1, nonce('f') + " " + sceneClients[0] + " o:" + anonymous('f'), "o:" + anonymous('f'), asked.Args[0], asked.Args[6], asked.Args[7]},
			asked.Args[1], asked.Args[3], asked.Args[4], asked.Args[5]),
	})
	s.stored = map[string]state{other.Hash: {Hash: map[string]string{"kind": "plain.2", "holder": "of a new form", "token": "1000"}, Life: lifeStep}}
	s.says("another layout is in use", a.Acquire(other, wire.KindPlain, s.notAfter(), wire.Quiet, asks('h')))
	s.says("a release in another layout", a.Release(other, session(other, 'g'), 0, 0, false))
}

func lateScene(s *scene, a, b *wire.Encoder, keys key.Keys) {
	s.says("a request is too late", a.Acquire(keys, wire.KindPlain, s.now/1000, wire.Quiet, asks('a')))
	s.says("a request is given up before it arrives", a.Release(keys, session(keys, 'a'), s.notAfter(), 0, false))
	s.says("a copy of it arrives", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('a')))
	s.says("others get the lock", b.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('b')))
	s.says("one gets in line", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('c')))
	beat := asks('c')
	beat.Op, beat.Place = 2, s.now
	s.now += sceneTTL.Microseconds()
	s.says("the holder has died", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, beat))
	s.says("the dead one renews", states(b, session(keys, 'b'), 2, 1, sceneTTL))
}

func ownerScene(s *scene, a, b *wire.Encoder, keys key.Keys) {
	outer, inner := asks('a'), asks('b')
	outer.Owner, inner.Owner = "job 7", "job 7"
	s.says("an owner takes the lock", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, outer))
	s.says("a nested lock is a statement", states(a, wire.Session{Hash: keys.Hash, Nonce: outer.Nonce, Owner: outer.Owner}, 2, 2, 0))
	s.says("the owner enters in another client", b.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, inner))
	several := states(b, wire.Session{Hash: keys.Hash, Nonce: inner.Nonce, Owner: inner.Owner}, 2, 1, sceneTTL)
	several.Keys = append(several.Keys, keys.Queue)
	s.says("one of several sessions renews", several)
	s.says("two requests of a client", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('c'), asks('d')))
	s.says("one of several sessions leaves", a.Release(keys, wire.Session{Nonce: outer.Nonce, Owner: outer.Owner}, 0, 0, false))
	s.says("the last one leaves", b.Release(keys, wire.Session{Nonce: inner.Nonce, Owner: inner.Owner}, 0, 0, false))
}

func fairScene(s *scene, a, b *wire.Encoder, keys key.Keys) {
	run := func(letter byte) wire.Request { r := asks(letter); r.Block = 16; return r }
	s.says("a fair lock is taken", a.Acquire(keys, wire.KindFair, s.notAfter(), wire.Quiet, run('a')))
	s.says("the first in line", b.Acquire(keys, wire.KindFair, s.notAfter(), wire.Quiet, run('b')))
	s.says("the second is of the same client", b.Acquire(keys, wire.KindFair, s.notAfter(), wire.Quiet, run('c')))
	s.says("the third is of another", a.Acquire(keys, wire.KindFair, s.notAfter(), wire.Quiet, run('d')))
	s.says("a run is granted", a.Release(keys, session(keys, 'a'), 0, 0, false))
	s.says("a run ends", b.Release(keys, session(keys, 'b'), 0, 0, false, nonce('c')))
}

func readersScene(s *scene, a, b *wire.Encoder, keys key.Keys) {
	read := func(letter byte) wire.Request { r := asks(letter); r.Read = true; return r }
	s.says("a writer", a.Acquire(keys, wire.KindRW, s.notAfter(), wire.Quiet, asks('a')))
	s.says("a reader waits", b.Acquire(keys, wire.KindRW, s.notAfter(), wire.Quiet, read('b')))
	s.says("the writer goes on reading", a.Downgrade(keys, session(keys, 'a'), 2, ledger.Counts{Reads: 1}, sceneTTL))
	s.says("a writer waits", b.Acquire(keys, wire.KindRW, s.notAfter(), wire.Quiet, asks('c')))
	s.says("a reader behind it waits", a.Acquire(keys, wire.KindRW, s.notAfter(), wire.Quiet, read('d')))
	s.says("who reads", a.Info(keys, 0, 250))
	s.says("one reader leaves", a.Release(keys, session(keys, 'a'), 0, 0, false))
	s.says("the last reader leaves", b.Release(keys, session(keys, 'b'), 0, 0, false))
	s.says("the writer leaves", b.Release(keys, session(keys, 'c'), 0, 0, false))
}

func semaphoreScene(s *scene, a, b *wire.Encoder, keys key.Keys) {
	weighs := func(letter byte, weight int) wire.Request {
		r := asks(letter)
		r.Read, r.Permits = true, room.Permits{Weight: weight, Of: 3}
		return r
	}
	s.says("two permits of three", a.Acquire(keys, wire.KindSemaphore, s.notAfter(), wire.Quiet, weighs('a', 2)))
	s.says("the third", b.Acquire(keys, wire.KindSemaphore, s.notAfter(), wire.Quiet, weighs('b', 1)))
	s.says("one waits for two", b.Acquire(keys, wire.KindSemaphore, s.notAfter(), wire.Quiet, weighs('c', 2)))
	s.says("two come back", a.Release(keys, wire.Session{Nonce: nonce('a'), Owner: anonymous('a'), Permits: room.Permits{Weight: 2, Of: 3}}, 0, 0, false))
	s.says("who has permits", a.Info(keys, 0, 250))
}

func restScene(s *scene, a, b *wire.Encoder, keys key.Keys) {
	rests := asks('a')
	rests.Rest = room.Rest{For: 50 * time.Second}
	s.says("a lock that rests", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, rests))
	end := s.now/1000 + 50_000
	s.says("it is released", a.Release(keys, session(keys, 'a'), 0, 0, false))
	s.says("a request meets the rest", b.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('b')))
	s.says("for how long it rests", a.Info(keys, 0, 250))
	s.says("an operator ends the rest", a.Force(keys, "", end, 0))
}

func conditionScene(s *scene, a, b *wire.Encoder, keys key.Keys) {
	s.says("the lock is taken", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('a')))
	var token int64
	_, err := fmt.Sscan(s.stored[keys.Hash].Hash["token"], &token)
	rig.Must(s.b.t, err)
	s.says("its holder waits on a condition", a.Await(keys, session(keys, 'a'), &room.Await{Op: 2, Writes: 1, Token: token}, sceneTTL, "not full", wire.Quiet))
	s.says("who waits on it", a.Awaiting(keys, "not full", "", 500))
	s.says("another takes the lock", b.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('b')))
	s.says("a signal", b.Signal(keys, session(keys, 'b'), 1, "not full", 1))
	s.says("a waiter that was signalled stops waiting", a.Abandon(keys, session(keys, 'a')))
	s.says("the signalled one gets the lock", b.Release(keys, session(keys, 'b'), 0, 0, false))
	s.says("it waits again", a.Await(keys, session(keys, 'a'), &room.Await{Op: 4, Writes: 1, Token: s.now}, sceneTTL, "not full", wire.Quiet))
	s.says("a waiter that was not signalled stops waiting", a.Abandon(keys, session(keys, 'a')))
	s.says("it leaves", a.Release(keys, session(keys, 'a'), 0, 0, false))
}

func ticketScene(s *scene, a, b *wire.Encoder, keys key.Keys) {
	s.says("the lock is taken", a.Acquire(keys, wire.KindPlain, s.notAfter(), wire.Quiet, asks('a')))
	var token int64
	_, err := fmt.Sscan(s.stored[keys.Hash].Hash["token"], &token)
	rig.Must(s.b.t, err)
	s.says("a ticket gets the hold", a.Detach(keys, session(keys, 'a'), nonce('t'), token, false, sceneTTL, 0))
	resumes := asks('b')
	resumes.Owner = anonymous('a')
	s.says("another client resumes it", b.Resume(keys, nonce('t'), resumes, s.notAfter()))
	second := asks('c')
	second.Owner = anonymous('a')
	s.says("a second one comes too late", a.Resume(keys, nonce('t'), second, s.notAfter()))
	s.says("a ticket that holds nothing ends", a.ReleaseTicket(keys, nonce('t')))
}

func clientScene(s *scene, a, _ *wire.Encoder, keys key.Keys) {
	s.says("the inbox is here", a.Where(keys))
	s.says("the inbox is elsewhere", wire.NewEncoder(nonce('x'), sceneInbox, sceneTTL, sceneKeep).Where(keys))
	s.says("everything is permitted", a.Permit(keys, sceneInbox+sceneClients[0], "relock:inbox:{orders/9}", false))
	s.says("a label is stored", a.Introduce("relock:label:"+sceneClients[0], "web-1:4711", sceneKeep))
	s.says("labels are read", a.Labels([]string{"relock:label:" + sceneClients[0]}))
}
