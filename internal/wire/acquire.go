package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/transport"
)

// A Request is what one acquisition asks for in a call to acquire.lua.
type Request struct {
	Nonce string
	Op    int64 // larger than those of its earlier requests
	Owner string
	Read  bool
	TTL   time.Duration
	Rest  room.Rest // how long the name must rest after the hold
	Block int       // how many tokens it asks for
	Place int64     // its place in the queue, room.PlaceNew or room.PlaceNone
	// Writes is how many write holds it asks for; 0 means 1.
	Writes  uint32
	Permits room.Permits // of a semaphore
}

// An Echo says whether a request that must wait asks for a message to the client's inbox. The message proves that the
// client hears, and says whether the server that ran the script sees the subscription.
type Echo int

// The echoes of a request.
const (
	Quiet Echo = iota // no message
	Prove             // a message
	Vouch             // a message; the client has heard "echo unseen", so scripts must not trust PUBSUB
)

// Acquire asks for the lock. The server refuses a copy that arrives after notAfter, in ms of the server's clock.
func (e *Encoder) Acquire(keys key.Keys, kind string, notAfter int64, echo Echo, requests ...Request) transport.Call {
	args, rests := make([]any, 0, 4+6*len(requests)), false
	args = append(args, kindArgs[kind], notAfter*1000, e.terms[echo])
	for _, r := range requests {
		whole, field := e.identity(r.Nonce, r.Owner, r.Permits)
		_, life := e.leases(r.TTL)
		counts := e.write // without the block, which is an argument of its own
		switch {
		case r.Op != 1 || r.Writes > 1 || r.TTL != e.ttl || r.Rest.For > 0:
			counts = requestCounts(r.Op, r.Read, r.Writes, strconv.FormatInt(r.TTL.Milliseconds(), 10)+restText(r.Rest))
		case r.Read:
			counts = e.read
		}
		args = append(args, whole, field, counts, r.Block, life, r.Place)
		rests = rests || r.Rest.For > 0
	}
	if rests {
		args = append(args, "rests")
	}
	call := transport.Call{Script: scriptAcquire, Keys: []string{keys.Hash, keys.Queue}, Args: args}
	if len(args) == 9 && requests[0].Place <= 0 { // usual.lua never queues: a request that must wait is then sent alone
		call.Usual = usualAcquire
	}
	return call
}

// DecodeAcquire reads the answers to a number of requests, in their order. now is server ms. block and ttl are what a
// single request asked for: the short answer for a lock that was free leaves them out.
func DecodeAcquire(raw []any, requests, block int, ttl time.Duration) (now int64, answers []room.Answer, err error) {
	if requests == 1 {
		now, a, err := DecodeAnswer(raw, block, ttl)
		if err != nil {
			return 0, nil, err
		}
		return now, []room.Answer{a}, nil
	}
	cur := scriptAcquire.Read(raw)
	now, more := serverTime(cur), yes(cur, "more")
	for len(answers) < requests {
		a, ofAll := decodeAnswer(cur)
		a.More = more
		if answers = append(answers, a); ofAll {
			for len(answers) < requests {
				answers = append(answers, a)
			}
		}
	}
	if err := cur.End(); err != nil {
		return 0, nil, err
	}
	return now, answers, nil
}

// DecodeAnswer is DecodeAcquire for one request, or for resume, whose answer has that form. now is server ms.
func DecodeAnswer(raw []any, block int, ttl time.Duration) (now int64, a room.Answer, err error) {
	cur := scriptAcquire.Read(raw)
	if len(raw) > 2 {
		now = serverTime(cur)
		more := yes(cur, "more")
		a, _ = decodeAnswer(cur)
		a.More = more
		return now, a, cur.End()
	}
	// The short answer for a lock that was free leaves out the time and the lease: the grant began at its last token, and
	// has the lease that was asked for.
	high := cur.Within("token", 1000, maxCount)
	if cur.More() {
		block = int(cur.Within("block", 1, int64(block)))
	}
	if err := cur.End(); err != nil {
		return 0, a, err
	}
	return high / 1000, room.Answer{Code: room.Held, Low: max(high-int64(block)+1, 1), High: high, Remaining: ttl}, nil
}

// decodeAnswer reads one answer. ofAll means that Redis gave it once for all requests.
func decodeAnswer(cur *script.Cursor) (a room.Answer, ofAll bool) {
	switch a.Code = cur.Int("code"); a.Code {
	case room.OfKind:
		a.Kind = cur.Str("kind")
		return a, true
	case room.Late:
		return a, true
	case room.QueueKey:
		if !cur.More() {
			return a, true
		}
		fallthrough // for this request only: its fields are all zero
	case room.Queued, room.Taken, room.Awaits, room.Ended, room.Upgrade:
		a.Place = cur.Within("place", 0, maxCount)
		a.Wait = millis(cur.Within("wait", -maxLease, maxLease))
		a.First = yes(cur, "first")
		a.Ghost = cur.Str("ghost")
	case room.Held:
		a.Low, a.High = tokens(cur)
		a.Remaining = lease(cur)
		a.Wanted = wanted(cur)
	default:
		cur.Check(false, "code")
	}
	return a, false
}

// Downgrade turns a session's write holds into read holds.
func (e *Encoder) Downgrade(keys key.Keys, s Session, op int64, n ledger.Counts, ttl time.Duration) transport.Call {
	whole, _ := e.identity(s.Nonce, s.Owner, s.Permits)
	return call(scriptDowngrade, keys, whole, op, n.Reads, ttl.Milliseconds(), e.keep.Milliseconds(), e.inbox)
}

