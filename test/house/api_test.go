package house_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// What follows compiles as long as the API is what users were promised: a
// change of a name, a parameter or a result breaks the build.
var (
	_ func(redis.UniversalClient, ...relock.Option) (*relock.Client, error) = relock.New

	_ func(*relock.Client, string, ...relock.LockOption) *relock.Lock = (*relock.Client).NewLock
	_ func(*relock.Client, context.Context) error                     = (*relock.Client).Shutdown

	_ func(*relock.Client, context.Context, string, time.Duration, func(context.Context) error, ...relock.LockOption) (ran bool, err error) = (*relock.Client).Once
	_ func(*relock.Hold, context.Context, time.Duration) (relock.Ticket, error)                                                             = (*relock.Hold).Detach
	_ func(*relock.Client, context.Context, relock.Ticket) (*relock.Hold, error)                                                            = (*relock.Client).Resume

	_ func(*relock.Client) error = (*relock.Client).Close

	_ func(*relock.Lock, context.Context) error                        = (*relock.Lock).Lock
	_ func(*relock.Lock, context.Context, time.Duration) (bool, error) = (*relock.Lock).TryLock
	_ func(*relock.Lock) error                                         = (*relock.Lock).Unlock

	_ func(*relock.Lock, context.Context) (*relock.Hold, error)                                             = (*relock.Lock).Acquire
	_ func(*relock.Lock, context.Context, time.Duration) (*relock.Hold, error)                              = (*relock.Lock).TryAcquire
	_ func(*relock.Lock, context.Context, func(context.Context) error) error                                = (*relock.Lock).Do
	_ func(*relock.Lock, context.Context, time.Duration, func(context.Context) error) (ran bool, err error) = (*relock.Lock).TryDo
	_ func(*relock.Lock, context.Context) sync.Locker                                                       = (*relock.Lock).SyncLocker
	_ func(*relock.Lock) string                                                                             = (*relock.Lock).Name
	_ func(*relock.Lock) int                                                                                = (*relock.Lock).HoldCount
	_ func(*relock.Lock) int64                                                                              = (*relock.Lock).Token
	_ func(*relock.Lock) <-chan struct{}                                                                    = (*relock.Lock).Lost
	_ func(*relock.Lock, context.Context) (relock.Info, error)                                              = (*relock.Lock).Info
	_ func(*relock.Lock, context.Context) ([]relock.Waiter, error)                                          = (*relock.Lock).Waiters
	_ func(*relock.Lock, context.Context) (bool, error)                                                     = (*relock.Lock).ForceUnlock
	_ func(*relock.Lock, context.Context, relock.Holder) (bool, error)                                      = (*relock.Lock).ForceUnlockHolder
	_ func(*relock.Hold) error                                                                              = (*relock.Hold).Release
	_ func(*relock.Hold) error                                                                              = (*relock.Hold).Err
	_ func(*relock.Hold) <-chan struct{}                                                                    = (*relock.Hold).Lost
	_ func(*relock.Hold) time.Time                                                                          = (*relock.Hold).TrustedUntil
	_ func(*relock.Hold, context.Context) context.Context                                                   = (*relock.Hold).Context
	_ func(*relock.Hold) int64                                                                              = (*relock.Hold).Token
	_ func(*relock.Hold) string                                                                             = (*relock.Hold).Name
	_ func(*relock.Hold) string                                                                             = (*relock.Hold).Owner
	_ func(context.Context, string) context.Context                                                         = relock.WithOwner
	_ func(context.Context) context.Context                                                                 = relock.WithNewOwner
	_ func(context.Context) (id string, ok bool)                                                            = relock.OwnerFrom
	_ func(string) relock.LockOption                                                                        = relock.Owner
	_ func(time.Duration) relock.LockOption                                                                 = relock.TTL
	_ func() relock.LockOption                                                                              = relock.NoWatchdog
	_ func(time.Duration) relock.LockOption                                                                 = relock.MaxHold
	_ func() relock.LockOption                                                                              = relock.LocalReentry
	_ func(time.Duration) relock.LockOption                                                                 = relock.AtLeast
	_ func(int, time.Duration) relock.LockOption                                                            = relock.Replicas
	_ func(...relock.LockOption) relock.Option                                                              = relock.Defaults
	_ func() relock.Option                                                                                  = relock.ShardedPubSub
	_ func(string) relock.Option                                                                            = relock.KeyPrefix
	_ func(time.Duration) relock.Option                                                                     = relock.ReleaseTimeout
	_ func(*slog.Logger) relock.Option                                                                      = relock.Logger
	_ func(relock.Hooks) relock.Option                                                                      = relock.Trace
	_ func(string) relock.Option                                                                            = relock.Label
	_ func() relock.Option                                                                                  = relock.WhoHolds
	_ func(relock.Hooks, ...relock.Hooks) relock.Hooks                                                      = relock.Hooks.Join
	_ func(*relock.Client, context.Context, string) iter.Seq2[relock.Info, error]                           = (*relock.Client).Locks

	_ func(context.Context, string) (*relock.Hold, bool)                                                          = relock.FromContext
	_ func(*relock.Client, string, int, ...relock.LockOption) *relock.Lock                                        = (*relock.Client).NewSemaphore
	_ func(int) relock.LockOption                                                                                 = relock.Weight
	_ func(*relock.Client, string, ...relock.LockOption) *relock.Election                                         = (*relock.Client).NewElection
	_ func(*relock.Election, context.Context, func(context.Context, relock.Term) error) error                     = (*relock.Election).Run
	_ func(*relock.Election) bool                                                                                 = (*relock.Election).IsLeader
	_ func(*relock.Election, context.Context) (relock.Holder, error)                                              = (*relock.Election).Leader
	_ func(*relock.Election, context.Context) iter.Seq2[relock.Holder, error]                                     = (*relock.Election).Observe
	_ func(...*relock.Client) (*relock.Quorum, error)                                                             = relock.NewQuorum
	_ func(*relock.Quorum, string, ...relock.LockOption) *relock.QuorumLock                                       = (*relock.Quorum).NewLock
	_ func(*relock.QuorumLock, context.Context) (*relock.QuorumHold, error)                                       = (*relock.QuorumLock).Acquire
	_ func(*relock.QuorumLock, context.Context, time.Duration) (*relock.QuorumHold, error)                        = (*relock.QuorumLock).TryAcquire
	_ func(*relock.QuorumLock, context.Context, func(context.Context) error) error                                = (*relock.QuorumLock).Do
	_ func(*relock.QuorumLock, context.Context, time.Duration, func(context.Context) error) (ran bool, err error) = (*relock.QuorumLock).TryDo
	_ func(*relock.QuorumLock) string                                                                             = (*relock.QuorumLock).Name
	_ func(*relock.QuorumLock) int                                                                                = (*relock.QuorumLock).HoldCount
	_ func(*relock.QuorumLock) int64                                                                              = (*relock.QuorumLock).Token
	_ func(*relock.QuorumLock) <-chan struct{}                                                                    = (*relock.QuorumLock).Lost
	_ func(*relock.QuorumHold) error                                                                              = (*relock.QuorumHold).Release
	_ func(*relock.QuorumHold) error                                                                              = (*relock.QuorumHold).Err
	_ func(*relock.QuorumHold) <-chan struct{}                                                                    = (*relock.QuorumHold).Lost
	_ func(*relock.QuorumHold) time.Time                                                                          = (*relock.QuorumHold).TrustedUntil
	_ func(*relock.QuorumHold, context.Context) context.Context                                                   = (*relock.QuorumHold).Context
	_ func(*relock.QuorumHold) int64                                                                              = (*relock.QuorumHold).Token
	_ func(*relock.QuorumHold) string                                                                             = (*relock.QuorumHold).Name
	_ func(*relock.QuorumHold) string                                                                             = (*relock.QuorumHold).Owner
	_ func(...*relock.Lock) *relock.Multi                                                                         = relock.NewMulti
	_ func(*relock.Multi, context.Context) (*relock.MultiHold, error)                                             = (*relock.Multi).Acquire
	_ func(*relock.Multi, context.Context, time.Duration) (*relock.MultiHold, error)                              = (*relock.Multi).TryAcquire
	_ func(*relock.Multi, context.Context, func(context.Context) error) error                                     = (*relock.Multi).Do
	_ func(*relock.Multi, context.Context, time.Duration, func(context.Context) error) (ran bool, err error)      = (*relock.Multi).TryDo
	_ func(*relock.MultiHold) error                                                                               = (*relock.MultiHold).Release
	_ func(*relock.MultiHold) error                                                                               = (*relock.MultiHold).Err
	_ func(*relock.MultiHold) <-chan struct{}                                                                     = (*relock.MultiHold).Lost
	_ func(*relock.MultiHold) time.Time                                                                           = (*relock.MultiHold).TrustedUntil
	_ func(*relock.MultiHold, context.Context) context.Context                                                    = (*relock.MultiHold).Context
	_ func(*relock.MultiHold) map[string]int64                                                                    = (*relock.MultiHold).Tokens

	_ relock.Locker = (*relock.Multi)(nil)
	_ relock.Locker = (*relock.QuorumLock)(nil)
	_ relock.Locker = (*relock.Lock)(nil)
	_ relock.Locker = onlyLocker{}
)

