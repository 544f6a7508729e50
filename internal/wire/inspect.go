package wire

import (
	"math"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/transport"
)

// call returns a call of the script s for a lock, with both of its keys.
func call(s *script.Script, keys key.Keys, args ...any) transport.Call {
	return transport.Call{Script: s, Keys: []string{keys.Hash, keys.Queue}, Args: args}
}

// What a server says about where the client is subscribed to its inbox.
const (
	WhereUnknown   = -1
	WhereElsewhere = 0 // not on this server
	WhereHere      = 1
)

// Where asks the server of the lock whether the client is subscribed to its inbox there.
func (e *Encoder) Where(keys key.Keys) transport.Call {
	return transport.Call{Script: scriptWhere, Keys: []string{keys.Hash}, Args: []any{e.inbox + e.client}}
}

// DecodeWhere reads the answer to Where.
func DecodeWhere(raw []any) (where int64, err error) {
	cur := scriptWhere.Read(raw)
	where = cur.Within("where", WhereUnknown, WhereHere)
	return where, cur.End()
}

// Permit asks which of the commands and channels that scripts need are refused. inbox is "" for a client that
// subscribes to sharded channels only. shard is a channel in the slot of the keys. With inFull the text of the script
// is sent even if the server has it.
func (e *Encoder) Permit(keys key.Keys, inbox, shard string, inFull bool) transport.Call {
	c := call(scriptPermit, keys, inbox, shard)
	c.InFull = inFull
	return c
}

// A PermitReply says what is missing. It is asked first: a script refused halfway leaves what it wrote before.
type PermitReply struct {
	Refused []string // commands and channels
	Sharded string   // the error to PUBLISH, if SPUBLISH would work; else ""
	Old     bool     // the server is too old
	Version string   // of a server that is too old
}

// DecodePermit reads the answer to Permit. It stops at what it cannot read.
func DecodePermit(raw []any) (reply PermitReply) {
	for cur := scriptPermit.Read(raw); cur.More(); {
		switch name := cur.Str("refused"); name {
		case "sharded":
			reply.Sharded = cur.Str("words")
		case "old":
			reply.Old, reply.Version = true, cur.Str("version")
			return reply
		default:
			reply.Refused = append(reply.Refused, name)
		}
	}
	return reply
}

// Info asks who holds the lock: one page of size sessions, or more if several leases end together. after is Next of the
// previous page, or 0.
func (e *Encoder) Info(keys key.Keys, after int64, size int) transport.Call {
	return call(scriptInfo, keys, after, size)
}

// An InfoReply is one page of holders.
type InfoReply struct {
	Now     int64 // server ms
	Kind    string
	Resting time.Duration // how long the name still rests; 0 while somebody holds
	Holders []Holder
	Waiters int
	Awaits  int   // waiters on conditions
	Next    int64 // where the page ends; 0: it is the last
}

// A Holder is an owner with live holds on one page. The next page may have more of them.
type Holder struct {
	Owner  string
	Read   bool
	Holds  int
	Token  int64
	TTL    time.Duration // left of its longest lease
	Held   time.Duration // since its grant
	Client string        // ID of the client with this lease
	Weight int           // permits of a semaphore; else 0
	Sticky bool          // its client may keep the grant
}

// DecodeInfo reads the answer to Info.
func DecodeInfo(raw []any) (info InfoReply, err error) {
	cur := scriptInfo.Read(raw)
	info.Now = serverTime(cur)
	info.Kind, _ = StoredKind(cur.Str("kind"))
	info.Waiters = int(cur.Within("waiters", 0, math.MaxInt32))
	info.Next = cur.Within("next", 0, maxCount)
	info.Resting = millis(cur.Within("resting", 0, maxLease))
	info.Awaits = int(cur.Within("awaits", 0, math.MaxInt32))
	for cur.More() {
		h := Holder{Owner: cur.Str("owner"), Read: readsMode(cur), Holds: int(cur.Within("holds", 0, maxCount))}
		low, high := tokens(cur)
		// The last token of a grant is the server time in microseconds at which it was made. It is not if the clock had
		// stepped back before, or if the token was raised since.
		h.Token, h.Held = Token(low, h.Owner), time.Duration(max(info.Now*1000-high, 0))*time.Microsecond
		h.TTL, h.Client = lease(cur), cur.Str("client")
		h.Sticky = room.Keepable(low, high)
		h.Weight = int(cur.Within("weight", 0, maxCount))
		info.Holders = append(info.Holders, h)
	}
	return info, cur.End()
}

// Waiters asks who waits: at most size entries of the queue after the place last, where the previous page ended, or 0.
func (e *Encoder) Waiters(keys key.Keys, last int64, size int) transport.Call {
	return call(scriptWaiters, keys, last, size)
}

// A Waiter is an entry in the queue, or a waiter on a condition.
type Waiter struct {
	Owner  string
	Read   bool
	Age    time.Duration // how long it has waited
	Client string
}

// DecodeWaiters returns a page of the queue and the place where it ends, or 0 if it is the last.
func DecodeWaiters(raw []any) (page []Waiter, last int64, err error) {
	cur := scriptWaiters.Read(raw)
	now := cur.Within("now", 1, maxCount) // in microseconds
	last = cur.Within("last", 0, maxCount)
	for cur.More() {
		w := Waiter{Owner: cur.Str("owner"), Read: readsMode(cur)}
		// A place may be ahead of a clock that has stepped back.
		w.Age = time.Duration(max(now-cur.Within("place", 1, maxCount), 0)) * time.Microsecond
		w.Client = cur.Str("client")
		page = append(page, w)
	}
	return page, last, cur.End()
}

// Force ends the grant that an owner has under a token. after is where a previous call stopped, or 0. For the owner ""
// it ends the rest of the name instead, and token is the server time in ms until which the name rests.
func (e *Encoder) Force(keys key.Keys, owner string, token, after int64) transport.Call {
	if owner != "" {
		token = Instant(token)
	}
	return call(scriptForce, keys, owner, token, after, e.keep.Milliseconds(), e.inbox)
}

// DecodeForce reads the answer to Force. removed means that this call ended the grant or the rest. With more, the call
// must be sent again with after: sessions of the grant, or waiters, are left.
func DecodeForce(raw []any) (removed, more bool, after int64, err error) {
	cur := scriptForce.Read(raw)
	removed = cur.Int("removed") == 1
	more = cur.Int("more") == 1
	after = cur.Int("after")
	return removed, more, after, cur.End()
}

// Introduce stores the label of the client under the key at, for the time life.
func (e *Encoder) Introduce(at, label string, life time.Duration) transport.Call {
	return transport.Call{Script: scriptIntroduce, Keys: []string{at}, Args: []any{label, life.Milliseconds()}}
}

// Labels asks for the labels of clients, by their keys.
func (e *Encoder) Labels(at []string) transport.Call {
	return transport.Call{Script: scriptLabels, Keys: at}
}

// DecodeLabels returns the labels of n clients, with "" for one that has none.
func DecodeLabels(raw []any, n int) ([]string, error) {
	cur := scriptLabels.Read(raw)
	labels := make([]string, n)
	for i := range labels {
		labels[i] = cur.Str("label")
	}
	return labels, cur.End()
}
