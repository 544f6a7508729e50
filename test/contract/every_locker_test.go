package contract_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/redisson"
)

// The cases below state what a Locker and its holds promise. Each case runs on every lock of the
// family that excludes: those of the core, Multi, QuorumLock, and those in Redisson's layout.

// A locker is a lock of any type.
type locker interface {
	relock.Locker
	Do(ctx context.Context, fn func(ctx context.Context) error) error
}

// A tryDoer is a locker of the core: Redisson's layout has no TryDo.
type tryDoer interface {
	TryDo(ctx context.Context, wait time.Duration, fn func(ctx context.Context) error) (bool, error)
}

// A held is a hold of any type.
type held interface {
	Err() error
	Lost() <-chan struct{}
	Context(parent context.Context) context.Context
	Release() error
}

// A subject is a handle on the lock "a", of a process of its own.
type subject struct {
	locker
	acquire    func(ctx context.Context) (held, error)
	tryAcquire func(ctx context.Context, wait time.Duration) (held, error)
}

// subjectOf makes a subject of any type of lock.
func subjectOf[H held, L interface {
	locker
	Acquire(ctx context.Context) (H, error)
	TryAcquire(ctx context.Context, wait time.Duration) (H, error)
}](l L) subject {
	return subject{
		locker:     l,
		acquire:    func(ctx context.Context) (held, error) { return l.Acquire(ctx) },
		tryAcquire: func(ctx context.Context, wait time.Duration) (held, error) { return l.TryAcquire(ctx, wait) },
	}
}

// A scene has the servers of one kind of lock, and makes handles of processes.
type scene struct {
	servers []*redistest.Server
	process func() subject
}

// oneServer is a scene on the server of the lab.
func oneServer(process func(x *rig.Lab) subject) func(x *rig.Lab) scene {
	return func(x *rig.Lab) scene {
		return scene{[]*redistest.Server{x.Server}, func() subject { return process(x) }}
	}
}

func inRedisson(lock func(c *redisson.Client) *redisson.Lock) func(x *rig.Lab) scene {
	return oneServer(func(x *rig.Lab) subject {
		x.T.Helper()
		c, err := redisson.New(x.Server.Client(x.T))
		rig.Must(x.T, err)
		x.T.Cleanup(func() { _ = c.Close() })
		return subjectOf(lock(c))
	})
}

var everyLocker = map[string]func(x *rig.Lab) scene{
	"plain": oneServer(func(x *rig.Lab) subject { return subjectOf(x.Lock("a")) }),
	"fair":  oneServer(func(x *rig.Lab) subject { return subjectOf(x.Lock("a", relock.Fair())) }),
	"write": oneServer(func(x *rig.Lab) subject { return subjectOf(x.Client().NewRWLock("a").WLocker()) }),
	"semaphore": oneServer(func(x *rig.Lab) subject {
		return subjectOf(x.Client().NewSemaphore("a", 1))
	}),
	"multi": oneServer(func(x *rig.Lab) subject {
		c := x.Client()
		return subjectOf(relock.NewMulti(c.NewLock("a"), c.NewLock("b", relock.Fair())))
	}),
	"quorum": func(x *rig.Lab) scene {
		p := newPrimaries(x, 3)
		return scene{p.all, func() subject { return subjectOf(p.lock("a")) }}
	},
	"redisson":       inRedisson(func(c *redisson.Client) *redisson.Lock { return c.NewLock("a") }),
	"redisson fair":  inRedisson(func(c *redisson.Client) *redisson.Lock { return c.NewLock("a", redisson.Fair()) }),
	"redisson write": inRedisson(func(c *redisson.Client) *redisson.Lock { return c.NewRWLock("a").WLocker() }),
}

// onEveryLocker plays a case with two processes.
func onEveryLocker(t *testing.T, play func(t *testing.T, x *rig.Lab, s scene, a, b subject)) {
	t.Helper()
	for what, begin := range everyLocker {
		t.Run(what, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				s := begin(x)
				play(t, x, s, s.process(), s.process())
			})
		})
	}
}

// wantTakenFor fails when the lock is not taken for as long as wait.
func wantTakenFor(t *testing.T, l subject, wait time.Duration) {
	t.Helper()
	began := time.Now()
	if got, err := l.TryLock(t.Context(), wait); got || err != nil {
		t.Errorf("TryLock for %v = %v, %v; want false, nil", wait, got, err)
	}
	if took := time.Since(began); took < wait || took > wait+time.Second {
		t.Errorf("TryLock for %v took %v", wait, took)
	}
}

// wantFreeNow fails when the lock is not to be had at once.
func wantFreeNow(t *testing.T, l subject) {
	t.Helper()
	synctest.Wait()
	if got, err := l.TryLock(t.Context(), 0); !got || err != nil {
		t.Errorf("TryLock = %v, %v; want true, nil", got, err)
		return
	}
	rig.Must(t, l.Unlock())
}

func TestEveryLockerHasOneUnlockForEachSuccess(t *testing.T) {
	onEveryLocker(t, func(t *testing.T, _ *rig.Lab, _ scene, a, b subject) {
		rig.WantIs(t, a.Unlock(), relock.ErrNotHeld)
		rig.Must(t, a.Lock(t.Context()))
		wantTakenFor(t, b, 0)
		wantTakenFor(t, b, 2*time.Second)
		wantTakenFor(t, a, 0)
		rig.WantIs(t, b.Unlock(), relock.ErrNotHeld)
		rig.Must(t, a.Unlock())
		rig.WantIs(t, a.Unlock(), relock.ErrNotHeld)
		got, err := b.TryLock(t.Context(), time.Second)
		if rig.Must(t, err); !got {
			t.Error("a free lock is taken")
		}
		rig.Must(t, b.Unlock())
		wantFreeNow(t, a)
	})
}