var (
	_ = relock.Info{Name: "", Resting: time.Duration(0), Kind: "", Holders: []relock.Holder(nil), Waiters: int(0), CondWaiters: int(0), Permits: int(0)}
	_ = relock.Holder{Owner: "", Read: false, Holds: int(0), Token: int64(0), TTL: time.Duration(0), Label: "", Held: time.Duration(0), Weight: int(0), Detached: false, Sticky: false}
	_ = relock.Term{Token: int64(0)}
	_ = relock.Waiter{Owner: "", Read: false, Age: time.Duration(0), Label: ""}
	_ = relock.Event{Name: "", Owner: "", Token: int64(0), Waited: time.Duration(0), Held: time.Duration(0), Err: error(nil), Kind: "", Read: false}
	_ = relock.Hooks{
		Waiting: (func(context.Context, relock.Event))(nil), Acquired: (func(context.Context, relock.Event))(nil),
		GaveUp: (func(context.Context, relock.Event))(nil), RenewalFailed: (func(relock.Event))(nil),
		Renewed: (func(relock.Event))(nil), Released: (func(relock.Event))(nil), Lost: (func(relock.Event))(nil),
	}
)

// onlyLocker has the three methods: the interface that users implement has no
// room for a fourth.
type onlyLocker struct{}

