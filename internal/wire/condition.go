package wire

import (
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
)

// Await makes a session wait on a condition. When it holds again, it has a.Writes holds and a lease of ttl.
func (e *Encoder) Await(keys key.Keys, s Session, a *room.Await, ttl time.Duration, condition string, echo Echo) transport.Call {
	whole, _ := e.identity(s.Nonce, s.Owner, s.Permits)
	args := []any{whole, a.Op, a.Writes, ttl.Milliseconds(), condition, e.keep.Milliseconds(), e.inbox, a.Token}
	if echo != Quiet {
		args = append(args, int(echo))
	}
	return call(scriptAwait, keys, args...)
}

// DecodeAwait reads the answer to Await. now is server ms. more means that the queue was too long to be settled.
func DecodeAwait(raw []any) (said room.AwaitReply, now int64, more bool, err error) {
	cur := scriptAwait.Read(raw)
	now, more = serverTime(cur), yes(cur, "more")
	said = room.AwaitReply(cur.Within("state", int64(room.OwnerElsewhere), int64(room.OnCondition)))
	return said, now, more, cur.End()
}

// Signal moves a condition's longest waiters to the lock's queue: count says how many, 0 all. The session must write.
func (e *Encoder) Signal(keys key.Keys, s Session, number int64, condition string, count int) transport.Call {
	whole, _ := e.identity(s.Nonce, s.Owner, s.Permits)
	return call(scriptSignal, keys, whole, number, condition, count, e.keep.Milliseconds(), e.inbox)
}

// DecodeSignal decodes the answer. held: the session that signals holds for writing. more means that the call must be sent again.
func DecodeSignal(raw []any) (held, more bool, now int64, err error) {
	cur := scriptSignal.Read(raw)
	now, more = serverTime(cur), yes(cur, "more")
	held = yes(cur, "held")
	return held, more, now, cur.End()
}

// Abandon makes the call that takes a waiter off its condition and into the queue of the lock, unless it was signalled.
func (e *Encoder) Abandon(keys key.Keys, s Session) transport.Call {
	whole, _ := e.identity(s.Nonce, s.Owner, s.Permits)
	return call(scriptAbandon, keys, whole, e.keep.Milliseconds(), e.inbox)
}

// An Abandoned is the outcome of Abandon.
type Abandoned int64

// The outcomes.
const (
	OnNone    Abandoned = iota // it waited on no condition: it may have been signalled before
	Left                       // it has left its condition, and was not signalled
	Signalled                  // it was signalled
)

// DecodeAbandon reads the answer to Abandon. more means that the queue was too long for one script to settle.
func DecodeAbandon(raw []any) (said Abandoned, more bool, now int64, err error) {
	cur := scriptAbandon.Read(raw)
	now, more = serverTime(cur), yes(cur, "more")
	said = Abandoned(cur.Within("state", 0, 2))
	return said, more, now, cur.End()
}

// Awaiting asks who waits on a condition: one page of at most size waiters. from is what the previous page returned as
// next, or "" for the first.
func (e *Encoder) Awaiting(keys key.Keys, condition, from string, size int) transport.Call {
	return transport.Call{Script: scriptAwaiting, Keys: []string{keys.Hash}, Args: []any{condition, from, size}}
}

// DecodeAwaiting returns a page, and where the next one begins, or "" after the last.
func DecodeAwaiting(raw []any) (page []Waiter, next string, err error) {
	cur := scriptAwaiting.Read(raw)
	now := serverTime(cur)
	next = cur.Str("next")
	for cur.More() {
		w := Waiter{Owner: cur.Str("owner")}
		w.Age = millis(max(now-cur.Within("since", 0, maxCount), 0))
		w.Client = cur.Str("client")
		page = append(page, w)
	}
	return page, next, cur.End()
}
