package contract_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// A follower answers WAIT for replicas that the embedded server does not have, in
// virtual time.
type follower struct {
	mu    sync.Mutex // guards the following fields
	acks  int64
	slow  bool // it answers when the time that WAIT gives it is over
	waits []string
}

func (*follower) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*follower) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *follower) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		var keys []string
		for _, cmd := range cmds {
			args := cmd.Args()
			if args[0] != "wait" {
				keys = append(keys, fmt.Sprint(args[3]))
				continue
			}
			f.mu.Lock()
			slices.Sort(keys)
			f.waits = append(f.waits, fmt.Sprint(args[1], " for ", keys))
			acks, slow := f.acks, f.slow
			f.mu.Unlock()
			if slow {
				ms, _ := args[2].(int64)
				virtual.Sleep(time.Millisecond * time.Duration(ms))
			}
			cmd.(interface{ SetVal(v any) }).SetVal(acks)
		}
		return err
	}
}

func (f *follower) set(acks int64, slow bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acks, f.slow, f.waits = acks, slow, nil
}

func (f *follower) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.waits)
}

// follow returns a client whose server seems to have replicas.
func follow(x *rig.Lab, acks int64) (*relock.Client, *redistest.Link, *follower) {
	x.T.Helper()
	f := &follower{acks: acks}
	link := redistest.NewLink(x.T, x.Server.Dial)
	rdb := x.Server.Client(x.T, func(o *redis.Options) { o.Dialer = link.Dial })
	rdb.AddHook(f)
	return x.ClientOver(rdb), link, f
}

// TestGrantThatAHeartbeatFindsCountsWhenReplicasHaveIt: the message is lost. Fails
// when what a heartbeat finds is taken for acknowledged.
func TestGrantThatAHeartbeatFindsCountsWhenReplicasHaveIt(t *testing.T) {
	for _, acks := range []int64{0, 1} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			holder := x.Lock("a")
			rig.Must(t, holder.Lock(t.Context()))
			c, link, f := follow(x, 1)
			l := c.NewLock("a", relock.Replicas(1, time.Second))
			waiter := rig.Beside(func() error { return l.Lock(t.Context()) })
			rig.StillWaits(t, waiter)
			f.set(acks, false)
			link.HoleSubscribers()
			virtual.Sleep(101 * time.Millisecond)
			rig.Must(t, holder.Unlock())
			rig.StillWaits(t, waiter)
			virtual.Sleep(15 * time.Second)
			err := rig.Returned(t, waiter)
			if len(f.said()) == 0 {
				t.Error("no replica was asked about the grant")
			}
			if acks == 0 {
				rig.WantIs(t, err, relock.ErrReplicas)
				x.Frees("a")
				return
			}
			rig.Must(t, err)
			rig.Must(t, l.Unlock())
		})
	}
}

// TestRenewalsThatWaitForReplicasDelayNobody: replicas take 5 s to answer, again and
// again. Fails when anything that other locks need waits for them, as the goroutine
// of the watchdog.
func TestRenewalsThatWaitForReplicasDelayNobody(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _, f := follow(x, 1)
		slow := acquire(t, c.NewLock("slow", relock.Replicas(1, 2900*time.Millisecond)), t.Context())
		quick := acquire(t, c.NewLock("quick", relock.TTL(2*time.Second)), t.Context())
		f.set(1, true)
		for range 120 {
			virtual.Sleep(500 * time.Millisecond)
			rig.Must(t, quick.Err())
			rig.Must(t, slow.Err())
		}
		rig.Must(t, quick.Release())
		rig.Must(t, slow.Release())
	})
}

// TestWaitNamesTheReplicasThatItsLockAsksFor: locks of one TTL are renewed at one
// time. Fails when renewals of different demands go out together: each would wait
// for what the strictest asks.
func TestWaitNamesTheReplicasThatItsLockAsksFor(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _, f := follow(x, 3)
		for n := range 4 {
			var opts []relock.LockOption
			if n > 0 {
				opts = []relock.LockOption{relock.Replicas(n, time.Second)}
			}
			rig.Must(t, c.NewLock(fmt.Sprint(n), opts...).Lock(t.Context()))
		}
		f.set(3, false)
		virtual.Sleep(10*time.Second + time.Millisecond)
		got := f.said()
		slices.Sort(got)
		got = slices.Compact(got) // a script that is not known yet goes out twice
		want := []string{"1 for [relock:h:{1}]", "2 for [relock:h:{2}]", "3 for [relock:h:{3}]"}
		if !slices.Equal(got, want) {
			t.Errorf("WAIT %q, want %q", got, want)
		}
	})
}

// Redis is silent, and the timeout of the replicas is longer than one attempt without any.
// Fails when an attempt takes longer than that and a twelfth of the TTL.
func TestOneAttemptWithReplicasIsBounded(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link, _ := follow(x, 1)
		l := c.NewLock("a", relock.TTL(12*time.Second), relock.Replicas(1, 2500*time.Millisecond))
		defer link.Hole()()
		began := x.Now()
		got, err := l.TryLock(t.Context(), 0)
		if took := x.Now() - began; got || !errors.Is(err, relock.ErrUnavailable) || took > 3500*time.Millisecond {
			t.Errorf("TryLock = %v, %v after %v, want ErrUnavailable within 3.5 s", got, err, took)
		}
	})
}
