package inbox_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/virtual"
)

// Whatever happens in whatever order, who has joined hears in the end, and
// nothing is left after the last has gone.
func TestShardsHearAfterAnyDisturbance(t *testing.T) {
	for seed := range uint64(20) {
		sharded(t, func(t *testing.T, x *cluster) {
			var users sync.WaitGroup
			for i := range 12 {
				name, r := fmt.Sprint("c", i%6), rand.New(rand.NewPCG(seed, uint64(i)+2))
				users.Go(func() { x.comeAndGo(name, r) })
			}
			x.disturb(rand.New(rand.NewPCG(seed, 1)))
			users.Wait()
			virtual.Sleep(10 * time.Second)
			x.allHear(t, seed)
			virtual.Sleep(2 * linger)
			x.connections(0, 0)
		})
	}
}

// comeAndGo joins the channel and leaves it, over and over.
func (x *cluster) comeAndGo(name string, r *rand.Rand) {
	for range 20 {
		c := x.Channel(name)
		leave := c.Join()
		virtual.Sleep(time.Duration(r.Int64N(int64(2 * time.Second))))
		if r.IntN(4) == 0 {
			c.Suspect()
		}
		leave()
		virtual.Sleep(time.Duration(r.Int64N(int64(2 * linger))))
	}
}

// disturb kills subscribers, moves channels with and without a word of it, and has
// servers refuse them.
func (x *cluster) disturb(r *rand.Rand) {
	for range 60 {
		virtual.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
		name, node := fmt.Sprint("c", r.IntN(6)), x.nodes[r.IntN(2)]
		switch r.IntN(4) {
		case 0:
			node.net.srv.KillSubscribers()
		case 1:
			old := x.serving(name)
			x.move(name, r.IntN(2))
			old.shard.MoveAway(name)
		case 2:
			node.shard.MoveAway(name)
		case 3:
			node.shard.Refuse(func(string) string { return "MOVED 1 192.0.2.9:6379" })
			time.AfterFunc(time.Second, func() { node.shard.Refuse(nil) })
		}
	}
}

// allHear joins every channel, publishes on it, and leaves it.
func (x *cluster) allHear(t *testing.T, seed uint64) {
	for i := range 6 {
		name := fmt.Sprint("c", i)
		_, leave := x.join(name)
		defer leave()
		x.publish(name, "heard")
		x.mu.Lock()
		events := x.events[name]
		if len(events) == 0 || events[len(events)-1] != "heard" {
			t.Errorf("seed %d: %s is not heard", seed, name)
		}
		x.mu.Unlock()
	}
}
