// Package wire encodes the arguments of each script, and decodes its reply and the messages that scripts publish. It
// sends nothing and decides nothing.
package wire

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/lua"
)

// Layout is the number of the layout of keys and messages. layoutMark is how a stored kind ends.
const (
	Layout     = lua.Layout
	layoutMark = "." + Layout
)

// StoredKind splits what Redis stores as the kind into the kind and its layout, which is "0" if it stores none.
func StoredKind(text string) (kind, layout string) {
	if kind, layout, ok := strings.Cut(text, "."); ok {
		return kind, layout
	}
	return text, "0"
}

// The kinds of lock. The hash of a lock has one of them, followed by the layout.
const (
	KindPlain     = "plain"
	KindFair      = "fair"
	KindRW        = "rw"
	KindFairRW    = "fair rw"
	KindSemaphore = "semaphore"
)

// kindArgs are the kinds as Redis stores them. They have the type any, because each conversion of a string allocates.
var kindArgs = map[string]any{
	KindPlain:     KindPlain + layoutMark,
	KindFair:      KindFair + layoutMark,
	KindRW:        KindRW + layoutMark,
	KindFairRW:    KindFairRW + layoutMark,
	KindSemaphore: KindSemaphore + layoutMark,
}

const (
	modeWrite = "w" // exclusive
	modeRead  = "r" // shared with other readers
	modeUse   = "s" // shared while there are permits; counted as a read hold
)

var (
	scriptAcquire   = script.MustLoad(lua.FS, "acquire")
	scriptHold      = script.MustLoad(lua.FS, "hold")
	scriptDowngrade = script.MustLoad(lua.FS, "downgrade")
	scriptRelease   = script.MustLoad(lua.FS, "release")
	scriptRaise     = script.MustLoad(lua.FS, "raise")
	scriptDetach    = script.MustLoad(lua.FS, "detach")
	scriptResume    = script.MustLoad(lua.FS, "resume")
	scriptForce     = script.MustLoad(lua.FS, "force")
	scriptPermit    = script.MustLoad(lua.FS, "permit")
	scriptInfo      = script.MustLoad(lua.FS, "info")
	scriptWaiters   = script.MustLoad(lua.FS, "waiters")
	scriptAwait     = script.MustLoad(lua.FS, "await")
	scriptSignal    = script.MustLoad(lua.FS, "signal")
	scriptAbandon   = script.MustLoad(lua.FS, "abandon")
	scriptAwaiting  = script.MustLoad(lua.FS, "awaiting")
	scriptWhere     = script.MustLoad(lua.FS, "where")
	scriptIntroduce = script.MustLoad(lua.FS, "introduce")
	scriptLabels    = script.MustLoad(lua.FS, "labels")
	scriptUsual     = script.MustLoad(lua.FS, "usual")
)

// How several calls for different locks become one call of usual.lua: which arguments must be equal (Common), and which
// are sent for each lock (Part).
var (
	usualRelease = &transport.Usual{Script: scriptUsual, First: true, Part: []int{0, 1}}
	usualAcquire = &transport.Usual{Script: scriptUsual, Common: []int{0, 6, 7}, Part: []int{1, 3, 4, 5}}
)

// Scripts returns scripts by name, for tests that preload or replace them. It leaves out permit, which only asks what
// the user may run, and usual, which does what acquire and release do.
func Scripts() map[string]*script.Script {
	return map[string]*script.Script{
		"acquire": scriptAcquire, "hold": scriptHold, "downgrade": scriptDowngrade, "release": scriptRelease,
		"force": scriptForce, "info": scriptInfo, "waiters": scriptWaiters, "where": scriptWhere,
		"raise": scriptRaise, "await": scriptAwait, "signal": scriptSignal, "abandon": scriptAbandon, "awaiting": scriptAwaiting,
		"detach": scriptDetach, "resume": scriptResume, "introduce": scriptIntroduce, "labels": scriptLabels,
	}
}

// An Encoder makes the calls of one client: its methods only build them, and send nothing. It is immutable.
type Encoder struct {
	client string        // its ID
	inbox  string        // the prefix of inboxes, which a client's ID follows
	ttl    time.Duration // the client's default
	keep   time.Duration // how long a token counter outlives the last holder

	// Arguments that are the same in most requests of a client. They are made once, since each costs an allocation.

	terms       [Vouch + 1]any // of acquire, by Echo
	release     any            // the terms of release
	write, read any            // counts of an acquisition's first request, with the client's TTL
	lease, life any            // the client's TTL; how long a hash lives with it
}

// A Nonce names one acquisition. It has 128 random bits.
type Nonce [16]byte

// nonceLen is the length of a nonce as text.
const nonceLen = 22

