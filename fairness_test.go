package relock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// bench is a virtual server and the clients on it.
type bench struct {
	t      *testing.T
	server *redistest.Server
}

// inBubble runs f in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, b *bench)) {
	redistest.Virtual(t)
	synctest.Test(t, func(t *testing.T) { f(t, &bench{t: t, server: redistest.Start(t)}) })
}

// client is a process of its own, as far as Redis can tell.
func (b *bench) client(mod ...func(*redis.Options)) *relock.Client {
	b.t.Helper()
	c, err := relock.New(b.server.Client(b.t, mod...))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

func over(link *redistest.Link) func(*redis.Options) {
	return func(o *redis.Options) { o.Dialer = link.Dial }
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The lock is handed over by the unlock itself: what lies between it and the
// next holder in another process is its way to Redis and the message's way back.
func TestFairHandOffTakesOneRoundTrip(t *testing.T) {
	for name, opts := range map[string][]relock.LockOption{"plain": nil, "fair": {relock.Fair()}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				link := redistest.NewLink(t, b.server.Dial)
				link.Latency(10 * time.Millisecond)
				holder, waiter := b.client(over(link)).NewLock("x", opts...), b.client(over(link)).NewLock("x", opts...)
				for range 2 { // the second time, Redis knows every script
					ok(t, holder.Lock(t.Context()))
					ok(t, holder.Unlock())
				}
				ok(t, holder.Lock(t.Context()))
				held := make(chan time.Time, 1)
				go func() {
					if err := waiter.Lock(t.Context()); err != nil {
						t.Error(err)
					}
					held <- time.Now()
				}()
				time.Sleep(time.Second)
				released := time.Now()
				go func() { _ = holder.Unlock() }()
				if gap := (<-held).Sub(released); gap > 22*time.Millisecond {
					t.Errorf("%v from the unlock to the next holder over 10 ms each way, want one round trip", gap)
				}
				ok(t, waiter.Unlock())
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
			inBubble(t, func(t *testing.T, b *bench) {
				ctx, stop := context.WithCancel(t.Context())
				var readers sync.WaitGroup
				c := b.client()
				readers.Go(func() {
					for ctx.Err() == nil {
						readers.Go(func() {
							rw := c.NewRWLock("x", opts...)
							if err := rw.RLock(ctx); err != nil {
								return
							}
							time.Sleep(hold)
							_ = rw.RUnlock()
						})
						time.Sleep(every)
					}
				})
				time.Sleep(time.Second + time.Microsecond)
				writer := b.client().NewRWLock("x", opts...)
				began := time.Now()
				ok(t, writer.Lock(t.Context()))
				if waited := time.Since(began); waited > hold+100*time.Millisecond {
					t.Errorf("the writer waited %v among readers that hold for %v", waited, hold)
				}
				ok(t, writer.Unlock())
				stop()
				readers.Wait()
			})
		})
	}
}

// A waiter whose process is cut off keeps its place for as long as its entry
// lasts, and longer than that keeps its ticket: only its turn can be lost.
func TestFairPlaceOutlivesAPartitionShorterThanItsEntry(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		link := redistest.NewLink(t, b.server.Dial)
		fair := []relock.LockOption{relock.Fair(), relock.TTL(9 * time.Second)}
		holder := b.client().NewLock("x", fair...)
		ok(t, holder.Lock(t.Context()))
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
			time.Sleep(50 * time.Millisecond)
		}
		queue("cut off", b.client(over(link)))
		queue("second", b.client())
		time.Sleep(time.Second)
		heal := link.Cut()
		time.Sleep(4 * time.Second)
		heal()
		time.Sleep(3*time.Second + time.Millisecond)
		ok(t, holder.Unlock())
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"cut off", "second"}; !slices.Equal(order, want) {
			t.Errorf("granted %v, want %v", order, want)
		}
	})
}

func TestFairTryLockDoesNotOvertake(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		fair := []relock.LockOption{relock.Fair()}
		link := redistest.NewLink(t, b.server.Dial)
		waiter := b.client(over(link)).NewLock("x", fair...)
		holder := b.client().NewLock("x", fair...)
		ok(t, holder.Lock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- waiter.Lock(ctx) }()
		time.Sleep(time.Second)
		link.Hole() // the waiter does not hear that it holds: the lock is free for nobody else
		ok(t, holder.Unlock())
		if got, err := b.client().NewLock("x", fair...).TryLock(t.Context(), 0); got || err != nil {
			t.Errorf("TryLock past a waiter: %v, %v", got, err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
