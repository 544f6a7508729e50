// Package nemesis does harm by schedule: which faults, to whom, for how long
// and in which order follows from a seed alone.
package nemesis

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/server"
)

// A Step is one fault to come.
type Step struct {
	Gap    time.Duration // after the step before in its lane has ended
	Kind   string
	Target int // a number from which the victim is chosen
	For    time.Duration
	Arg    int // what else the kind needs to know
}

func (s Step) String() string {
	return fmt.Sprintf("+%v %s #%d for %v (%d)", s.Gap, s.Kind, s.Target, s.For, s.Arg)
}

// Lanes are lists of steps that run beside each other, and so combine. Faults of
// servers are in one lane, so that no two of them meet.
type Lanes map[string][]Step

// The lanes of every schedule.
var laneNames = []string{"servers", "clients", "links"}

// decks say how often a kind comes in one shuffle of its lane.
func decks(form string) map[string]map[string]int {
	d := map[string]map[string]int{
		"servers": {
			history.KillServer: 2, history.StopServer: 2, history.FlushAll: 2, history.ClockForward: 1,
			history.ClockBack: 1, history.Maxmemory: 2,
		},
		"clients": {
			history.KillWorker: 2, history.StopWorker: 2, history.ClientKill: 2, history.ScriptFlush: 2, history.ForceUnlock: 2,
		},
		"links": {
			history.Cut: 1, history.HalfOpen: 1, history.Slow: 1, history.Swallow: 1, history.Delay: 1,
			history.NoSubscribe: 1, history.DeadPool: 1,
		},
	}
	switch form {
	case server.Standalone:
		d["servers"][history.RestartEmpty] = 4
		d["servers"][history.KillServer] = 3
	case server.Replicated:
		d["servers"][history.RestartEmpty] = 1
		d["servers"][history.Failover] = 6
	case server.Cluster:
		d["servers"][history.Failover] = 2
		d["servers"][history.Migrate] = 7
		d["servers"][history.KillServer] = 1
		d["servers"][history.StopServer] = 1
	case server.Sentinel:
		d["servers"][history.Failover] = 9
	case server.Skewed:
		d["servers"][history.KillServer] = 1
	}
	return d
}

// Kinds are all faults of all forms.
func Kinds() []string {
	return []string{
		history.KillWorker, history.StopWorker, history.Cut, history.HalfOpen, history.Slow, history.Swallow, history.Delay,
		history.ClientKill, history.ScriptFlush, history.FlushAll, history.KillServer, history.RestartEmpty,
		history.StopServer, history.Failover, history.Migrate, history.ClockForward, history.ClockBack,
		history.Maxmemory, history.ForceUnlock, history.NoSubscribe, history.DeadPool,
	}
}

// Schedule returns the lanes of one round, each of n steps. Where kinds is not
// nil, there are no others.
func Schedule(seed uint64, round int, form string, kinds []string, n int) Lanes {
	lanes := Lanes{}
	for i, lane := range laneNames {
		r := rand.New(rand.NewPCG(seed, uint64(round)<<8|uint64(i)))
		deck := decks(form)[lane]
		maps.DeleteFunc(deck, func(kind string, _ int) bool { return kinds != nil && !slices.Contains(kinds, kind) })
		if len(deck) == 0 {
			continue
		}
		for len(lanes[lane]) < n {
			lanes[lane] = append(lanes[lane], shuffle(r, deck)...)
		}
		lanes[lane] = lanes[lane][:n]
	}
	return lanes
}

func shuffle(r *rand.Rand, deck map[string]int) (steps []Step) {
	for _, kind := range Kinds() {
		for range deck[kind] {
			steps = append(steps, Step{
				Kind: kind, Target: r.IntN(1 << 16), Arg: r.IntN(1 << 16),
				Gap: ms(r, 50, 900), For: lasting(r, kind),
			})
		}
	}
	r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	return steps
}

func ms(r *rand.Rand, from, to int) time.Duration {
	return time.Duration(from+r.IntN(to-from)) * time.Millisecond
}

// lasting is how long a fault lasts: most are shorter than a lease, some are not.
func lasting(r *rand.Rand, kind string) time.Duration {
	longer := r.IntN(3) == 0
	switch kind {
	case history.StopWorker:
		if longer {
			return ms(r, 700, 1600)
		}
		return ms(r, 20, 400)
	case history.Cut, history.HalfOpen, history.Slow:
		if longer {
			return ms(r, 600, 1500)
		}
		return ms(r, 30, 400)
	case history.NoSubscribe:
		if longer {
			return ms(r, 2000, 4000)
		}
		return ms(r, 100, 1000)
	case history.Swallow, history.Delay:
		return ms(r, 100, 800)
	case history.StopServer:
		if longer {
			return ms(r, 400, 900)
		}
		return ms(r, 20, 250)
	case history.ClockForward, history.ClockBack:
		return ms(r, 100, 900)
	case history.Maxmemory, history.Migrate:
		return ms(r, 50, 500)
	}
	return 0
}
