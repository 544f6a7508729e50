package wire

import (
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
)

// NoClient stands in place of the client's ID in a session that belongs to a ticket.
const NoClient = "-"

// Detach hands the grant that a session holds under a token to a ticket, for ttl. until is the server time in ms up to
// which a late copy of the session's acquire may arrive and must be refused, or 0.
func (e *Encoder) Detach(keys key.Keys, s Session, ticket string, token int64, read bool, ttl time.Duration, until int64) transport.Call {
	whole, _ := e.identity(s.Nonce, s.Owner, s.Permits)
	reads := 0
	if read {
		reads = 1
	}
	return call(scriptDetach, keys, whole, ticket, token, reads, ttl.Milliseconds(), until, e.keep.Milliseconds(), e.inbox)
}

// DecodeDetach reads the answer to Detach. has says whether the ticket has the grant now. more means that the queue was
// too long to be settled.
func DecodeDetach(raw []any) (has, more bool, err error) {
	cur := scriptDetach.Read(raw)
	has, more = yes(cur, "has"), yes(cur, "more")
	return has, more, cur.End()
}

// Resume takes over the grant that a ticket has. The server refuses the call after notAfter, its own time in ms. The
// answer is read by DecodeAnswer.
func (e *Encoder) Resume(keys key.Keys, ticket string, r Request, notAfter int64) transport.Call {
	whole, _ := e.identity(r.Nonce, r.Owner, r.Permits)
	return call(scriptResume, keys, ticket, whole, r.Op, notAfter*1000, r.TTL.Milliseconds(), e.keep.Milliseconds(), e.inbox)
}

// ReleaseTicket ends the grant that a ticket has. Its identity names NoClient and no owner.
func (e *Encoder) ReleaseTicket(keys key.Keys, ticket string) transport.Call {
	call := e.Release(keys, Session{Nonce: ticket}, 0, 0, false)
	call.Args[0] = ticket + " " + NoClient + " o:"
	return call
}