func (onlyLocker) Lock(context.Context) error                           { return nil }
func (onlyLocker) TryLock(context.Context, time.Duration) (bool, error) { return true, nil }
func (onlyLocker) Unlock() error                                        { return nil }

var sentinels = map[string]error{
	"ErrNotHeld": relock.ErrNotHeld, "ErrLost": relock.ErrLost, "ErrNotAcquired": relock.ErrNotAcquired,
	"ErrUnconfirmed": relock.ErrUnconfirmed, "ErrClosed": relock.ErrClosed, "ErrDeadlock": relock.ErrDeadlock,
	"ErrOwnerMismatch": relock.ErrOwnerMismatch, "ErrKind": relock.ErrKind, "ErrTooManyHolds": relock.ErrTooManyHolds,
	"ErrReplicas": relock.ErrReplicas, "ErrUnspent": relock.ErrUnspent, "ErrInvalidName": relock.ErrInvalidName, "ErrInvalidOption": relock.ErrInvalidOption,
}

func TestErrorsAreTold(t *testing.T) {
	for name, err := range sentinels {
		for other, target := range sentinels {
			want := name == other || name == "ErrLost" && other == "ErrNotHeld"
			if got := errors.Is(err, target); got != want {
				t.Errorf("errors.Is(%s, %s) = %v, want %v", name, other, got, want)
			}
		}
	}
}

// TestStructsOfTheAPIHaveNoOtherFields: the literals above name fields, and do
// not see one too many.
func TestStructsOfTheAPIHaveNoOtherFields(t *testing.T) {
	for _, row := range []struct {
		of   any
		want int
	}{{relock.Info{}, 7}, {relock.Holder{}, 10}, {relock.Waiter{}, 4}, {relock.Event{}, 8}, {relock.Hooks{}, 7}} {
		if got := reflect.TypeOf(row.of).NumField(); got != row.want {
			t.Errorf("%T has %d fields, want %d", row.of, got, row.want)
		}
	}
}

// TestHandlesShowNothingFromWithin: what users get is not made of what they are not to
// touch, as a Hold was that had the room's hold embedded, with its End and its Session.
func TestHandlesShowNothingFromWithin(t *testing.T) {
	for _, of := range []any{
		relock.Client{},
		relock.Lock{},
		relock.RWLock{},
		relock.Hold{},
		relock.Cond{},
		relock.Election{},
		relock.Multi{},
		relock.MultiHold{},
		relock.Quorum{},
		relock.QuorumLock{},
		relock.QuorumHold{},
	} {
		handle := reflect.TypeOf(of)
		for _, f := range reflect.VisibleFields(handle) {
			if f.IsExported() || f.Anonymous && f.Type.NumMethod()+reflect.PointerTo(f.Type).NumMethod() > 0 {
				t.Errorf("%v shows %s, a %v", handle, f.Name, f.Type)
			}
		}
	}
}

func TestNewDoesNoIO(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("a", relock.TTL(time.Second))
		if l.Name() != "a" || l.HoldCount() != 0 || l.Token() != 0 || l.Lost() != nil {
			t.Errorf("new handle: %q, %d holds, token %d, Lost %v", l.Name(), l.HoldCount(), l.Token(), l.Lost())
		}
		x.Until(time.Minute) // not from a goroutine either
		if link.Dials() != 0 {
			t.Errorf("%d connections before the first call, want none", link.Dials())
		}
	})
}

func TestRedisClientStaysTheCallers(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := x.Client()
		rig.Must(t, c.NewLock("a").Do(t.Context(), func(context.Context) error { return nil }))
		rig.Must(t, c.Close())
		rig.Must(t, x.Redis.Ping(t.Context()).Err())
	})
}
