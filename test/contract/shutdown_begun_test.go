package contract_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// A call has begun, and is still asking what its user may run, when Shutdown finds that
// nothing is left: it took the lock after Shutdown had returned, and nobody knew of it.
// Fails without the fix: a client that drains sends no first request.
func TestCallThatHasNotAskedWhenTheClientShutsDownTakesNothing(t *testing.T) {
	for way, call := range map[string]func(x *rig.Lab, c *relock.Client, ticket relock.Ticket) error{
		"try": func(x *rig.Lab, c *relock.Client, _ relock.Ticket) error {
			_, err := c.NewLock("a").TryLock(x.T.Context(), 0)
			return err
		},
		"lock": func(x *rig.Lab, c *relock.Client, _ relock.Ticket) error {
			return c.NewLock("a").Lock(x.T.Context())
		},
		"resume": func(x *rig.Lab, c *relock.Client, ticket relock.Ticket) error {
			_, err := c.Resume(x.T.Context(), ticket)
			return err
		},
	} {
		t.Run(way, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				ticket := detach(t, x.Take(x.Lock("b")), time.Hour)
				c, link := labelled(x)
				asked := false
				link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
					switch {
					case cmd.Is("eval") && !asked: // what it may run: for a while nobody answers
						asked = true
						return redistest.SwallowReply
					case rig.Runs(cmd, "acquire", "resume"):
						t.Error("it asks for the lock")
					}
					return redistest.Pass
				})
				going := rig.Beside(func() error { return call(x, c, ticket) })
				synctest.Wait()
				rig.Must(t, c.Shutdown(t.Context()))
				rig.WantIs(t, rig.Returned(t, going), relock.ErrClosed)
			})
		})
	}
}