// NewNonce returns a random nonce.
func NewNonce() (n Nonce) {
	_, _ = rand.Read(n[:]) // never fails, says its documentation
	return n
}

func (n Nonce) String() string {
	var text [nonceLen]byte
	base64.RawURLEncoding.Encode(text[:], n[:])
	return string(text[:])
}

// ParseNonce reads a nonce that String has written.
func ParseNonce(text string) (n Nonce, ok bool) {
	if len(text) != nonceLen {
		return n, false
	}
	_, err := base64.RawURLEncoding.Strict().Decode(n[:], []byte(text))
	return n, err == nil
}

// NewEncoder returns the encoder of a client with this ID. ttl is its default TTL.
func NewEncoder(client, inbox string, ttl, keep time.Duration) *Encoder {
	lease := strconv.FormatInt(ttl.Milliseconds(), 10)
	e := &Encoder{
		client: client, inbox: inbox, ttl: ttl, keep: keep,
		release: fmt.Sprintf("%d %s", keep.Milliseconds(), inbox),
		write:   requestCounts(1, false, 1, lease),
		read:    requestCounts(1, true, 1, lease),
		lease:   lease,
		life:    strconv.FormatInt((ttl + keep).Milliseconds(), 10),
	}
	for echo := range e.terms {
		e.terms[echo] = fmt.Sprintf("%d %d %s", keep.Milliseconds(), echo, inbox)
	}
	return e
}

// leases returns the arguments for a TTL: the TTL itself, and how long the hash must live with it.
func (e *Encoder) leases(ttl time.Duration) (lease, life any) {
	switch ttl {
	case e.ttl:
		return e.lease, e.life
	case 0:
		return "0", e.keep.Milliseconds()
	}
	return ttl.Milliseconds(), (ttl + e.keep).Milliseconds()
}

// requestCounts returns "OP WRITES READS TTL ". A request for reading asks for one hold, whatever writes is.
func requestCounts(op int64, read bool, writes uint32, ttl string) string {
	n := " 1 0 "
	switch {
	case read:
		n = " 0 1 "
	case writes > 1:
		n = " " + strconv.FormatUint(uint64(writes), 10) + " 0 "
	}
	return strconv.FormatInt(op, 10) + n + ttl + " "
}

// restText returns what follows the TTL of a request if the name must rest after the hold, and otherwise "".
func restText(r room.Rest) string {
	switch ms := strconv.FormatInt(r.For.Milliseconds(), 10); {
	case r.For == 0:
		return ""
	case r.Aligned:
		return "%" + ms
	default:
		return "+" + ms
	}
}

// identity returns the text by which scripts know a session, and the name of the field with its counts. The field is
// the end of the identity.
func (e *Encoder) identity(nonce, owner string, p room.Permits) (whole, field string) {
	if p.Of == 0 {
		whole = nonce + " " + e.client + " o:" + owner
	} else {
		whole = nonce + " " + e.client + " " + strconv.Itoa(p.Weight) + "/" + strconv.Itoa(p.Of) + " o:" + owner
	}
	return whole, whole[len(whole)-len("o:")-len(owner):]
}

// A Session names a session in a call.
type Session struct {
	Hash    string // key of the lock's hash; only Renew and Raise need it here
	Nonce   string
	Owner   string
	Permits room.Permits // of a semaphore
}

// Bounds of what a script can answer. Lua counts exactly up to 2^53. No lease lasts a century, not even if the clock
// has stepped back. A reply beyond these bounds does not come from our script.
const (
	maxCount = 1 << 53
	maxLease = 100 * 365 * 24 * 60 * 60 * 1000 // ms
)

func serverTime(cur *script.Cursor) int64 { return cur.Within("now", 1, maxCount) }

func yes(cur *script.Cursor, field string) bool { return cur.Within(field, 0, 1) == 1 }

// isWanted is the field of a grant that says that others wait for its end.
const isWanted = "+"

func wanted(cur *script.Cursor) bool {
	said := cur.Str("wanted")
	cur.Check(said == "" || said == isWanted, "wanted")
	return said == isWanted
}

// readsMode reads a mode, and reports whether it is that of a reader. The mode of a semaphore is not.
func readsMode(cur *script.Cursor) bool {
	mode := cur.Str("mode")
	cur.Check(mode == modeRead || mode == modeWrite || mode == modeUse, "mode")
	return mode == modeRead
}

func tokens(cur *script.Cursor) (low, high int64) {
	low = cur.Within("low", 1, maxCount)
	return low, cur.Within("high", low, maxCount)
}

// lease reads how much of a hold's lease is left. 0 or less is no error: the lease has ended.
func lease(cur *script.Cursor) time.Duration {
	return millis(cur.Within("remaining", -maxLease, maxLease))
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
