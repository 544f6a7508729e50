package redisson

import (
	"fmt"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
)

var errMissing = fmt.Errorf("%w: redis no longer has it", relock.ErrLost)

// A round is one session's share of a batch of renewals.
type round struct {
	s     *session
	call  transport.Call
	holds []*Hold // the holds that are renewed

	shortest time.Duration // the shortest of their TTLs
}

// renewed processes the answer to a renewal. It needs the client's mu. The caller must run todo without it.
func (r round) renewed(got transport.Result, sent, now clock.Instant) (todo []func()) {
	s := r.s
	s.renewing = false
	switch {
	case got.Err != nil || len(got.Reply) != 2:
		s.retry = now.Add(min(r.shortest/10, time.Second))
	case got.Reply[0] == int64(0):
		todo = s.lose(errMissing)
	default:
		left, _ := got.Reply[1].(int64)
		s.retry = clock.Instant{}
		s.lasts = clock.Max(s.lasts, now.Add(min(time.Duration(left)*time.Millisecond, s.longest)))
		for _, h := range r.holds {
			if !h.released && h.lost == nil && !now.Reached(h.trust) {
				// The lease may be that of the owner's other hold or of another reader. This hold is only trusted for its own TTL.
				rest := min(time.Duration(left)*time.Millisecond, h.terms.ttl)
				h.trust = clock.Max(h.trust, trust.Until(sent, rest))
			}
		}
	}
	s.arm(now)
	return todo
}
