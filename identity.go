package relock

import (
	"strconv"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// An acquisition is what Redis knows by one nonce. It waits, as an entry; then it
// holds, as a session; then it is over, and forgotten once Redis has heard of that.
// Its requests carry growing numbers (op), so that Redis can tell a late copy from news.
type acquisition struct {
	room   *room
	nonce  wire.Nonce
	number int64  // of the owner made for it; 0: it has a name
	name   string // the owner's; "": it is one made for the acquisition
	terms  *terms // of the handle that asked
	read   bool   // asked for in shared mode
	task   renewal.Task

	// Guarded by room.mu:

	front   bool // carries its flow's claim
	over    bool // released, lost, or given up
	op      int64
	doubt   doubt
	entry   *entry   // nil: it does not wait any more
	session *session // nil: it has not been granted
	// lost is why it is over, where no unlock ended it; while it holds, why the latest
	// renewal extended nothing, though Redis has it.
	lost error
}

func (a *acquisition) named() bool { return a.name != "" }

// waits needs room.mu.
func (a *acquisition) waits() bool { return a.session == nil && !a.over }

// held needs room.mu.
func (a *acquisition) held() bool { return a.session != nil && !a.over }

// attempt is how long one request is waited for before it is sent again.
func (a *acquisition) attempt() time.Duration { return trust.Attempt(a.terms.ttl) }

// lasts is how long Redis keeps what the acquisition has there, at most. Holds that
// are unlocked count: a lease never gets shorter. It needs room.mu.
func (a *acquisition) lasts() time.Duration {
	if a.session == nil {
		return a.terms.ttl
	}
	return max(a.terms.ttl, a.session.longest)
}

// trusted returns until when a lease can be trusted of which a request sent at the
// given time was told the rest. No lease is longer than was ever asked for; it only
// looks so while the server's clock is behind the one it was granted by, and it ends
// at once when that clock is put right. It needs room.mu.
func (a *acquisition) trusted(sent clock.Instant, remaining time.Duration) clock.Instant {
	remaining = min(remaining, a.lasts())
	return trust.Until(sent, remaining)
}

// A doubt is until when Redis may act on a request of which nobody here would hear.
type doubt struct {
	copies int32 // requests in flight
	kept   bool  // one has gone unanswered for good
	until  int64 // server ms; 0: there is none
}

func (d *doubt) sent(notAfter int64) {
	d.copies++
	d.until = max(d.until, notAfter)
}

// keep is for a request that has come true in Redis and not here.
func (d *doubt) keep(notAfter int64) { d.kept, d.until = true, max(d.until, notAfter) }

// settled notes how a request for the lock ended. It needs room.mu.
func (a *acquisition) settled(err error) {
	a.paid(err)
	d := &a.doubt
	d.copies--
	if err != nil && transport.Classify(err) == transport.Unknown {
		d.kept = true
	}
	if d.copies == 0 && !d.kept {
		d.until = 0
	}
}

// madeMark begins the owners' names that are made here, and no other: nobody may enter
// an anonymous hold, which is passed on as if nobody had.
const madeMark = '~'

// nameLen is how much of 128 random bits tells the anonymous holds of two clients apart,
// for people: their nonces do for Redis. So a record fits into the 64 bytes up to
// which Redis keeps a hash as one string, in half the memory (hash-max-listpack-value).
const nameLen = 8

// owner returns the name given, or the one made for the acquisition. That is made on
// demand: most holds are anonymous, and their names are never read.
func (a *acquisition) owner() string {
	if a.named() {
		return a.name
	}
	return string(a.appendOwner(make([]byte, 0, 64)))
}

func (a *acquisition) appendOwner(text []byte) []byte {
	if a.named() {
		return append(text, a.name...)
	}
	text = append(append(append(text, madeMark), a.room.c.name...), ':')
	return strconv.AppendInt(text, a.number, 36)
}

// wireSession is what statements of the session name. It needs room.mu.
func (s *session) wireSession() wire.Session {
	w := wire.Session{Hash: s.room.hash, Nonce: s.nonce.String(), Owner: s.owner()}
	if s.several {
		w.Queue = s.room.keys().Queue
	}
	return w
}
