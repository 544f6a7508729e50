package check

import "github.com/relock-go/relock/test/torture/history"

var circleTales = []judged{
	{
		"a wait for several locks that others hold meanwhile", "",
		plain().hold(held{w: 1, token: 1, on: history.Together, call: 1, got: 2000, releasing: 2010, released: 2011}).brief(2, 2, 2050),
	},
	{
		"a wait for several locks without an end", Circle,
		plain().hold(held{w: 1, token: 1, on: history.Together, call: 1, failed: 4000, why: "ctx"}).brief(2, 2, 4050),
	},
	{
		"a wait for several locks while a server has been stopped", "",
		plain().hold(held{w: 1, token: 1, on: history.Together, call: 1, got: 4000, releasing: 4010, released: 4011}).
			fault(1000, 3500, history.StopServer, "one").brief(2, 2, 4050),
	},
	{
		"a wait for several locks that never returns", Circle,
		plain().hold(held{w: 1, id: 1, on: history.Together, call: 1}).brief(1, 2, 4050),
	},
}
