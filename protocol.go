package relock

import (
	"fmt"
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
	named bool
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

func acquireCall(c *Client, keys key.Keys, kind string, notAfter int64, echo bool, requests ...request) transport.Call {
	args := make([]any, 0, 6+8*len(requests))
	args = append(args, c.inboxPrefix, kind, c.id, notAfter, c.cfg.tokenKeep.Milliseconds(), flag(echo))
	for _, r := range requests {
		args = append(args, r.nonce, r.op, r.owner, flag(r.named), r.mode, r.ttl.Milliseconds(), r.block, r.place)
	}
	return transport.Call{Script: scriptAcquire, Keys: []string{keys.Hash, keys.Queue}, Args: args}
}

func decodeAcquire(raw []any, requests int) (acquireReply, error) {
	cur := scriptAcquire.Read(raw)
	reply := acquireReply{now: cur.Int("now"), more: cur.Int("more") == 1}
	for range requests {
		a := answer{code: cur.Int("code")}
		switch a.code {
		case answerKind:
			a.kind = cur.Str("kind")
		case answerLate, answerQueueKey:
			// Said once, for all requests.
		default:
			x, y, z, ghost := cur.Int("low or ticket"), cur.Int("high or wait"), cur.Int("remaining or first"), cur.Str("ghost")
			if a.code == answerHeld {
				a.low, a.high, a.remaining = x, y, millis(z)
			} else {
				a.ticket, a.wait, a.first, a.ghost = x, millis(y), z == 1, ghost
			}
		}
		if a.code == answerKind || a.code == answerLate || a.code == answerQueueKey && !cur.More() {
			for range requests {
				reply.answers = append(reply.answers, a)
			}
			break
		}
		reply.answers = append(reply.answers, a)
	}
	return reply, cur.Err()
}

// counts are the holds of a session, by mode.
type counts struct{ writes, reads int }

func (n counts) total() int { return n.writes + n.reads }

// holdCall states what a session holds. A writer's statement names one key.
func holdCall(c *Client, s *session, op int64, n counts, ttl time.Duration) transport.Call {
	call := transport.Call{Script: scriptHold, Keys: []string{s.room.keys.Hash}, Args: []any{
		c.id, s.nonce, s.owner, op, n.writes, n.reads, ttl.Milliseconds(), c.cfg.tokenKeep.Milliseconds(),
	}}
	if n.writes == 0 {
		call.Keys = append(call.Keys, s.room.keys.Queue)
	}
	return call
}

// downgradeCall states that a session that wrote reads from now on.
func downgradeCall(c *Client, s *session, op int64, n counts, ttl time.Duration) transport.Call {
	return transport.Call{Script: scriptDowngrade, Keys: []string{s.room.keys.Hash, s.room.keys.Queue}, Args: []any{
		c.inboxPrefix, c.id, s.nonce, s.owner, op, n.reads, ttl.Milliseconds(), c.cfg.tokenKeep.Milliseconds(),
	}}
}

type holdReply struct {
	held      bool
	now       int64
	low, high int64
	remaining time.Duration
	more      bool // downgrade: the queue was too long for one call
}

func decodeHold(raw []any) (holdReply, error) {
	cur := scriptHold.Read(raw)
	reply := holdReply{held: cur.Int("held") == 1, now: cur.Int("now")}
	if reply.held {
		reply.low, reply.high, reply.remaining = cur.Int("low"), cur.Int("high"), millis(cur.Int("remaining"))
	}
	if cur.More() {
		reply.more = cur.Int("more") == 1
	}
	return reply, cur.End()
}

// What a released nonce had come to.
const (
	wasNothing = 0
	wasQueued  = 1
	wasHeld    = 2
)

func releaseCall(c *Client, keys key.Keys, nonce, owner string, until int64) transport.Call {
	return transport.Call{Script: scriptRelease, Keys: []string{keys.Hash, keys.Queue}, Args: []any{
		c.inboxPrefix, c.id, nonce, owner, until, c.cfg.tokenKeep.Milliseconds(),
	}}
}

func decodeRelease(raw []any) (was, now int64, more bool, err error) {
	cur := scriptRelease.Read(raw)
	was, now, more = cur.Int("was"), cur.Int("now"), cur.Int("more") == 1
	return was, now, more, cur.End()
}

// A message is what a script publishes to this client's inbox.
type message struct {
	verb      string // grant, look, lost or echo
	nonce     string
	op        int64 // grant: the request whose lease it is
	low, high int64 // grant: the tokens
}

func parseMessage(payload string) (m message, err error) {
	m.verb, payload, _ = strings.Cut(payload, " ")
	switch m.verb {
	case "echo":
		return m, nil
	case "look", "lost":
		m.nonce = payload
		if len(payload) != nonceLen {
			err = fmt.Errorf("message %q has a nonce of %d bytes", m.verb, len(payload))
		}
		return m, err
	case "grant":
		var rest string
		n, err := fmt.Sscanf(payload, "%22s %d %d %d%s", &m.nonce, &m.op, &m.low, &m.high, &rest)
		if n != 4 || len(m.nonce) != nonceLen {
			return m, fmt.Errorf("message grant has %d of 4 fields: %w", n, err)
		}
		return m, nil
	}
	return m, fmt.Errorf("message of unknown verb %.20q", m.verb)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
