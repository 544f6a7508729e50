package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock"
)

// weighing returns the actor's handle on a semaphore whose holds use so many permits.
func (a *actor) weighing(l Lock, weight int) (string, *handles) {
	name := a.Prefix + "/" + l.Name
	key := fmt.Sprintf("%s %d", name, weight)
	h := a.locks[key]
	if h == nil {
		h = &handles{ttl: l.TTL, kind: l.Kind, weight: weight, of: l.Permits}
		h.lock = a.client.NewSemaphore(name, l.Permits, relock.TTL(l.TTL), relock.Weight(weight))
		a.locks[key] = h
	}
	return name, h
}

// permits takes some of a semaphore's permits, up to half of them, and keeps them for a
// moment, at times for longer than a lease.
func permits(ctx context.Context, a *actor) {
	l := terms[fmt.Sprintf("permits%d", a.rand.IntN(2))]
	name, hs := a.weighing(l, 1+a.rand.IntN((l.Permits+1)/2))
	ctx, cancel := a.patiently(ctx)
	defer cancel()
	t := try{once: a.rand.IntN(4) == 0, wait: time.Duration(a.rand.IntN(40)) * time.Millisecond}
	if h := a.acquire(ctx, name, hs, t); h != nil {
		d := time.Duration(a.rand.IntN(8)) * time.Millisecond
		if a.rand.IntN(50) == 0 {
			d = time.Duration(float64(l.TTL) * (0.3 + a.rand.Float64()))
		}
		a.keep(h, d)
		a.release(h)
	}
	a.rest(8 * time.Millisecond)
}
