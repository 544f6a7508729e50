package wire

import (
	"time"

	"github.com/relock-go/relock/internal/key"
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
	Rest  room.Rest // of the name after the hold
	Block int       // how many tokens it asks for
	Place int64     // the one that it has in the queue, room.PlaceNew or room.PlaceNone
	// Writes is how many write holds it asks for; 0 and 1 are one.
	Writes  uint32
	Permits room.Permits // of a semaphore
}

func (r Request) mode() string {
	if r.Read {
		return modeRead
	}
	return modeWrite
}

// An AcquireReply has the answers to the requests of one call, in the same order.
type AcquireReply struct {
	Now     int64 // server ms
	More    bool  // the queue was too long for one call: ask again
	Answers []room.Answer
}

// An Echo says whether a request that must wait asks for a message to the client's inbox. The message proves that the
// client hears, and says whether the server that ran the script sees the subscription.
type Echo int

// The echoes of a request.
const (
	Quiet Echo = iota // no message
	Prove             // a message
	Vouch             // a message; the client has heard "unseen", so it hears, and scripts must count it as subscribed
)

// Acquire asks for the lock. The server refuses a copy that arrives after notAfter, its own time in ms.
func (e *Encoder) Acquire(keys key.Keys, kind string, notAfter int64, echo Echo, requests ...Request) transport.Call {
	args, rests := make([]any, 0, 4+6*len(requests)), false
	args = append(args, kindArgs[kind], notAfter*1000, e.terms[echo])
	for _, r := range requests {
		whole, field := e.identity(r.Nonce, r.Owner, r.Permits)
		_, life := e.leases(r.TTL)
		args = append(args, whole, field, e.counts(r), r.Block, life, r.Place)
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

// DecodeAcquire reads the answers to a number of requests. block and ttl are what a single request asked for: the short
// answer for a lock that was free leaves them out.
func DecodeAcquire(raw []any, requests, block int, ttl time.Duration) (AcquireReply, error) {
	if requests == 1 {
		now, a, err := DecodeAnswer(raw, block, ttl)
		if err != nil {
			return AcquireReply{}, err
		}
		return AcquireReply{Now: now, More: a.More, Answers: []room.Answer{a}}, nil
	}
	cur := scriptAcquire.Read(raw)
	reply := AcquireReply{Now: serverTime(cur), More: yes(cur, "more")}
	for len(reply.Answers) < requests {
		a, ofAll := decodeAnswer(cur)
		if reply.Answers = append(reply.Answers, a); ofAll {
			for len(reply.Answers) < requests {
				reply.Answers = append(reply.Answers, a)
			}
		}
	}
	if err := cur.End(); err != nil {
		return AcquireReply{}, err
	}
	return reply, nil
}

// DecodeAnswer is DecodeAcquire for a call with one request. now is server ms.
func DecodeAnswer(raw []any, block int, ttl time.Duration) (now int64, a room.Answer, err error) {
	cur := scriptAcquire.Read(raw)
	if len(raw) <= 2 {
		return decodeTaken(cur, block, ttl)
	}
	now = serverTime(cur)
	more := yes(cur, "more")
	a, _ = decodeAnswer(cur)
	a.More = more
	return now, a, cur.End()
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
		skip(cur) // for this request only
	case room.Held:
		a.Low, a.High = tokens(cur)
		a.Remaining = lease(cur)
		a.Wanted = wanted(cur)
	case room.Queued, room.Busy, room.Awaits, room.Ended, room.Upgrade:
		a.Place = cur.Within("place", 0, maxCount)
		a.Wait = millis(cur.Within("wait", -maxLease, maxLease))
		a.First = yes(cur, "first")
		a.Ghost = cur.Str("ghost")
	default:
		cur.Check(false, "code")
	}
	return a, false
}

// decodeTaken reads the short answer for a lock that was free. It leaves out the time and the lease: the grant began at
// its last token, and has the lease that was asked for.
func decodeTaken(cur *script.Cursor, block int, ttl time.Duration) (now int64, held room.Answer, err error) {
	high := cur.Within("token", 1000, maxCount)
	if cur.More() {
		block = int(cur.Within("block", 1, int64(block)))
	}
	if err := cur.End(); err != nil {
		return 0, held, err
	}
	held = room.Answer{Code: room.Held, Low: max(high-int64(block)+1, 1), High: high, Remaining: ttl}
	return high / 1000, held, nil
}
