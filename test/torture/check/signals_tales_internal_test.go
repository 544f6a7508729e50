package check

import "github.com/relock-go/relock/test/torture/history"

// A waited is a hold that is given up for a wait on a condition.
type waited struct {
	w                    int
	token                int64
	at, back, died, over int64 // over: when its time has passed; 0: 9 s
	newer                int64 // the token that it comes back with
	why                  string
	cut                  bool // its process dies as it unlocks
}

func (x *tale) wait(v waited) *tale {
	x.hold(held{w: v.w, id: v.token, token: v.token, call: v.at - 2, got: v.at - 1, until: v.at + 900, releasing: v.at})
	if v.over == 0 {
		v.over = 9000
	}
	e := history.Event{What: history.Await, Worker: v.w, ID: v.token + 100, Lock: lock, Kind: "plain", Mode: "w", TTL: 1000}
	e.On, e.By, e.Until = "c", v.token, start+v.over*ms
	x.add(v.at, e)
	if v.died != 0 {
		return x.add(v.died, history.Event{What: history.Died, Worker: v.w})
	}
	if v.back == 0 {
		return x
	}
	e = history.Event{Worker: v.w, Lock: lock, ID: v.token, What: history.Released}
	x.add(v.back, e)
	e.ID, e.What, e.Token, e.Until, e.Err = v.token+100, history.Acquired, v.newer*us, start+(v.back+900)*ms, v.why
	x.add(v.back, e)
	e = history.Event{Worker: v.w, Lock: lock, ID: v.token + 100, What: history.Releasing}
	x.add(v.back+5, e)
	if v.cut {
		return x.add(v.back+6, history.Event{What: history.Died, Worker: v.w})
	}
	e.What = history.Released
	return x.add(v.back+6, e)
}

// signals is a brief hold that signals once.
func (x *tale) signals(w int, token, at int64) *tale {
	x.brief(w, token, at)
	return x.add(at+2, history.Event{What: history.Signal, Worker: w, ID: token, Lock: lock, Token: token * us, On: "c", Until: start + (at+4)*ms})
}

// ends is something that happens long after all else.
func (x *tale) ends(at int64) *tale { return x.brief(9, 99, at) }

func (x *tale) moves(at, token int64, do string, item int64) *tale {
	return x.add(at, history.Event{What: history.Effect, Worker: 1, ID: token, Lock: lock, Token: token * us, Mode: "w", On: do, By: item, Of: 2})
}

var signalTales = []judged{
	{"one signal, and who waited comes back", "", plain().wait(waited{w: 1, token: 1, at: 10, back: 60, newer: 3}).signals(2, 2, 30).ends(8000)},
	{"one signal, and nobody comes back", LostSignal, plain().wait(waited{w: 1, token: 1, at: 10}).signals(2, 2, 30).ends(8000)},
	{"one signal, and who waited comes back much later", LostSignal, plain().wait(waited{w: 1, token: 1, at: 10, back: 3000, newer: 3}).signals(2, 2, 30).ends(8000)},
	{
		"one signal, and who waited comes back when a server has been stopped for long", "",
		plain().wait(waited{w: 1, token: 1, at: 10, back: 3000, newer: 3}).signals(2, 2, 30).fault(40, 2500, history.StopServer, "one").ends(8000),
	},
	{"a signal before anybody waits", "", plain().signals(2, 1, 30).wait(waited{w: 1, token: 2, at: 60}).ends(8000)},
	{
		"two signals and two who wait", "",
		plain().wait(waited{w: 1, token: 1, at: 10, back: 100, newer: 5}).wait(waited{w: 2, token: 2, at: 20, back: 120, newer: 6}).
			signals(3, 3, 30).signals(3, 4, 50).ends(8000),
	},
	{
		"two signals for two who wait, of whom one comes back", LostSignal,
		plain().wait(waited{w: 1, token: 1, at: 10, back: 100, newer: 5}).wait(waited{w: 2, token: 2, at: 20}).
			signals(3, 3, 30).signals(3, 4, 50).ends(8000),
	},
	{
		"one signal for two who wait", "",
		plain().wait(waited{w: 1, token: 1, at: 10, back: 100, newer: 5}).wait(waited{w: 2, token: 2, at: 20}).signals(3, 3, 30).ends(8000),
	},
	{
		"a signal that the dead have got goes to the next", "",
		plain().wait(waited{w: 1, token: 1, at: 10, died: 40}).wait(waited{w: 2, token: 2, at: 20, back: 1100, newer: 5}).signals(3, 3, 30).ends(8000),
	},
	{
		"a signal that the dead have got goes to nobody", LostSignal,
		plain().wait(waited{w: 1, token: 1, at: 10, died: 40}).wait(waited{w: 2, token: 2, at: 20}).signals(3, 3, 30).ends(8000),
	},
	{
		"a signal for one that dies as it unlocks", "",
		plain().wait(waited{w: 1, token: 1, at: 10, back: 60, newer: 4, cut: true}).wait(waited{w: 2, token: 2, at: 20}).signals(3, 3, 30).ends(8000),
	},
	{"a signal for one that dies", "", plain().wait(waited{w: 1, token: 1, at: 10, died: 40}).signals(3, 3, 30).ends(8000)},
	{"a wait that ends by its time", "", plain().wait(waited{w: 1, token: 1, at: 10, over: 25, back: 60, newer: 3, why: "time"}).signals(2, 2, 30).ends(8000)},
	{
		"a wait that was signalled and is said to have ended by its time", LostSignal,
		plain().wait(waited{w: 1, token: 1, at: 10, over: 50, back: 60, newer: 3, why: "time"}).signals(2, 2, 30).ends(8000),
	},
	{
		"a signal for one that is cut off and comes back by its time is not owed to who comes later", "",
		plain().wait(waited{w: 1, token: 1, at: 10, over: 1000, back: 1010, newer: 4, why: "time"}).wait(waited{w: 2, token: 3, at: 900, over: 8500}).
			fault(20, 500, history.Cut, "link 1").signals(3, 2, 600).ends(8000),
	},
	{
		"nor is it paid by them", LostSignal,
		plain().wait(waited{w: 1, token: 1, at: 10, back: 5000, newer: 9}).signals(3, 2, 30).
			wait(waited{w: 2, token: 3, at: 50, back: 80, newer: 5}).ends(8000),
	},
	{
		"a signal for one that does not hear, and has the lock much later", "",
		plain().wait(waited{w: 1, token: 1, at: 10, back: 3000, newer: 3}).signals(2, 2, 30).fault(20, 2500, history.NoSubscribe, "link 1").ends(8000),
	},
	{
		"a signal for one that does not hear, and is said not to have been signalled", LostSignal,
		plain().wait(waited{w: 1, token: 1, at: 10, over: 50, back: 60, newer: 3, why: "time"}).signals(2, 2, 30).
			fault(20, 2500, history.NoSubscribe, "link 1").ends(8000),
	},
	{"an item that is put and taken", "", plain().brief(1, 1, 10).brief(1, 2, 30).moves(12, 1, "put", 7).moves(32, 2, "take", 7)},
	{"an item that is taken twice", BufferBroken, plain().brief(1, 1, 10).brief(1, 2, 30).moves(12, 1, "put", 7).moves(32, 2, "take", 7).moves(33, 2, "take", 7)},
	{"an item that is put twice", BufferBroken, plain().brief(1, 1, 10).moves(12, 1, "put", 7).moves(13, 1, "put", 7)},
	{"an item too many", BufferBroken, plain().brief(1, 1, 10).moves(12, 1, "put", 7).moves(13, 1, "put", 8).moves(14, 1, "put", 9)},
}
