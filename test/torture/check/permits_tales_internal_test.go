package check

import (
	"math/rand/v2"

	"github.com/relock-go/relock/test/torture/history"
)

func semaphore() *tale { return &tale{kind: "semaphore"} }

var permitTales = []judged{
	{
		"three holds that use all permits", "",
		semaphore().hold(held{w: 1, token: 1, weight: 2, call: 1, got: 2, releasing: 50, released: 51}).
			hold(held{w: 2, token: 2, weight: 2, call: 1, got: 3, releasing: 50, released: 51}).
			hold(held{w: 3, token: 3, weight: 1, call: 1, got: 4, releasing: 50, released: 51}),
	},
	{
		"a permit too many", LeaseOverlap,
		semaphore().hold(held{w: 1, token: 1, weight: 2, call: 1, got: 2, releasing: 50, released: 51}).
			hold(held{w: 2, token: 2, weight: 2, call: 1, got: 3, releasing: 50, released: 51}).
			hold(held{w: 3, token: 3, weight: 2, call: 1, got: 4, releasing: 50, released: 51}),
	},
	{
		"a permit too many right after a flush", "",
		semaphore().hold(held{w: 1, token: 1, weight: 5, call: 1, got: 2, lost: 300, releasing: 301, released: 302, why: "lost"}).
			fault(100, 101, history.FlushAll, "one").
			hold(held{w: 2, token: 2, weight: 1, call: 110, got: 111, releasing: 150, released: 151}),
	},
	{
		"a permit too many in every order, though no two are certain at once", NoOrder,
		semaphore().hold(held{w: 1, token: 2, weight: 5, call: 1, got: 30, releasing: 31, released: 40}).
			hold(held{w: 2, token: 1, weight: 1, call: 1, got: 32, releasing: 50, released: 51}),
	},
	{
		"permits of a dead holder come back with its lease", "",
		semaphore().hold(held{w: 1, token: 1, weight: 3, call: 1, got: 2, died: 500}).
			hold(held{w: 2, token: 2, weight: 3, call: 10, queued: 11, got: 1600, releasing: 1700, released: 1701}),
	},
	{
		"permits of a dead holder do not come back beside others", LostWakeup,
		semaphore().hold(held{w: 1, token: 1, weight: 3, call: 1, got: 2, died: 500}).
			hold(held{w: 3, token: 2, weight: 2, call: 1, got: 3, trusted: 5000, releasing: 5900, released: 5901}).
			hold(held{w: 2, token: 3, weight: 3, call: 10, queued: 11, got: 5950, releasing: 6000, released: 6001}),
	},
	{
		"who wants few waits behind who wants many", "",
		semaphore().hold(held{w: 1, token: 1, weight: 3, call: 1, got: 2, trusted: 2000, releasing: 2900, released: 2901}).
			hold(held{w: 2, token: 2, weight: 3, call: 10, queued: 11, got: 2902, releasing: 3000, released: 3001}).
			hold(held{w: 3, token: 3, weight: 1, call: 20, queued: 21, got: 2903, releasing: 3000, released: 3001}),
	},
	{
		"who wants many is passed", Overtaken,
		semaphore().hold(held{w: 1, token: 1, weight: 3, call: 1, got: 2, releasing: 100, released: 101}).
			hold(held{w: 2, token: 3, weight: 3, call: 10, queued: 11, got: 102, releasing: 210, released: 211}).
			hold(held{w: 3, token: 2, weight: 2, call: 20, queued: 21, got: 23, releasing: 150, released: 151}),
	},
	{
		"who wants all is passed", Overtaken,
		semaphore().hold(held{w: 1, token: 1, weight: 3, call: 1, got: 2, releasing: 100, released: 101}).
			hold(held{w: 2, token: 3, weight: 5, call: 10, queued: 11, got: 200, releasing: 210, released: 211}).
			hold(held{w: 3, token: 2, weight: 1, call: 20, queued: 21, got: 23, releasing: 150, released: 151}),
	},
	{
		"who is let in with another does not hear of it, as its link goes dead", "",
		letInTogether(1200).fault(120, 800, history.HalfOpen, "link 2"),
	},
	{
		"who is let in with another hears of it late, and its link goes dead when it holds only", Overtaken,
		letInTogether(600).fault(650, 1500, history.HalfOpen, "link 2"),
	},
	{
		"who is let in with another hears of it late, though its link goes dead after its lease only", Overtaken,
		letInTogether(1200).fault(1120, 1190, history.HalfOpen, "link 2"),
	},
	{
		"who is let in with another hears of it late, as the link of that one goes dead", Overtaken,
		letInTogether(1200).fault(120, 800, history.HalfOpen, "link 3"),
	},
}

// letInTogether has one call wait on though a later one is let in, until got.
func letInTogether(got int64) *tale {
	return semaphore().hold(held{w: 1, token: 1, weight: 5, call: 1, got: 2, releasing: 100, released: 101}).
		hold(held{w: 2, token: 3, weight: 1, call: 10, queued: 11, got: got, releasing: got + 10, released: got + 11}).
		hold(held{w: 3, token: 2, weight: 1, call: 20, queued: 21, got: 102, releasing: 110, released: 111})
}

var permitCorruptions = []corruption{
	{"more weight than there was room for", []string{"semaphore"}, []Name{LeaseOverlap, NoOrder}, func(x *tale, s *story, r *rand.Rand) bool {
		b := pick(r, s.held(), func(c *call) bool {
			for _, a := range s.calls {
				if a != c && a.certain() && a.acquired <= c.acquired && a.token < c.token && a.end() > c.acquired {
					return c.certain() && c.weight < semaphoreOf
				}
			}
			return false
		})
		if b == nil {
			return false
		}
		return x.change(b, history.Call, func(e *history.Event) { e.Weight = semaphoreOf })
	}},
}
