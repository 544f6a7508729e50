package real_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// TestBranchesInProcessesThatAreKilled has a flow hold a lock in one process, and its branches enter it in others. A
// branch that is killed lets in the next one after its lease. With the process of the flow, its branch loses the lock.
func TestBranchesInProcessesThatAreKilled(t *testing.T) {
	srv := redistest.Real(t)
	id := func(ctx context.Context) string { owner, _ := relock.OwnerFrom(ctx); return owner }
	flow := relock.WithOwner(t.Context(), "flow")
	lock := order{Do: "lock", Lock: "a", TTL: time.Second}
	by := func(ctx context.Context) order { o := lock; o.Owner = id(ctx); return o }

	root := spawn(t, srv.Addr())
	token := root.do(by(flow)).N
	first := spawn(t, srv.Addr())
	child := relock.WithChildOwner(flow)
	if got := first.do(by(child)).N; got != token {
		t.Errorf("the branch has token %d, want %d", got, token)
	}
	client := rig.Open(t, srv.Client(t))
	handle := client.NewLock("a", relock.TTL(time.Second))
	below := rig.MustAcquire(t, client.NewLock("a", relock.TTL(time.Second), relock.Owner(id(relock.WithChildOwner(child)))))
	got := make(chan *relock.Hold, 1)
	go func() {
		h, err := handle.Acquire(relock.WithChildOwner(flow))
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	rig.Queued(t, handle, 1)
	stranger := rig.Beside(func() error { return client.NewLock("a").Lock(t.Context()) })
	rig.Queued(t, handle, 2)

	first.kill()
	second := <-got
	rig.WantIs(t, below.Err(), relock.ErrLost)
	if err := below.Release(); err == nil || !strings.Contains(err.Error(), "ancestor") && !strings.Contains(err.Error(), "redis no longer") {
		t.Errorf("Release = %v, want why the branch was lost", err)
	}
	rig.Must(t, second.Err())
	if second.Token() != token {
		t.Errorf("the next branch has token %d, want %d", second.Token(), token)
	}
	root.kill()
	<-second.Lost()
	rig.WantIs(t, second.Release(), relock.ErrLost)
	rig.Must(t, <-stranger)
	rig.Must(t, client.NewLock("b").Lock(t.Context()))
}
