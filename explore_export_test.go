package relock

import (
	"hash/fnv"
	"io/fs"
	"strconv"
	"time"

	"github.com/relock-go/relock/internal/script"
)

// Pauses are drawn from the virtual clock in a bubble, so that a schedule runs
// the same way again.
func init() {
	spread = func(d time.Duration) time.Duration {
		now := time.Now()
		if now.Year() > 2015 || d <= 0 { // a bubble's clock begins in 2000
			return drawn(d)
		}
		h := fnv.New64a()
		_, _ = h.Write(strconv.AppendInt(nil, now.UnixNano(), 10))
		return time.Duration(h.Sum64() % uint64(d))
	}
}

// drawn is spread as clients have it.
var drawn = spread

// DrawAtRandom has pauses drawn in bubbles as well, until restore is called. No
// client may be in use at either call.
func DrawAtRandom() (restore func()) {
	before := spread
	spread = drawn
	return func() { spread = before }
}

// scripts are all that a client sends.
var scripts = map[string]*script.Script{
	"acquire": scriptAcquire, "hold": scriptHold, "renew": scriptRenew, "downgrade": scriptDowngrade, "release": scriptRelease,
	"force": scriptForce, "info": scriptInfo, "waiters": scriptWaiters, "where": scriptWhere,
}

// Scripts returns the scripts by name.
func Scripts() map[string]*script.Script { return scripts }

// SwapScripts makes every client of the process send the scripts in fsys, until
// restore is called. No client may be in use at either call.
func SwapScripts(fsys fs.FS) (restore func()) {
	before := map[string]script.Script{}
	for name, s := range scripts {
		before[name] = *s
		*s = *script.MustLoad(fsys, name)
	}
	return func() {
		for name, s := range scripts {
			*s = before[name]
		}
	}
}

// Listen makes c subscribe without a lock.
func (c *Client) Listen() { c.inbox.Start() }

// Hears reports whether c's inbox is subscribed.
func (c *Client) Hears() bool { return c.inbox.Up() }

// Knows reports whether c has a session of that nonce.
func (c *Client) Knows(nonce string) bool { return c.lookup(nonce) != nil }

// Nonce is the name of the acquisition that h is of.
func (h *Hold) Nonce() string { return h.session.nonce.String() }

// An Answer is one of those in a reply of acquire.
type Answer struct {
	Code      int64
	Ghost     string
	Remaining time.Duration
}

// ReadAcquire decodes a reply of acquire to the given number of requests.
func ReadAcquire(raw []any, requests int) ([]Answer, error) {
	reply, err := decodeAcquire(raw, requests)
	var all []Answer
	for _, a := range reply.answers {
		all = append(all, Answer{a.code, a.ghost, a.remaining})
	}
	return all, err
}
