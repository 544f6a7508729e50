package wire

import (
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/transport"
)

// A Request is what acquire is told of one acquisition.
type Request struct {
	Nonce string
	Op    int64
	Owner string
	Read  bool
	TTL   time.Duration
	Rest  room.Rest // of the name after it
	Block int       // tokens wanted
	Place int64
	// Writes is how many holds it is for; 0 and 1 are one.
	Writes  uint32
	Permits room.Permits // of a semaphore
}

func (r Request) mode() string {
	if r.Read {
		return modeRead
	}
	return modeWrite
}

// An AcquireReply is the answers to the requests of one call, in their order.
type AcquireReply struct {
	Now     int64 // server ms
	More    bool  // the queue was too long for one call
	Answers []room.Answer
}

// An Echo is what a request that waits asks to hear by the client's inbox.
type Echo int

// The echoes of a request.
const (
	Quiet Echo = iota // none
	Prove             // that it hears, and whether it is seen to be subscribed
	Vouch             // the same: it has heard that it is not seen
)

// Acquire asks for the lock until notAfter, a time of the server in ms.
func (e *Encoder) Acquire(keys key.Keys, kind string, notAfter int64, echo Echo, requests ...Request) transport.Call {
	args, rests := make([]any, 0, 4+6*len(requests)), false
	args = append(args, kindArg(kind), notAfter*1000, e.terms[echo])
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
	if len(args) == 9 && requests[0].Place <= 0 { // it queues only by itself, and has its echo then
		call.Usual = usualAcquire
	}
	return call
}

// DecodeAcquire reads the answers for so many requests. One alone asked for a block of tokens
// and a lease of ttl.
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

// DecodeAnswer is DecodeAcquire of a call with one request, which has its answer alone.
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

// decodeAnswer reads one answer, or the one that is said once for all requests.
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
		skip(cur) // of this request alone
	case room.Held:
		a.Low, a.High = tokens(cur)
		a.Remaining = lease(cur)
		cur.Str("nothing")
	case room.Queued, room.Busy, room.Awaits, room.Ended, room.Upgrade:
		a.Ticket = cur.Within("ticket", 0, maxCount)
		a.Wait = millis(cur.Within("wait", -maxLease, maxLease))
		a.First = yes(cur, "first")
		a.Ghost = cur.Str("ghost")
	default:
		cur.Check(false, "code")
	}
	return a, false
}

// decodeTaken reads the answer of a lock that was free. The lease is all that was
// asked for, though the session may have had a longer one before.
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
