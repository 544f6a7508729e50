package contract_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// hookEnv names the hook that panics in the process that the test starts.
const hookEnv = "RELOCK_TEST_PANICKING_HOOK"

// panickers are hooks that nobody's call runs, and what makes them run.
var panickers = map[string]struct {
	hooks func(panics func(relock.Event)) relock.Hooks
	cause func(t *testing.T, c *relock.Client, srv *redistest.Server, link *redistest.Link)
}{
	"Renewed": {
		func(panics func(relock.Event)) relock.Hooks { return relock.Hooks{Renewed: panics} },
		func(*testing.T, *relock.Client, *redistest.Server, *redistest.Link) {},
	},
	"RenewalFailed": {
		func(panics func(relock.Event)) relock.Hooks { return relock.Hooks{RenewalFailed: panics} },
		func(_ *testing.T, _ *relock.Client, _ *redistest.Server, link *redistest.Link) { link.Cut() },
	},
	"Lost to the watchdog": {
		func(panics func(relock.Event)) relock.Hooks { return relock.Hooks{Lost: panics} },
		func(_ *testing.T, _ *relock.Client, srv *redistest.Server, _ *redistest.Link) { srv.FlushAll() },
	},
	"Lost by a message": {
		func(panics func(relock.Event)) relock.Hooks { return relock.Hooks{Lost: panics} },
		func(t *testing.T, c *relock.Client, _ *redistest.Server, _ *redistest.Link) {
			_, err := c.NewLock("a").ForceUnlock(t.Context())
			rig.Must(t, err)
		},
	},
}

// A hook that panics where no caller can recover it ends the process, as any goroutine's panic does.
// Fails when the library swallows the panic.
func TestPanicOfAHookWithoutACallerEndsTheProcess(t *testing.T) {
	redistest.Virtual(t)
	if of := os.Getenv(hookEnv); of != "" {
		panicIn(t, of)
		return
	}
	self, err := os.Executable()
	rig.Must(t, err)
	for of := range panickers {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestPanicOfAHookWithoutACallerEndsTheProcess$")
			cmd.Env = append(os.Environ(), hookEnv+"="+of)
			said, err := cmd.CombinedOutput()
			if err == nil || !bytes.Contains(said, []byte("panic: of "+of)) {
				t.Errorf("the process ended with %v, want the panic; it said:\n%s", err, said)
			}
		})
	}
}

// panicIn has one hook panic, and returns only if the process goes on after that.
func panicIn(t *testing.T, of string) {
	p, called := panickers[of], make(chan struct{})
	srv := redistest.Start(t)
	link := redistest.NewLink(t, srv.Dial)
	c := rig.Open(t, srv.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }), relock.Trace(p.hooks(func(relock.Event) {
		close(called)
		panic("of " + of)
	})))
	h := rig.MustAcquire(t, c.NewLock("a", relock.TTL(3*time.Second)))
	p.cause(t, c, srv, link)
	select {
	case <-called:
	case <-time.After(30 * time.Second):
		t.Log("the hook was not called")
		return
	}
	// A process that a panic ends is gone at once; one that goes on is seen to.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	<-ctx.Done()
	t.Logf("the process goes on, the hold's state is %v", h.Err())
}
