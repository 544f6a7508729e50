package contract_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestAStoppedServerIsNoContention: a process that hangs keeps its connections, and
// accepts others; one that is gone refuses them. So a client that has asked it before
// and one that has not.
func TestAStoppedServerIsNoContention(t *testing.T) {
	srv := redistest.Real(t)
	clients := map[string]*relock.Client{
		"warm": rig.Open(t, srv.Client(t), relock.Defaults(relock.TTL(time.Second))),
		"new":  rig.Open(t, srv.Client(t), relock.Defaults(relock.TTL(time.Second))),
		"new, with deadlines": rig.Open(t, srv.Client(t, func(o *redis.Options) {
			o.ContextTimeoutEnabled = true
		}), relock.Defaults(relock.TTL(time.Second))),
	}
	rig.Must(t, clients["warm"].NewLock("b").Do(t.Context(), func(context.Context) error { return nil }))
	for _, state := range []string{"stopped", "gone"} {
		if state == "stopped" {
			srv.Pause()
		} else {
			srv.Kill()
		}
		for name, c := range clients {
			for _, wait := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond} {
				ctx := context.WithoutCancel(t.Context())
				l := c.NewLock(fmt.Sprint(state, name, wait))
				got, err := l.TryLock(ctx, wait)
				// How long it takes is for tests in virtual time.
				wantOutage(t, fmt.Sprintf("%s, %s: TryLock(%v)", state, name, wait), time.Now(), time.Minute, got, err)
			}
		}
	}
}
