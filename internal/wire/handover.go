package wire

import (
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
)

// NoClient is the client of what a ticket has.
const NoClient = "-"

// Detach hands what a session holds by that token to a ticket, for so long. Until the given
// time of the server in ms a copy of the session's acquire may come.
func (e *Encoder) Detach(keys key.Keys, s Session, ticket string, token int64, read bool, ttl time.Duration, until int64) transport.Call {
	whole, _ := e.identity(s.Nonce, s.Owner, s.Permits)
	reads := 0
	if read {
		reads = 1
	}
	return transport.Call{Script: scriptDetach, Keys: []string{keys.Hash, keys.Queue}, Args: []any{
		whole, ticket, token, reads, ttl.Milliseconds(), until, e.keep.Milliseconds(), e.inbox,
	}}
}

// DecodeDetach reads the answer: whether the ticket has it now.
func DecodeDetach(raw []any) (now int64, has, more bool, err error) {
	cur := scriptDetach.Read(raw)
	now, has = serverTime(cur), yes(cur, "has")
	more = yes(cur, "more")
	return now, has, more, cur.End()
}

// Resume asks for what a ticket has, until notAfter, a time of the server in ms. It is
// answered as Acquire is.
func (e *Encoder) Resume(keys key.Keys, ticket string, r Request, notAfter int64) transport.Call {
	whole, _ := e.identity(r.Nonce, r.Owner, r.Permits)
	return transport.Call{Script: scriptResume, Keys: []string{keys.Hash, keys.Queue}, Args: []any{
		ticket, whole, r.Op, notAfter * 1000, r.TTL.Milliseconds(), e.keep.Milliseconds(), e.inbox,
	}}
}

// ReleaseTicket ends what a ticket has.
func (e *Encoder) ReleaseTicket(keys key.Keys, ticket string) transport.Call {
	call := e.Release(keys, Session{Nonce: ticket}, 0, 0, false)
	call.Args[0] = ticket + " " + NoClient + " o:"
	return call
}
