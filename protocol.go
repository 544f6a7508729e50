package relock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/lua"
)

// The kinds of lock, as Redis keeps them beside the token counter.
const (
	kindPlain  = "plain"
	kindFair   = "fair"
	kindRW     = "rw"
	kindFairRW = "fair rw"
)

// The modes of a hold.
const (
	modeWrite = "w" // exclusive
	modeRead  = "r" // shared with other readers
)

var (
	scriptAcquire   = script.MustLoad(lua.FS, "acquire")
	scriptHold      = script.MustLoad(lua.FS, "hold")
	scriptDowngrade = script.MustLoad(lua.FS, "downgrade")
	scriptRelease   = script.MustLoad(lua.FS, "release")
	scriptForce     = script.MustLoad(lua.FS, "force")
	scriptPermit    = script.MustLoad(lua.FS, "permit")
	scriptInfo      = script.MustLoad(lua.FS, "info")
	scriptWaiters   = script.MustLoad(lua.FS, "waiters")
	scriptWhere     = script.MustLoad(lua.FS, "where")
)

// The places that a request can ask for; any other is a ticket it has.
const (
	placeNone = -1 // do not queue
	placeNew  = 0
)

// Answers of the acquire script, for one request or for all of them.
const (
	answerHeld     = 1
	answerQueued   = 2
	answerBusy     = 3
	answerLate     = -2 // not-after has passed or is too far ahead
	answerKind     = -3
	answerEnded    = -4
	answerQueueKey = -5 // the one-key form needs the queue
	answerUpgrade  = -6 // the owner reads, and wants to write
)

// A request is what acquire is told of one acquisition.
type request struct {
	nonce string
	op    int64
	owner string
	mode  string
	ttl   time.Duration
	block int // tokens wanted
	place int64
}

// An answer is what acquire says of one request.
type answer struct {
	code      int64
	low, high int64         // held: the tokens
	remaining time.Duration // held: of the lease
	ticket    int64         // queued
	wait      time.Duration // queued or busy: until the holder's lease ends
	first     bool          // queued: at the head
	ghost     string        // queued or busy: this client's own session that is in the way
	kind      string        // answerKind: the one in use
}

type acquireReply struct {
	now     int64 // server ms
	more    bool
	answers []answer
}

// constants are arguments that every request of a client has: made once, since each
// costs an allocation.
type constants struct {
	quiet, echo     any // the terms of an acquire, without and with an echo
	release         any // the terms of a release
	write, read     any // the counts of a first request
	ttl, life, zero any // of a lease of the client's TTL
}

func newConstants(inbox string, ttl, keep time.Duration) constants {
	lease := ttl.Milliseconds()
	return constants{
		quiet:   fmt.Sprintf("%d 0 %s", keep.Milliseconds(), inbox),
		echo:    fmt.Sprintf("%d 1 %s", keep.Milliseconds(), inbox),
		release: fmt.Sprintf("%d %s", keep.Milliseconds(), inbox),
		write:   requestCounts(1, modeWrite, lease),
		read:    requestCounts(1, modeRead, lease),
		ttl:     strconv.FormatInt(lease, 10),
		life:    strconv.FormatInt((ttl + keep).Milliseconds(), 10),
		zero:    "0",
	}
}

// lease is a TTL as an argument, and how long the hash lives then.
func (c *Client) lease(ttl time.Duration) (lease, life any) {
	switch ttl {
	case c.cfg.terms.ttl:
		return c.args.ttl, c.args.life
	case 0:
		return c.args.zero, c.cfg.tokenKeep.Milliseconds()
	}
	return ttl.Milliseconds(), (ttl + c.cfg.tokenKeep).Milliseconds()
}

// counts is what a request asks for: one hold.
func (c *Client) counts(op int64, mode string, ttl time.Duration) any {
	switch {
	case op != 1 || ttl != c.cfg.terms.ttl:
		return requestCounts(op, mode, ttl.Milliseconds())
	case mode == modeRead:
		return c.args.read
	}
	return c.args.write
}

func requestCounts(op int64, mode string, ttl int64) string {
	n := " 1 0 "
	if mode == modeRead {
		n = " 0 1 "
	}
	return strconv.FormatInt(op, 10) + n + strconv.FormatInt(ttl, 10) + " "
}

// identity is what the scripts know a session by, and the field of its counts, which
// is the identity's end.
func identity(client, nonce, owner string) (whole, field string) {
	whole = nonce + " " + client + " o:" + owner
	return whole, whole[len(nonce)+len(client)+2:]
}

func kindArg(kind string) any {
	switch kind {
	case kindPlain:
		return kindPlain
	case kindFair:
		return kindFair
	}
	return kind
}

