package conformance_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// The lock is handed over by the unlock itself: what lies between it and the
// next holder in another process is its way to Redis and the message's way back.
func TestFairHandOffTakesOneRoundTrip(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, b *rig.Lab) {
				link := redistest.NewLink(t, b.Server.Dial)
				link.Latency(10 * time.Millisecond)
				holder, waiter := b.Through(link).NewLock("x", opts...), b.Through(link).NewLock("x", opts...)
				for range 2 { // the second time, Redis knows every script
					rig.Must(t, holder.Lock(t.Context()))
					rig.Must(t, holder.Unlock())
				}
				rig.Must(t, holder.Lock(t.Context()))
				held := make(chan time.Time, 1)
				go func() {
					if err := waiter.Lock(t.Context()); err != nil {
						t.Error(err)
					}
					held <- time.Now()
				}()
				virtual.Sleep(time.Second)
				released := time.Now()
				go func() { _ = holder.Unlock() }()
				if gap := (<-held).Sub(released); gap > 22*time.Millisecond {
					t.Errorf("%v from the unlock to the next holder over 10 ms each way, want one round trip", gap)
				}
				rig.Must(t, waiter.Unlock())
			})
		})
	}
}

// Readers with an owner each arrive without pause, so that at every instant some
// hold: a writer that waits gets in when those it found have left.
func TestAWriterIsNotStarvedByReaders(t *testing.T) {
	const hold, every = 40 * time.Millisecond, 3 * time.Millisecond
	for name, opts := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, b *rig.Lab) {
				ctx, stop := context.WithCancel(t.Context())
				var readers sync.WaitGroup
				c := b.Client()
				readers.Go(func() {
					for ctx.Err() == nil {
						readers.Go(func() {
							rw := c.NewRWLock("x", opts...)
							if err := rw.RLock(ctx); err != nil {
								return
							}
							virtual.Sleep(hold)
							_ = rw.RUnlock()
						})
						virtual.Sleep(every)
					}
				})
				virtual.Sleep(time.Second + time.Microsecond)
				writer := b.Client().NewRWLock("x", opts...)
				began := time.Now()
				rig.Must(t, writer.Lock(t.Context()))
				if waited := time.Since(began); waited > hold+100*time.Millisecond {
					t.Errorf("the writer waited %v among readers that hold for %v", waited, hold)
				}
				rig.Must(t, writer.Unlock())
				stop()
				readers.Wait()
			})
		})
	}
}

// A waiter whose process is cut off keeps its place for as long as its entry
// lasts, and longer than that keeps its ticket: only its turn can be lost.
func TestFairPlaceOutlivesAPartitionShorterThanItsEntry(t *testing.T) {
	rig.Run(t, func(t *testing.T, b *rig.Lab) {
		link := redistest.NewLink(t, b.Server.Dial)
		fair := []relock.LockOption{relock.Fair(), relock.TTL(9 * time.Second)}
		holder := b.Client().NewLock("x", fair...)
		rig.Must(t, holder.Lock(t.Context()))
		var mu sync.Mutex
		var order []string
		queue := func(name string, c *relock.Client) {
			go func() {
				l := c.NewLock("x", fair...)
				if err := l.Lock(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				_ = l.Unlock()
			}()
			virtual.Sleep(50 * time.Millisecond)
		}
		queue("cut off", b.Through(link))
		queue("second", b.Client())
		virtual.Sleep(time.Second)
		heal := link.Cut()
		virtual.Sleep(4 * time.Second)
		heal()
		virtual.Sleep(3*time.Second + time.Millisecond)
		rig.Must(t, holder.Unlock())
		virtual.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"cut off", "second"}; !slices.Equal(order, want) {
			t.Errorf("granted %v, want %v", order, want)
		}
	})
}

func TestFairTryLockDoesNotOvertake(t *testing.T) {
	rig.Run(t, func(t *testing.T, b *rig.Lab) {
		fair := []relock.LockOption{relock.Fair()}
		link := redistest.NewLink(t, b.Server.Dial)
		waiter := b.Through(link).NewLock("x", fair...)
		holder := b.Client().NewLock("x", fair...)
		rig.Must(t, holder.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- waiter.Lock(ctx) }()
		virtual.Sleep(time.Second)
		link.Hole() // the waiter does not hear that it holds: the lock is free for nobody else
		rig.Must(t, holder.Unlock())
		if got, err := b.Client().NewLock("x", fair...).TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock past a waiter: %v, %v", got, err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