func TestEveryLockerEndsItsWaitWithItsContext(t *testing.T) {
	onEveryLocker(t, func(t *testing.T, _ *rig.Lab, _ scene, a, b subject) {
		rig.Must(t, a.Lock(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		rig.WantIs(t, b.Lock(ctx), context.DeadlineExceeded)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("Lock took %v, want the 3 s of its context", took)
		}
		rig.WantIs(t, b.Lock(ctx), context.DeadlineExceeded)
		_, err := b.TryLock(ctx, time.Second)
		rig.WantIs(t, err, context.DeadlineExceeded)
		_, err = b.tryAcquire(t.Context(), time.Second)
		rig.WantIs(t, err, relock.ErrNotAcquired)
		rig.WantIs(t, b.Lock(nil), relock.ErrInvalidOption) //nolint:staticcheck // nil is what is tested
		_, err = b.TryLock(nil, time.Second)                //nolint:staticcheck // the same
		rig.WantIs(t, err, relock.ErrInvalidOption)
		synctest.Wait()
		rig.Must(t, a.Unlock())
		wantFreeNow(t, b)
	})
}

func TestEveryHoldIsReleasedOnce(t *testing.T) {
	onEveryLocker(t, func(t *testing.T, _ *rig.Lab, _ scene, a, b subject) {
		h, err := a.acquire(t.Context())
		rig.Must(t, err)
		ctx := h.Context(t.Context())
		rig.Must(t, errors.Join(h.Err(), ctx.Err()))
		rig.Must(t, h.Release())
		rig.WantIs(t, h.Err(), relock.ErrNotHeld)
		rig.WantNot(t, h.Err(), relock.ErrLost)
		rig.WantIs(t, h.Release(), relock.ErrNotHeld)
		<-ctx.Done()
		rig.WantIs(t, context.Cause(ctx), relock.ErrNotHeld)
		select {
		case <-h.Lost():
			t.Error("what was released in time is lost")
		default:
		}
		wantFreeNow(t, b)
	})
}

func TestEveryHoldTellsItsLoss(t *testing.T) {
	onEveryLocker(t, func(t *testing.T, _ *rig.Lab, s scene, a, _ subject) {
		h, err := a.acquire(t.Context())
		rig.Must(t, err)
		ctx := h.Context(t.Context())
		for _, srv := range s.servers {
			srv.FlushAll()
		}
		thief := s.process() // so that a majority is not taken again
		if got, err := thief.TryLock(t.Context(), time.Second); !got || err != nil {
			t.Errorf("TryLock after the data was lost: %v, %v", got, err)
		}
		<-h.Lost()
		<-ctx.Done()
		rig.WantIs(t, context.Cause(ctx), relock.ErrLost)
		rig.WantIs(t, h.Err(), relock.ErrLost, relock.ErrNotHeld)
		rig.WantIs(t, h.Release(), relock.ErrLost)
		err = h.Release()
		rig.WantIs(t, err, relock.ErrNotHeld)
		rig.WantNot(t, err, relock.ErrLost)
		rig.Must(t, thief.Unlock())
		wantFreeNow(t, a)
	})
}

func TestEveryDoReleasesHoweverItEnds(t *testing.T) {
	onEveryLocker(t, func(t *testing.T, _ *rig.Lab, _ scene, a, b subject) {
		own := errors.New("of the function")
		rig.WantIs(t, a.Do(t.Context(), func(ctx context.Context) error {
			if l, has := b.locker.(tryDoer); has {
				if ran, err := l.TryDo(t.Context(), time.Second, func(context.Context) error { return own }); ran || err != nil {
					t.Errorf("TryDo beside a holder: %v, %v; want false, nil", ran, err)
				}
			}
			return errors.Join(ctx.Err(), own)
		}), own)
		wantFreeNow(t, b)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			_ = a.Do(t.Context(), func(context.Context) error { panic("of the function") })
		}()
		wantFreeNow(t, b)
		if l, has := b.locker.(tryDoer); has {
			ran, err := l.TryDo(t.Context(), 0, func(context.Context) error { return own })
			if rig.WantIs(t, err, own); !ran {
				t.Error("a free lock is taken")
			}
		}
		wantFreeNow(t, a)
	})
}

func TestEveryLockerLetsItsOwnerInAndNobodyElse(t *testing.T) {
	onEveryLocker(t, func(t *testing.T, x *rig.Lab, _ scene, a, b subject) {
		ctx := x.By("me")
		rig.Must(t, a.Lock(ctx))
		wantTakenFor(t, b, 0)
		rig.Must(t, a.Do(ctx, func(ctx context.Context) error { return ctx.Err() }))
		wantTakenFor(t, b, 0)
		rig.Must(t, a.Unlock())
		wantFreeNow(t, b)
		rig.Must(t, a.Do(t.Context(), func(ctx context.Context) error {
			rig.WantIs(t, a.Lock(ctx), relock.ErrDeadlock)
			_, err := a.TryLock(ctx, time.Second)
			rig.WantIs(t, err, relock.ErrDeadlock)
			return ctx.Err()
		}))
		wantFreeNow(t, b)
	})
}
