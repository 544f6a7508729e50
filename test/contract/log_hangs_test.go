package contract_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// hanging is a handler that does not return until it is let go.
type hanging struct {
	slog.Handler
	called atomic.Int64
	letGo  chan struct{}
}

func (h *hanging) Enabled(context.Context, slog.Level) bool { <-h.letGo; return true }

func (h *hanging) Handle(context.Context, slog.Record) error {
	h.called.Add(1)
	<-h.letGo
	return nil
}

// onlyHandles hangs in Handle only.
type onlyHandles struct{ *hanging }

func (onlyHandles) Enabled(context.Context, slog.Level) bool { return true }

// A stranger publishes to the client's inbox, Redis is away for a while, and the lock's data is
// lost. Fails when a call or a goroutine that logs one of these waits for the handler.
func TestAHandlerOfTheLogThatHangsHoldsUpNothing(t *testing.T) {
	for name, in := range map[string]func(h *hanging) slog.Handler{
		"in Handle":  func(h *hanging) slog.Handler { return onlyHandles{h} },
		"in Enabled": func(h *hanging) slog.Handler { return h },
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				h := &hanging{letGo: make(chan struct{})}
				defer close(h.letGo)
				const ttl = 9 * time.Second
				c, link := x.Linked(relock.Logger(slog.New(in(h))))
				hold := x.Take(c.NewLock("mine", relock.TTL(ttl)))
				other := x.Take(x.Lock("theirs", relock.TTL(ttl)))
				waiter := rig.Beside(func() error { return c.NewLock("theirs", relock.TTL(ttl)).Lock(t.Context()) })
				synctest.Wait()
				for _, channel := range x.Redis.PubSubChannels(t.Context(), "*").Val() {
					rig.Must(t, x.Redis.Publish(t.Context(), channel, "a stranger's").Err())
				}
				heal := link.Cut()
				virtual.Sleep(2800 * time.Millisecond)
				heal()
				virtual.Sleep(5 * ttl)
				if err := hold.Err(); err != nil {
					t.Errorf("not renewed: %v", err)
				}
				rig.Must(t, other.Release())
				synctest.Wait()
				rig.Must(t, rig.Returned(t, waiter))
				x.Server.FlushAll()
				virtual.Sleep(ttl)
				if err := hold.Err(); err == nil {
					t.Error("the loss is not told")
				}
				if name == "in Handle" && h.called.Load() != 1 {
					t.Errorf("the handler was called %d times, want once", h.called.Load())
				}
				began := time.Now()
				rig.Must(t, c.Close())
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("closed after %v", took)
				}
			})
		})
	}
}

// background counts the calls with another context than context.Background.
type background struct {
	slog.Handler
	calls, others atomic.Int64
}

func (h *background) Enabled(ctx context.Context, _ slog.Level) bool { h.note(ctx); return true }

func (h *background) Handle(ctx context.Context, _ slog.Record) error { h.note(ctx); return nil }

func (h *background) note(ctx context.Context) {
	if h.calls.Add(1); ctx != context.Background() {
		h.others.Add(1)
	}
}

func TestTheContextOfARecordIsAlwaysTheBackground(t *testing.T) {
	h := &background{}
	goWrong(t, relock.Logger(slog.New(h)))
	if h.calls.Load() == 0 || h.others.Load() != 0 {
		t.Errorf("%d of %d calls of the handler have another context", h.others.Load(), h.calls.Load())
	}
}