// DecodeStatement reads the answer to Renew of one session or, if opens is set, to Downgrade, which opens the lock for
// readers. If Renew left the lease as it is, the answer may have neither time nor waiters.
func DecodeStatement(raw []any, opens bool) (room.Reply, error) {
	of := scriptHold
	if opens {
		of = scriptDowngrade
	}
	cur := of.Read(raw)
	var reply room.Reply
	if len(raw) > 1 { // else the lease was left as it is, and no clock was read
		reply.Now = serverTime(cur)
	}
	left := cur.Within("remaining", room.QueueKey, maxLease)
	cur.Check(left >= 0 || left == room.QueueKey, "remaining")
	reply.Held, reply.Several, reply.Remaining = left > 0, left < 0, millis(left)
	if opens {
		reply.More = yes(cur, "more")
	} else if reply.Counted = reply.Now != 0; cur.More() {
		reply.Waiting = int(cur.Within("waiting", 1, maxCount))
	}
	if err := cur.End(); err != nil {
		return room.Reply{}, err
	}
	return reply, nil
}

// A Renewal states how many holds a session has. In a command with several, each session must hold its lock alone.
type Renewal struct {
	Session
	Op            int64
	Writes, Reads uint32
}

// Renew states the holds of sessions, each of another lock, and renews their leases. With a ttl of 0 the lease stays as
// it is. A session that may be one of several must have a call of its own, to which the caller adds the queue's key.
func (e *Encoder) Renew(ttl time.Duration, all []Renewal) transport.Call {
	keys := make([]string, 0, len(all))
	lease, life := e.leases(ttl)
	args := append(make([]any, 0, 2+5*len(all)), lease, life)
	for _, r := range all {
		keys = append(keys, r.Hash)
		whole, field := e.identity(r.Nonce, r.Owner, r.Permits)
		args = append(args, whole, field, r.Op, r.Writes, r.Reads)
	}
	return transport.Call{Script: scriptHold, Keys: keys, Args: args}
}

// DecodeRenew reads the answer to Renew. left are the indexes of the sessions that were not renewed. Either they do not
// hold, or not alone, or a later statement arrived first and the lease stays as it was. waiting is how many wait for a
// session's end, by its index; it leaves out sessions for which nobody waits.
func DecodeRenew(raw []any, ttl time.Duration, sessions int) (now int64, left []int, waiting map[int]int, err error) {
	cur := scriptHold.Read(raw)
	now = serverTime(cur)
	for i := range sessions {
		if cur.Within("remaining", room.QueueKey, maxLease) < max(1, ttl.Milliseconds()) {
			left = append(left, i)
		}
	}
	for cur.More() {
		if waiting == nil {
			waiting = make(map[int]int)
		}
		i := 0
		if sessions > 1 { // one alone has no number
			i = int(cur.Within("session", 1, int64(sessions))) - 1
		}
		waiting[i] = int(cur.Within("waiting", 1, maxCount))
	}
	return now, left, waiting, cur.End()
}

// WasHeld is the answer to the release of a nonce that held. 1 means that it was queued, and 0 neither.
const WasHeld = 2

// Release ends the nonce of a session, whether it holds or waits. With an owner of "" the owner does not matter. until
// is the server time in ms up to which a late copy of the acquire may arrive and must be refused, or 0. If it is
// negative, its absolute value is that time, and a signal that the session was given goes to another waiter. lease is
// the longest that Redis may have given it. If it is longer than TokenKeep, the hash must be made to expire sooner.
// undone means that the name does not rest afterwards. served are other nonces that had the lock under this grant and
// are still queued in Redis: they end as well.
func (e *Encoder) Release(keys key.Keys, s Session, until int64, lease time.Duration, undone bool, served ...string) transport.Call {
	whole, field := e.identity(s.Nonce, s.Owner, s.Permits)
	args := []any{whole, field, until, e.release}
	if lease > e.keep || undone || len(served) > 0 {
		args = append(args, e.keep.Milliseconds())
	}
	switch {
	case undone:
		args = append(args, "undone")
	case len(served) > 0:
		args = append(args, "", strings.Join(served, " "))
	}
	call := transport.Call{Script: scriptRelease, Keys: []string{keys.Hash, keys.Queue}, Args: args}
	if len(args) == 4 && until == 0 {
		call.Usual = usualRelease
	}
	return call
}

// DecodeRelease reads the answer to Release. now is 0 in the usual case, whose answer has no time: the nonce held.
func DecodeRelease(raw []any) (was, now int64, more bool, err error) {
	cur := scriptRelease.Read(raw)
	if len(raw) == 1 {
		return cur.Within("was", WasHeld, WasHeld), 0, false, cur.End()
	}
	was = cur.Within("was", room.QueueKey, WasHeld)
	cur.Check(was >= 0 || was == room.QueueKey, "was")
	now, more = serverTime(cur), yes(cur, "more")
	return was, now, more, cur.End()
}

// Raise makes the token counter of a lock at least instant, a token as Redis stores it, if Redis has the record of the
// session. Its lease may have ended: nobody else has held since. A session that reads beside others raises nothing.
func (e *Encoder) Raise(s Session, instant int64, ttl time.Duration) transport.Call {
	_, life := e.leases(ttl)
	whole, field := e.identity(s.Nonce, s.Owner, s.Permits)
	return transport.Call{Script: scriptRaise, Keys: []string{s.Hash}, Args: []any{whole, field, instant, life}}
}

// DecodeRaise says whether Redis has the session, and so the counter is large enough.
func DecodeRaise(raw []any) (held bool, err error) {
	cur := scriptRaise.Read(raw)
	held = yes(cur, "held")
	return held, cur.End()
}
