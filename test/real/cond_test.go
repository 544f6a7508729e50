package real_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// The bounded buffer: its lock, the list, and how many items have been put.
const (
	bufferLock = "buffer"
	bufferList = "buffer items"
	bufferPut  = "buffer put"
	bufferGot  = "buffer got" // by item: who took it
	bufferSize = 1            // so that one signal that is lost is missed by all
)

// move puts the next item into the buffer, or takes one, in one step with counting it:
// who is killed has done it or not. KEYS: list, put, got. ARGV: what, size, items, who; with
// who ” it only looks. RETURNS 1 moved, 0 the buffer is full or empty, -1 there is no more to do.
var move = redis.NewScript(`
local n = redis.call('LLEN', KEYS[1])
local put = tonumber(redis.call('GET', KEYS[2]) or 0)
if ARGV[1] == 'put' then
  if put >= tonumber(ARGV[3]) then return -1 end
  if n >= tonumber(ARGV[2]) then return 0 end
  if ARGV[4] == '' then return 1 end
  redis.call('RPUSH', KEYS[1], redis.call('INCR', KEYS[2]))
  return 1
end
if n == 0 then return put >= tonumber(ARGV[3]) and -1 or 0 end
if ARGV[4] == '' then return 1 end
redis.call('HSET', KEYS[3], redis.call('LPOP', KEYS[1]), ARGV[4])
return 1`)

// buffer produces or consumes until all items have been moved: the inside of a child. It
// waits on one condition, and wakes one of the others by one signal for each item. It
// signals before it moves, so that no item is there without one, wherever it is killed.
func (a *agent) buffer(o order) response {
	l := a.handle(o)
	waits, wakes := l.NewCond("not full"), l.NewCond("not empty")
	if o.Ask == "take" {
		waits, wakes = wakes, waits
	}
	for ctx := context.Background(); ; {
		more := true
		err := l.Do(ctx, func(ctx context.Context) error {
			for {
				can, err := a.move(ctx, o, "")
				switch {
				case err != nil:
					return err
				case can < 0:
					more = false
					return errors.Join(waits.Broadcast(ctx), wakes.Broadcast(ctx)) // they are to see it too
				case can > 0:
					if err := wakes.Signal(ctx); err != nil {
						return err
					}
					_, err := a.move(ctx, o, o.Kind)
					return err
				}
				if err := waits.Wait(ctx); err != nil {
					return err
				}
			}
		})
		if !more {
			return failure(err)
		}
	}
}

func (a *agent) move(ctx context.Context, o order, who string) (int, error) {
	return move.Run(ctx, a.rdb, []string{bufferList, bufferPut, bufferGot}, o.Ask, bufferSize, o.N, who).Int()
}

// TestBoundedBufferOfEightProcessesLosesNoItemAndNoSignal kills producers and consumers
// at random while they move items by two conditions and single signals. The others go on
// before who was killed is replaced: a new process looks without a signal.
func TestBoundedBufferOfEightProcessesLosesNoItemAndNoSignal(t *testing.T) {
	items, ttl := int64(rig.Rounds(1500, 10_000)), 500*time.Millisecond
	srv := redistest.Real(t)
	rdb, rng := srv.Client(t), rand.New(rand.NewPCG(1, 2))
	children, roles := make([]*child, 8), []string{"put", "take"}
	run := func(i, n int) {
		children[i] = spawn(t, srv.Addr())
		children[i].begin(order{Do: "buffer", Lock: bufferLock, TTL: ttl, N: items, Ask: roles[i%2], Kind: roles[i%2] + strconv.Itoa(n)})
	}
	for i := range children {
		run(i, i)
	}
	killed, dead, until := 0, -1, int64(0)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for last, moved := time.Now(), int64(-1); ; {
		<-tick.C
		got := rdb.HLen(t.Context(), bufferGot).Val()
		switch {
		case got >= items:
			wantEachItemOnce(t, rdb, items, killed)
			return
		case got != moved:
			last, moved = time.Now(), got
		case time.Since(last) > 20*time.Second:
			t.Fatalf("%d of %d items after %d kills, and nobody moves one: %s", got, items, killed, rig.Describe(t, rig.Open(t, rdb).NewLock(bufferLock)))
		}
		switch {
		case dead < 0 && rng.IntN(5) == 0:
			dead, until = rng.IntN(len(children)), got+10
			children[dead].kill()
			killed++
		case dead >= 0 && got >= until: // the others have seen every signal
			run(dead, 8+killed)
			dead = -1
		}
	}
}

// wantEachItemOnce fails the test unless each item was put and taken once, by somebody.
func wantEachItemOnce(t *testing.T, rdb *redis.Client, items int64, killed int) {
	t.Helper()
	got := rdb.HGetAll(t.Context(), bufferGot).Val()
	for n := int64(1); n <= items; n++ {
		if got[strconv.FormatInt(n, 10)] == "" {
			t.Errorf("item %d was taken by nobody", n)
		}
	}
	if put := rdb.Get(t.Context(), bufferPut).Val(); put != strconv.FormatInt(items, 10) || int64(len(got)) != items {
		t.Errorf("%s items put, %d taken, want %d", put, len(got), items)
	}
	t.Logf("%d items, %d processes killed", items, killed)
}

// TestSignalOfAKilledReceiverWakesTheNext kills who was signalled at the one instant that
// matters most: it holds, and has not said so.
func TestSignalOfAKilledReceiverWakesTheNext(t *testing.T) {
	srv := redistest.Real(t)
	first := spawn(t, srv.Addr())
	first.do(order{Do: "lock", Lock: "l", TTL: time.Second})
	waiting := first.begin(order{Do: "wait", Lock: "l"})
	if r := first.hear(waiting); !r.Begun {
		t.Fatalf("the wait ended: %+v", r)
	}
	c := rig.Open(t, srv.Client(t))
	second, signaller := c.NewLock("l", relock.TTL(time.Second)), c.NewLock("l")
	rig.Soon(t, func() string { return onCondition(t, second, 1) })
	rig.Must(t, second.Lock(t.Context()))
	sleeps := rig.Sleeps(t, t.Context(), second.NewCond("c"), 0)
	rig.Soon(t, func() string { return onCondition(t, second, 2) })
	rig.Must(t, signaller.Lock(t.Context()))
	rig.Must(t, signaller.NewCond("c").Signal(t.Context()))
	first.kill()
	rig.Must(t, signaller.Unlock())
	sleeps.Woken()
	rig.Must(t, second.Unlock())
}

func onCondition(t *testing.T, l *relock.Lock, want int) string {
	all, err := l.NewCond("c").Waiters(t.Context())
	if err != nil || len(all) != want {
		return fmt.Sprintf("%d wait, want %d, error %v", len(all), want, err)
	}
	return ""
}

// sleep waits on a condition in a child.
func (a *agent) sleep(o order) response {
	a.report(o, response{Begun: true})
	return failure(a.handle(o).NewCond("c").Wait(context.Background()))
}
