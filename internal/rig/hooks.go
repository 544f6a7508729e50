package rig

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/seam"
)

// The following functions are those of internal/seam, with types in place of any.

// SetClock makes c, not used yet, read k and take its user's permissions for granted.
func SetClock(c *relock.Client, k *clock.Clock) { seam.SetClock(c, k) }

// ID is the name of c's inbox, and half of the identity of its sessions.
func ID(c *relock.Client) string { return seam.ID(c) }

// Sessions is how many nonces c keeps: asking, queued, held, or being released.
func Sessions(c *relock.Client) int { n, _, _, _ := seam.Kept(c); return n }

// Rooms is how many locks c knows anything of.
func Rooms(c *relock.Client) int { _, n, _, _ := seam.Kept(c); return n }

// Remains says what a client still keeps of locks and calls, or "" for nothing.
func Remains(c *relock.Client) string {
	sessions, rooms, tasks, calls := seam.Kept(c)
	if sessions+rooms+tasks+calls > 0 {
		return fmt.Sprintf("%d sessions, %d rooms, %d tasks, %d calls", sessions, rooms, tasks, calls)
	}
	return ""
}

// Knows reports whether c has a session of that nonce.
func Knows(c *relock.Client, nonce string) bool { return seam.Knows(c, nonce) }

// Listen makes c subscribe without a lock.
func Listen(c *relock.Client) { seam.Listen(c) }

// ListenNow does that, and returns when it has subscribed.
func ListenNow(t testing.TB, c *relock.Client) {
	t.Helper()
	Listen(c)
	Soon(t, func() string {
		if !Hears(c) {
			return "the inbox is not subscribed"
		}
		return ""
	})
}

// Hears reports whether c's inbox is subscribed.
func Hears(c *relock.Client) bool { return seam.Hears(c) }

// PretendHolds makes h's owner hold n times more than it does, as far as its client
// knows: nobody can lock 2^31-1 times in a test.
func PretendHolds(h *relock.Hold, n int) { seam.PretendHolds(h, n) }

// Nonce is the name of the acquisition that h is of.
func Nonce(h *relock.Hold) string { return seam.Nonce(h) }

// PretendShort makes h's session look as if too few replicas had its latest renewal.
func PretendShort(h *relock.Hold) { seam.PretendShort(h) }

// RenewAround is a round of c's watchdog for every session. It calls between in the middle of the round: before the
// renewals are stated, or with stated after that, which is for one session only.
func RenewAround(c *relock.Client, stated bool, between func()) {
	seam.RenewAround(c, stated, between)
}

// AskAgainWhenLost runs the next try of a call for l that has not noticed the loss of its grant.
func AskAgainWhenLost(ctx context.Context, l *relock.Lock) error {
	return seam.AskAgainWhenLost(ctx, l)
}

// AcquireAround is Acquire of a named owner. It calls between before l has the hold.
func AcquireAround(ctx context.Context, l *relock.Lock, owner string, between func()) (*relock.Hold, error) {
	h, err := seam.AcquireAround(ctx, l, owner, between)
	return h.(*relock.Hold), err
}

// drawn is the clients' own way to draw pauses.
var drawn = ending.Spread

// Pauses are drawn from the virtual clock in a bubble, so that a schedule runs the same way again.
func init() { ending.Spread = spread }

func spread(d time.Duration) time.Duration {
	if !redistest.InBubble() || d <= 0 {
		return drawn(d)
	}
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendInt(nil, time.Now().UnixNano(), 10))
	return time.Duration(h.Sum64() % uint64(d))
}

// DrawAtRandom makes pauses random in bubbles too, until restore is called. No client may be in use at either call.
func DrawAtRandom() (restore func()) {
	ending.Spread = drawn
	return func() { ending.Spread = spread }
}