// acquireCall asks for the lock until notAfter, a time of the server in ms.
func acquireCall(c *Client, keys key.Keys, kind string, notAfter int64, echo bool, requests ...request) transport.Call {
	args := make([]any, 0, 3+6*len(requests))
	terms := c.args.quiet
	if echo {
		terms = c.args.echo
	}
	args = append(args, kindArg(kind), notAfter*1000, terms)
	for _, r := range requests {
		whole, field := identity(c.id, r.nonce, r.owner)
		_, life := c.lease(r.ttl)
		args = append(args, whole, field, c.counts(r.op, r.mode, r.ttl), r.block, life, r.place)
	}
	return transport.Call{Script: scriptAcquire, Keys: []string{keys.Hash, keys.Queue}, Args: args}
}

// decodeAcquire reads the answers for so many requests. One alone asked for a block of tokens.
func decodeAcquire(raw []any, requests, block int) (acquireReply, error) {
	cur := scriptAcquire.Read(raw)
	if requests == 1 && len(raw) <= 2 {
		return decodeTaken(cur, block)
	}
	reply := acquireReply{now: serverTime(cur), more: yes(cur, "more")}
	for range requests {
		a := answer{code: cur.Int("code")}
		switch a.code {
		case answerKind:
			a.kind = cur.Str("kind")
		case answerLate:
			// Said once, for all requests.
		case answerQueueKey:
			if cur.More() { // of this request alone
				skip(cur)
				reply.answers = append(reply.answers, a)
				continue
			}
		case answerHeld:
			a.low, a.high = tokens(cur)
			a.remaining = lease(cur)
			cur.Str("nothing")
		case answerQueued, answerBusy, answerEnded, answerUpgrade:
			a.ticket = cur.Within("ticket", 0, maxCount)
			a.wait = millis(cur.Within("wait", -maxLease, maxLease))
			a.first = yes(cur, "first")
			a.ghost = cur.Str("ghost")
		default:
			cur.Check(false, "code")
		}
		if a.code == answerKind || a.code == answerLate || a.code == answerQueueKey {
			for len(reply.answers) < requests {
				reply.answers = append(reply.answers, a)
			}
			break
		}
		reply.answers = append(reply.answers, a)
	}
	if err := cur.End(); err != nil {
		return acquireReply{}, err
	}
	return reply, nil
}

// decodeTaken reads the answer of a lock that was free. The lease is all that was
// asked for.
func decodeTaken(cur *script.Cursor, block int) (acquireReply, error) {
	high := cur.Within("token", 1000, maxCount)
	if cur.More() {
		block = int(cur.Within("block", 1, int64(block)))
	}
	if err := cur.End(); err != nil {
		return acquireReply{}, err
	}
	held := answer{code: answerHeld, low: max(high-int64(block)+1, 1), high: high, remaining: millis(maxLease)}
	return acquireReply{now: high / 1000, answers: []answer{held}}, nil
}

// counts are the holds of a session, by mode.
type counts struct{ writes, reads uint32 }

// holdCall states what a session holds. It names the queue where the session is one
// of several.
func holdCall(c *Client, s *session, op int64, n counts, ttl time.Duration) transport.Call {
	lease, life := c.lease(ttl)
	whole, field := identity(c.id, s.nonce.String(), s.owner())
	call := transport.Call{
		Script: scriptHold, Keys: []string{s.room.hash},
		Args: []any{lease, life, whole, field, op, n.writes, n.reads},
	}
	if s.several {
		call.Keys = append(call.Keys, s.room.keys().Queue)
	}
	return call
}

// downgradeCall states that a session that wrote reads from now on.
func downgradeCall(c *Client, s *session, op int64, n counts, ttl time.Duration) transport.Call {
	keys := s.room.keys()
	whole, _ := identity(c.id, s.nonce.String(), s.owner())
	return transport.Call{Script: scriptDowngrade, Keys: []string{keys.Hash, keys.Queue}, Args: []any{
		whole, op, n.reads, ttl.Milliseconds(), c.cfg.tokenKeep.Milliseconds(), c.inboxPrefix,
	}}
}

type holdReply struct {
	held      bool
	several   bool  // the session is one of several: the statement has to name the queue
	now       int64 // 0: the clock was not read
	remaining time.Duration
	more      bool // downgrade: the queue was too long for one call
}

// decodeHold reads the answer of hold for one session, and that of downgrade.
func decodeHold(raw []any) (holdReply, error) {
	cur := scriptHold.Read(raw)
	var reply holdReply
	if len(raw) > 1 {
		reply.now = serverTime(cur)
	}
	left := cur.Within("remaining", answerQueueKey, maxLease)
	cur.Check(left >= 0 || left == answerQueueKey, "remaining")
	reply.held, reply.several, reply.remaining = left > 0, left < 0, millis(left)
	if cur.More() {
		reply.more = yes(cur, "more")
	}
	if err := cur.End(); err != nil {
		return holdReply{}, err
	}
	return reply, nil
}

