package contract_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/lua"
)

// passing is the part of a hook that changes nothing.
type passing struct{}

func (passing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (passing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// slowToRelease ends a context as Redis answers a request for a lock, and keeps each release back for half a second.
type slowToRelease struct {
	passing
	acquire, release string
	end              func()
}

func (s *slowToRelease) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		runs := func(sha string) bool { return slices.Contains(cmd.Args(), any(sha)) }
		if runs(s.release) {
			virtual.Sleep(500 * time.Millisecond)
		}
		err := next(ctx, cmd)
		if runs(s.acquire) && s.end != nil {
			s.end()
			s.end = nil
		}
		return err
	}
}

// A grant comes as its call ends, so the call gives it back. Where holds are counted in Redis, that is first a matter
// of fewer holds, and of a release after that.
// Fails when a later attempt of the same client waits for the first of the two only, and finds the lock taken.
func TestALaterAttemptFindsWhatAnEndedCallHasGivenBackFree(t *testing.T) {
	for kind, lock := range map[string]func(c *relock.Client) *relock.Lock{
		"plain":     func(c *relock.Client) *relock.Lock { return c.NewLock("a") },
		"writing":   func(c *relock.Client) *relock.Lock { return c.NewRWLock("a").WLocker() },
		"owner":     func(c *relock.Client) *relock.Lock { return c.NewLock("a", relock.Owner("o")) },
		"semaphore": func(c *relock.Client) *relock.Lock { return c.NewSemaphore("a", 1) },
	} {
		t.Run(kind, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				rig.LoadScripts(t, x.Redis)
				sha := func(name string) string { return script.MustLoad(lua.FS, name).SHA }
				rdb, slow := x.Server.Client(t), &slowToRelease{acquire: sha("acquire"), release: sha("release")}
				rdb.AddHook(slow)
				c := rig.Open(t, rdb)
				rig.Must(t, c.NewLock("warm").Do(t.Context(), func(context.Context) error { return nil }))
				ctx, cancel := context.WithCancel(t.Context())
				slow.end = cancel
				rig.WantIs(t, lock(c).Lock(ctx), context.Canceled)
				if had, err := lock(c).TryLock(t.Context(), 0); !had || err != nil {
					t.Errorf("%v, %v, want the lock", had, err)
				}
			})
		})
	}
}
