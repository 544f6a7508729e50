package check

import (
	"slices"

	"github.com/relock-go/relock/test/torture/history"
)

func plain() *tale { return &tale{} }

func kind(k string) *tale { return &tale{kind: k} }

// judged is a tale, and what the checker has to say of it.
type judged struct {
	name string
	want Name // "": none
	tale *tale
}

var tales = slices.Concat(holdTales, orderTales, passingTales, permitTales, signalTales, ticketTales, tickTales, circleTales)

var holdTales = []judged{
	{"one hold after the other", "", plain().brief(1, 1, 10).brief(2, 2, 30).brief(1, 3, 50)},
	{"two holders", LeaseOverlap, plain().brief(1, 1, 10).brief(2, 2, 15)},
	{"two holders are not in order either", NoOrder, plain().brief(1, 1, 10).brief(2, 2, 15)},
	{
		"a hold that may have begun when the other's release began", "",
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, releasing: 10, released: 20}).hold(held{w: 2, token: 2, call: 5, got: 11, releasing: 30, released: 31}),
	},
	{
		"a second holder while the first is frozen and past its trust", "",
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, until: 900, lost: 5000, releasing: 5001, released: 5002, why: "lost"}).
			hold(held{w: 2, token: 2, call: 5, got: 1100, releasing: 1200, released: 1201}),
	},
	{
		"a second holder while the first is frozen and within its trust", LeaseOverlap,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, until: 900, lost: 5000, releasing: 5001, released: 5002, why: "lost"}).
			hold(held{w: 2, token: 2, call: 5, got: 899, releasing: 1200, released: 1201}),
	},
	{
		"a second holder within the trust of a renewal", LeaseOverlap,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, trusted: 300, releasing: 1250, released: 1251}).
			hold(held{w: 2, token: 2, call: 5, got: 1200, releasing: 1300, released: 1301}),
	},
	{
		"a second holder after the first died", "",
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, died: 10}).hold(held{w: 2, token: 2, call: 5, got: 1001, releasing: 1100, released: 1101}),
	},
	{
		"a second holder within the trust of one that has died", "",
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, died: 10}).hold(held{w: 2, token: 2, call: 5, got: 500, releasing: 600, released: 601}),
	},
	{
		"two holders while a clock returns from a step back", "",
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, trusted: 2500, releasing: 3300, released: 3301}).
			add(100, history.Event{Worker: -1, What: history.Fault, Fault: history.ClockForward, On: "one", By: 3e9}).
			hold(held{w: 2, token: 2, call: 110, got: 111, trusted: 2500, releasing: 3200, released: 3201}),
	},
	{
		"a second holder before the first died", LeaseOverlap,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, died: 100}).hold(held{w: 2, token: 2, call: 5, got: 99, releasing: 1100, released: 1101}),
	},
	{
		"a second holder right after a flush", "",
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, lost: 300, releasing: 301, released: 302, why: "lost"}).
			fault(100, 101, history.FlushAll, "one").brief(2, 2, 110),
	},
	{
		"a second holder before the flush", LeaseOverlap,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, lost: 300, releasing: 301, released: 302, why: "lost"}).
			brief(2, 2, 80).fault(100, 101, history.FlushAll, "one"),
	},
	{
		"a second holder after a flush of another server", LeaseOverlap,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, lost: 300, releasing: 301, released: 302, why: "lost"}).
			fault(100, 101, history.FlushAll, "other").brief(2, 2, 110),
	},
	{
		"a second holder after a fault that names none", LeaseOverlap,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, lost: 300, releasing: 301, released: 302, why: "lost"}).
			fault(100, 101, history.KillServer, "one").brief(2, 2, 110),
	},
	{
		"two holders for longer than a ttl after the flush", LeaseOverlap,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, trusted: 900, releasing: 1500, released: 1501}).
			fault(100, 101, history.FlushAll, "one").hold(held{w: 2, token: 2, call: 110, got: 111, trusted: 800, releasing: 1400, released: 1401}),
	},
	{
		"two holders a ttl and more after the flush", LeaseOverlap,
		plain().fault(100, 101, history.FlushAll, "one").brief(1, 1, 1200).brief(2, 2, 1205),
	},
	{"a token twice", TokenRepeated, plain().brief(1, 1, 10).hold(held{w: 2, id: 9, token: 1, call: 30, got: 31, releasing: 40, released: 41})},
	{"a token that falls", TokenFell, plain().brief(1, 2, 10).brief(2, 1, 30)},
	{
		"a token that falls among calls that waited together", TokenFell,
		plain().hold(held{w: 1, token: 2, call: 1, got: 10, releasing: 20, released: 21}).hold(held{w: 2, token: 1, call: 2, got: 30, releasing: 40, released: 41}),
	},
	{
		"tokens of calls that were answered in the wrong order", "",
		kind("rw").hold(held{w: 1, mode: "r", token: 2, call: 1, got: 10, releasing: 20, released: 21}).
			hold(held{w: 2, mode: "r", token: 1, call: 2, got: 12, releasing: 40, released: 41}),
	},
	{
		"a token that falls after a flush with the clock behind", "",
		plain().brief(1, 2000000, 10).add(30, history.Event{What: history.Fault, Fault: history.ClockBack, On: "one", By: 3e9}).
			fault(40, 41, history.FlushAll, "one").brief(2, 1, 50),
	},
	{
		"a token that falls after a flush with the clock in order", TokenFell,
		plain().brief(1, 2000000, 10).fault(40, 41, history.FlushAll, "one").brief(2, 1, 50),
	},
	{
		"a token that falls by more than the clock was behind", TokenFell,
		plain().brief(1, 9000000, 10).add(30, history.Event{What: history.Fault, Fault: history.ClockBack, On: "one", By: 3e9}).
			fault(40, 41, history.FlushAll, "one").brief(2, 1, 50),
	},
	{
		"a re-entry", "",
		plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, releasing: 20, released: 21}).
			hold(held{w: 2, id: 2, owner: "a", token: 1, call: 5, got: 6, releasing: 30, released: 31}).brief(3, 2, 40),
	},
	{
		"a re-entry with a token of its own", ReentryToken,
		plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, releasing: 20, released: 21}).
			hold(held{w: 2, id: 2, owner: "a", token: 2, call: 5, got: 6, releasing: 30, released: 31}),
	},
	{
		"a lock that is free though its owner holds once more", LeaseOverlap,
		plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, releasing: 20, released: 21}).
			hold(held{w: 2, id: 2, owner: "a", token: 1, call: 5, got: 6, releasing: 90, released: 91}).brief(3, 2, 40),
	},
	{
		"an owner's old token in a new grant", TokenRepeated,
		plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, releasing: 20, released: 21}).
			hold(held{w: 2, id: 2, owner: "a", token: 1, call: 25, got: 26, releasing: 30, released: 31}),
	},
	{
		"an owner that joins the grant of its dead process", "",
		plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, died: 10}).
			hold(held{w: 2, id: 2, owner: "a", token: 1, call: 25, got: 26, releasing: 30, released: 31}),
	},
	{"another owner with the same token", TokenRepeated, plain().
		hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, releasing: 20, released: 21}).
		hold(held{w: 2, id: 2, owner: "b", token: 1, call: 25, got: 26, releasing: 30, released: 31})},
	{
		"readers together", "",
		kind("rw").hold(held{w: 1, mode: "r", token: 1, call: 1, got: 2, releasing: 50, released: 51}).
			hold(held{w: 2, mode: "r", token: 2, call: 5, got: 6, releasing: 30, released: 31}).
			hold(held{w: 3, token: 3, call: 10, got: 52, releasing: 60, released: 61}),
	},
	{
		"a writer beside a reader", LeaseOverlap,
		kind("rw").hold(held{w: 1, mode: "r", token: 1, call: 1, got: 2, releasing: 50, released: 51}).
			hold(held{w: 3, token: 3, call: 10, got: 40, releasing: 60, released: 61}),
	},
	{
		"a reader beside a writer", LeaseOverlap,
		kind("rw").hold(held{w: 3, token: 1, call: 1, got: 2, releasing: 60, released: 61}).
			hold(held{w: 1, mode: "r", token: 3, call: 10, got: 40, releasing: 50, released: 51}),
	},
	{
		"a reader beside a writer that has downgraded", "",
		kind("rw").hold(held{w: 3, token: 1, call: 1, got: 2, down: 20, releasing: 60, released: 61}).
			hold(held{w: 1, mode: "r", token: 3, call: 10, got: 21, releasing: 50, released: 51}),
	},
	{
		"a reader beside a writer that is about to downgrade", LeaseOverlap,
		kind("rw").hold(held{w: 3, token: 1, call: 1, got: 2, down: 20, releasing: 60, released: 61}).
			hold(held{w: 1, mode: "r", token: 3, call: 10, got: 19, releasing: 50, released: 51}),
	},
	{
		"a writer beside one that has downgraded", LeaseOverlap,
		kind("rw").hold(held{w: 3, token: 1, call: 1, got: 2, down: 20, releasing: 60, released: 61}).
			hold(held{w: 1, token: 3, call: 10, got: 21, releasing: 50, released: 51}),
	},
	{"effects in order, and a stale one refused", "", plain().
		hold(held{w: 1, token: 1, call: 1, got: 2, until: 900, lost: 5000, releasing: 5001, released: 5002, why: "lost"}).
		effect(3, 1, 1, "").brief(2, 2, 1000).effect(1005, 2, 2, "").effect(4000, 1, 1, "stale")},
	{"a stale effect that is taken", StaleEffect, plain().
		hold(held{w: 1, token: 1, call: 1, got: 2, until: 900, lost: 5000, releasing: 5001, released: 5002, why: "lost"}).
		effect(3, 1, 1, "").brief(2, 2, 1000).effect(1005, 2, 2, "").effect(4000, 1, 1, "")},
	{"an effect that is refused without reason", FreshRefused, plain().brief(1, 1, 10).effect(12, 1, 1, "stale")},
	{
		"a valid holder that is refused", HolderRefused,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, releasing: 100, released: 101}).
			hold(held{w: 2, token: 2, call: 3, got: 10, until: 10, lost: 11, releasing: 12, released: 13, why: "lost"}).
			effect(10, 2, 2, "").effect(20, 1, 1, "stale"),
	},
	{"two writes with one token", TokenRepeated, plain().brief(1, 1, 10).effect(12, 1, 1, "").
		hold(held{w: 2, id: 2, token: 1, call: 30, got: 31, releasing: 40, released: 41}).
		add(33, history.Event{What: history.Effect, Worker: 2, ID: 2, Lock: lock, Token: us, Mode: "w"})},
	{"an effect of nobody", Malformed, plain().brief(1, 1, 10).effect(12, 7, 7, "")},
}