// What a released nonce had come to.
const (
	wasNothing = 0
	wasQueued  = 1
	wasHeld    = 2
)

// releaseCall ends a nonce whose lease lasts for so long at most. An owner of "" is
// whoever has it.
func releaseCall(c *Client, keys key.Keys, nonce, owner string, until int64, lease time.Duration) transport.Call {
	whole, field := identity(c.id, nonce, owner)
	args := []any{whole, field, until, c.args.release}
	if keep := c.cfg.tokenKeep; lease > keep {
		args = append(args, keep.Milliseconds())
	}
	return transport.Call{Script: scriptRelease, Keys: []string{keys.Hash, keys.Queue}, Args: args}
}

// decodeRelease reads the answer; now is 0 where the clock was not read.
func decodeRelease(raw []any) (was, now int64, more bool, err error) {
	cur := scriptRelease.Read(raw)
	was = cur.Within("was", answerQueueKey, wasHeld)
	if len(raw) > 1 {
		now, more = serverTime(cur), yes(cur, "more")
	}
	cur.Check(was >= wasNothing || was == answerQueueKey, "was")
	return was, now, more, cur.End()
}

// What a server says of where the inbox is.
const (
	whereUnknown = -1
	whereNot     = 0 // on another server
	whereHere    = 1
)

func whereCall(c *Client, keys key.Keys) transport.Call {
	return transport.Call{Script: scriptWhere, Keys: []string{keys.Hash}, Args: []any{c.inboxPrefix + c.id}}
}

func decodeWhere(raw []any) (where int64, err error) {
	cur := scriptWhere.Read(raw)
	where = cur.Within("where", whereUnknown, whereHere)
	return where, cur.End()
}

// A message is what a script publishes to this client's inbox.
type message struct {
	verb      string // grant, look, lost or echo
	nonce     string
	op        int64 // grant: the request whose lease it is
	low, high int64 // grant: the tokens
}

func parseMessage(payload string) (m message, err error) {
	var fields bool
	m.verb, payload, fields = strings.Cut(payload, " ")
	switch m.verb {
	case "echo":
		if fields {
			err = errors.New("message echo has fields")
		}
		return m, err
	case "look", "lost":
		m.nonce = payload
		if len(payload) != nonceLen {
			err = fmt.Errorf("message %q has a nonce of %d bytes", m.verb, len(payload))
		}
		return m, err
	case "grant":
		return parseGrant(payload)
	}
	return m, fmt.Errorf("message of unknown verb %.20q", m.verb)
}

// parseGrant takes what the encoder writes and nothing else: a number with a
// sign or more digits than it needs is none of a script's.
func parseGrant(payload string) (message, error) {
	fields := strings.Split(payload, " ")
	if len(fields) != 4 || len(fields[0]) != nonceLen {
		return message{}, fmt.Errorf("message grant has %d fields, want a nonce and 3 numbers", len(fields))
	}
	var numbers [3]int64
	for i, field := range fields[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n < 1 || n > maxCount || strconv.FormatInt(n, 10) != field {
			return message{}, fmt.Errorf("message grant has the number %.20q", field)
		}
		numbers[i] = n
	}
	if numbers[1] > numbers[2] {
		return message{}, fmt.Errorf("message grant has tokens from %d to %d", numbers[1], numbers[2])
	}
	return message{verb: "grant", nonce: fields[0], op: numbers[0], low: numbers[1], high: numbers[2]}, nil
}

// What a script can say. Lua counts exactly up to 2^53; no lease lasts a century,
// not even by a clock that has stepped back. What is beyond is another's reply.
const (
	maxCount = 1 << 53
	maxLease = 100 * 365 * 24 * 60 * 60 * 1000 // ms
)

// skip reads the fields of an answer that says nothing in them.
func skip(cur *script.Cursor) {
	for range 3 {
		cur.Within("nothing", 0, 0)
	}
	cur.Str("nothing")
}

func serverTime(cur *script.Cursor) int64 { return cur.Within("now", 1, maxCount) }

func yes(cur *script.Cursor, field string) bool { return cur.Within(field, 0, 1) == 1 }

func tokens(cur *script.Cursor) (low, high int64) {
	low = cur.Within("low", 1, maxCount)
	return low, cur.Within("high", low, maxCount)
}

// lease reads what is left of a hold's lease. A hold whose lease has just ended
// is not trusted; that it has is no error.
func lease(cur *script.Cursor) time.Duration {
	return millis(cur.Within("remaining", -maxLease, maxLease))
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
