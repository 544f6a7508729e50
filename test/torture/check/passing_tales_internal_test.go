package check

import "github.com/relock-go/relock/test/torture/history"

// onItsWay is a hold of worker 1, and another of it that comes later and ends
// early; between them worker 2 is granted the lock, is told so late, and passes it
// on to another call of its own.
func onItsWay(call int64) *tale {
	return plain().brief(1, 1, 10).
		hold(held{w: 2, token: 2, call: call, got: 31, releasing: 33, released: 33}).
		hold(held{w: 2, token: 3, call: call, got: 33, releasing: 34, released: 36, why: "lost"}).
		hold(held{w: 1, token: 10, call: 22, got: 28, releasing: 30, released: 32})
}

// passed is a hold of worker 2 beside one of worker 1 that is granted after 24, and
// then one that worker 2 passes on, or what may be taken for that. It is lost when
// the call returns.
func passed(w int, token, call int64) *tale { return passedFrom(5, w, token, call) }

func passedFrom(first int64, w int, token, call int64) *tale {
	return plain().
		hold(held{w: 2, token: 2, call: first, got: first + 2, trusted: 300, releasing: 35, released: 35}).
		hold(held{w: 1, token: 10, call: 22, got: 28, releasing: 30, released: 31}).
		hold(held{w: w, token: token, call: call, got: call + 3, until: call, releasing: call + 4, released: call + 5, why: "lost"})
}

// leftOver is a call that gives up, a hold of worker 1, and one of worker 2 with a smaller
// token, which is lost when its call returns.
func leftOver(w int, call int64) *tale {
	return plain().
		hold(held{w: w, id: 40, call: call, failed: 34, why: "not acquired"}).
		hold(held{w: 1, token: 10, call: 22, got: 28, releasing: 30, released: 31}).
		hold(held{w: 2, token: 3, call: 33, got: 36, until: 33, releasing: 37, released: 38, why: "lost"})
}

// leftUnseen is the same, but that call had begun before the hold of worker 1.
func leftUnseen(w int) *tale {
	return plain().
		hold(held{w: w, id: 40, call: 5, failed: 34, why: "not acquired"}).
		hold(held{w: 1, token: 10, call: 22, got: 28, releasing: 30, released: 31}).
		hold(held{w: 2, token: 3, call: 26, got: 36, releasing: 37, released: 38, why: "lost"})
}

// circled is a hold of a call for several locks, one of another worker, and another turn of the
// first grant, some tokens later.
func circled(on string) *tale {
	return plain().
		hold(held{w: 2, token: 2, on: on, call: 5, got: 7, trusted: 300, releasing: 35, released: 35}).
		hold(held{w: 1, token: 10, call: 22, got: 28, releasing: 30, released: 31}).
		hold(held{w: 2, token: 6, on: on, call: 33, got: 36, until: 33, releasing: 37, released: 38, why: "lost"})
}

// joinedLate is a hold of an owner, another one whose answer comes at 100, and a
// third that was asked for when the first had ended.
func joinedLate(second int64) *tale {
	return plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, releasing: 20, released: 21}).
		hold(held{w: 2, id: 2, owner: "a", token: 1, call: second, got: 100, releasing: 110, released: 111}).
		hold(held{w: 1, id: 3, owner: "a", token: 1, call: 50, got: 51, releasing: 60, released: 61})
}

// back is a hold of an owner, one of another owner, and again one with the token
// of the first.
func back(call int64) *tale {
	return plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, releasing: 20, released: 21}).
		hold(held{w: 2, id: 2, owner: "b", token: 2, call: 3, got: 22, lost: 380, releasing: 381, released: 382, why: "lost"}).
		hold(held{w: 1, id: 3, owner: "a", token: 1, call: call, got: call + 1, releasing: call + 10, released: call + 11})
}

// backTwice is back under a failover, and one more hold with the token of the first.
func backTwice(call int64) *tale {
	return back(400).fault(30, 350, history.Failover, "one").
		hold(held{w: 1, id: 4, owner: "a", token: 1, call: call, got: call + 1, releasing: call + 10, released: call + 11})
}

// joinedAfter is a hold of an owner, another of it that is asked for and told after a fault of
// that kind, and one of another owner, for which both are lost.
func joinedAfter(kind string) *tale {
	return plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, lost: 41, releasing: 42, released: 43, why: "lost"}).
		add(10, history.Event{Worker: -1, What: history.Fault, Fault: kind, On: "one", By: 3e9}).
		hold(held{w: 1, id: 2, owner: "a", token: 1, call: 12, got: 14, until: 987, lost: 40, releasing: 40, released: 41, why: "lost"}).
		hold(held{w: 2, id: 3, owner: "b", token: 5, call: 16, got: 20, releasing: 30, released: 31})
}

// fellBeneath is a hold, and one of a call that was under way before, whose token is smaller:
// it is granted when data was lost in the way told, and the clock has been set back, and is
// renewed.
func fellBeneath(kind string) *tale {
	return plain().hold(held{w: 1, token: 9, call: 2, got: 3, releasing: 10, released: 11}).
		fault(20, 21, kind, "one").
		add(22, history.Event{Worker: -1, What: history.Fault, Fault: history.ClockBack, On: "one", By: 3e9}).
		hold(held{w: 2, token: 3, call: 1, got: 30, trusted: 900, releasing: 1500, released: 1501})
}

// older is a hold whose token is that much smaller than that of the hold before it.
func older(by int64) *tale {
	return plain().hold(held{w: 1, id: 1, token: 30_000, call: 11, got: 12, releasing: 20, released: 21}).
		hold(held{w: 2, id: 2, token: 30_000 - by, call: 25, got: 26, releasing: 30, released: 31})
}

// keptOver is a hold of a grant that its client has kept over a flush, with that token, and the next hold after the
// clock has been set back.
func keptOver(token int64) *tale {
	return plain().hold(held{w: 1, id: 1, token: 9, call: 1, got: 2, releasing: 10, released: 11}).
		fault(20, 21, history.FlushAll, "one").
		hold(held{w: 1, id: 2, token: token, call: 30, got: 31, releasing: 32, released: 33}).
		add(40, history.Event{Worker: -1, What: history.Fault, Fault: history.ClockBack, On: "one", By: 3e9}).
		hold(held{w: 2, id: 3, token: 3, call: 50, got: 51, releasing: 60, released: 61})
}

// unwaited is a wait that ends under the token that it began with, and an effect that is
// refused for that; there was a fault of that kind meanwhile.
func unwaited(kind string) *tale {
	return plain().wait(waited{w: 1, token: 1, at: 10, back: 60, newer: 1}).fault(20, 40, kind, "one").
		add(62, history.Event{What: history.Effect, Worker: 1, ID: 101, Lock: lock, Token: us, Mode: "w", Err: "twice"}).ends(8000)
}

// parted is a hold of an owner, one of another owner beside it, and a re-entry of
// otherPrimary is an owner's call that one primary granted at 110. The other one granted it the lock,
// too, when it was over, and that grant's token is what the owner has again, from then on.
func otherPrimary(then int64) *tale {
	return plain().brief(9, 1, 10).
		hold(held{w: 1, id: 5, owner: "a", token: 3, call: 20, queued: 25, got: 110, releasing: 114, released: 115}).
		hold(held{w: 2, id: 6, owner: "b", token: 6, call: then - 40, got: then - 39, releasing: then - 30, released: then - 29}).
		hold(held{w: 3, id: 7, owner: "a", token: 5, call: then, got: then + 1, releasing: then + 10, released: then + 11})
}

// the first when the second has ended.
func parted() *tale {
	return plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 11, got: 12, releasing: 50, released: 51}).
		hold(held{w: 2, id: 2, owner: "b", token: 5, call: 15, got: 20, releasing: 30, released: 31}).
		hold(held{w: 1, id: 3, owner: "a", token: 1, call: 33, got: 34, releasing: 36, released: 37})
}

// toldLate is a reader that is told of its grant when a later writer has come and gone.
func toldLate() *tale {
	return kind("rw").hold(held{w: 1, mode: "r", token: 2, call: 5, got: 31, releasing: 33, released: 34}).
		hold(held{w: 2, token: 3, call: 8, got: 22, down: 25, releasing: 26, released: 27})
}

// behind is a holder that is refused for the token of an earlier one, with the
// server's clock behind.
func behind() *tale {
	return plain().brief(1, 2000, 2).effect(5, 1, 2000, "").
		add(1300, history.Event{What: history.Fault, Fault: history.ClockBack, On: "one", By: 3e9}).
		brief(2, 1000, 1310).effect(1315, 2, 1000, "stale")
}

// copied is a hold that a flush took while it was asked for, another one of its
// owner, and a third that joins the grant of the second when that has ended.
func copied() *tale {
	return plain().
		hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 10, lost: 20, releasing: 21, released: 22, why: "lost"}).
		fault(4, 5, history.FlushAll, "one").
		hold(held{w: 1, id: 2, owner: "a", token: 2, call: 12, got: 15, releasing: 30, released: 31}).
		hold(held{w: 1, id: 3, owner: "a", token: 2, call: 40, got: 41, releasing: 50, released: 51})
}

// robbed is two holds of one grant with a gap between them, and a call of their
// owner that waits over the gap and gets a later grant.
func robbed() *tale {
	return plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 1, got: 2, releasing: 20, released: 21}).
		hold(held{w: 2, id: 2, owner: "a", token: 5, call: 10, got: 60, releasing: 65, released: 66}).
		hold(held{w: 1, id: 3, owner: "a", token: 1, call: 30, got: 31, releasing: 35, released: 36})
}

// deaf is two holds of one grant with a gap between them, and a call of their owner that
// waits over the gap and gets a later grant at the given time.
func deaf(got int64) *tale {
	return plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 11, got: 12, releasing: 20, released: 21}).
		hold(held{w: 2, id: 2, owner: "a", token: 5, call: 10, got: got, releasing: got + 5, released: got + 6}).
		hold(held{w: 1, id: 3, owner: "a", token: 1, call: 30, got: 31, releasing: 35, released: 36})
}

// partedUnseen is parted with no instant at which both are known to hold.
func partedUnseen() *tale {
	return plain().hold(held{w: 1, id: 1, owner: "a", token: 1, call: 11, got: 35, releasing: 50, released: 51}).
		hold(held{w: 2, id: 2, owner: "b", token: 5, call: 15, got: 20, releasing: 30, released: 31}).
		hold(held{w: 1, id: 3, owner: "a", token: 1, call: 37, got: 38, releasing: 40, released: 41})
}

var passingTales = []judged{
	{"a re-entry that is told after the clock has been set forward", "", joinedAfter(history.ClockForward)},
	{"a re-entry that is told after the clock has been set back", LeaseOverlap, joinedAfter(history.ClockBack)},
	{"a token that fell while its call was under way", "", fellBeneath(history.FlushAll)},
	{"a token that is smaller where no data was lost", NoOrder, fellBeneath(history.Slow)},
	{"a wait that a failover has lost", "", unwaited(history.Failover)},
	{"a wait that ends under the token that it began with", TokenRepeated, unwaited(history.ClientKill)},
	{"a grant that was on its way when a flush came", "", onItsWay(5).fault(24, 25, history.FlushAll, "one")},
	{"a grant that was on its way when a server was killed", NoOrder, onItsWay(5).fault(24, 25, history.KillServer, "one")},
	{"a grant that was on its way when another server was flushed", NoOrder, onItsWay(5).fault(24, 25, history.FlushAll, "other")},
	{"a grant that was asked for after the flush", NoOrder, onItsWay(26).fault(24, 25, history.FlushAll, "one")},
	{"a hold that is passed on after a flush", "", passed(2, 3, 33).fault(24, 25, history.FlushAll, "one")},
	{"a hold that a call of the same process had asked for before a flush", "", leftOver(2, 5).fault(24, 25, history.FlushAll, "one")},
	{"a hold that a call of another process had asked for before a flush", TokenFell, leftOver(3, 5).fault(24, 25, history.FlushAll, "one")},
	{"a hold that a call of the same process had asked for after a flush", TokenFell, leftOver(2, 26).fault(24, 25, history.FlushAll, "one")},
	{
		"a hold that is passed on, and between its token and the one before that of another server", "",
		passed(2, 3, 33).fault(24, 25, history.FlushAll, "one").hold(held{w: 1, id: 20, token: 2, digits: 500, call: 23, got: 26, releasing: 27, released: 27}),
	},
	{"a hold that was left while its call was under way, before a flush", "", leftUnseen(2).fault(24, 25, history.FlushAll, "one")},
	{"the same, left by a call of another process", NoOrder, leftUnseen(3).fault(24, 25, history.FlushAll, "one")},
	{"a call for several locks that has given some turns back", "", circled(history.Together).fault(24, 25, history.FlushAll, "one")},
	{"a call for one lock, some tokens later", TokenFell, circled("").fault(24, 25, history.FlushAll, "one")},
	{"a hold that is passed on after another holder, without a flush", TokenFell, passed(2, 3, 33).fault(24, 25, history.StopServer, "one")},
	{"a hold that is passed on, and a flush after the other holder", TokenFell, passed(2, 3, 33).fault(29, 32, history.FlushAll, "one")},
	{"a hold that is passed on under a grant from after the flush", TokenFell, passedFrom(26, 2, 3, 33).fault(24, 25, history.FlushAll, "one")},
	{"a hold of another process after a flush", TokenFell, passed(3, 3, 33).fault(24, 25, history.FlushAll, "one")},
	{"a hold of another process during a long flush", TokenFell, passed(3, 3, 33).fault(24, 40, history.FlushAll, "one")},
	{"a hold with a token that does not follow, after a flush", TokenFell, passed(2, 4, 33).fault(24, 25, history.FlushAll, "one")},
	{"a hold that is passed on a ttl after a flush", TokenFell, passed(2, 3, 1033).fault(24, 25, history.FlushAll, "one")},
	{"a hold that joined in time and was told late", "", joinedLate(15)},
	{"a hold of a grant whose release a failover lost", "", back(400).fault(30, 350, history.Failover, "one")},
	{
		"a hold of a grant whose release a failover lost, and the grants that it lost", "",
		back(400).fault(30, 350, history.Failover, "one").
			hold(held{w: 4, token: 3, call: 10, got: 420, until: 410, releasing: 421, released: 422, why: "lost"}).
			hold(held{w: 5, token: 4, call: 10, got: 305, until: 300, releasing: 306, released: 307, why: "lost"}),
	},
	{"a second hold of a grant whose release a failover lost", "", backTwice(600)},
	{"a second hold of a grant whose lease was over in any case", TokenRepeated, backTwice(1100)},
	{"a hold of a grant whose release a restart did not lose", TokenRepeated, back(400).fault(30, 350, history.KillServer, "one")},
	{"a hold of a grant whose release no failover lost", TokenRepeated, back(400).fault(5, 15, history.Failover, "one")},
	{"a hold of a grant whose lease was over in any case", TokenRepeated, back(1100).fault(30, 350, history.Failover, "one")},
	{"a holder that is refused as its token fell with a clock behind", "", behind().fault(20, 21, history.FlushAll, "one")},
	{"a holder that is refused with a clock behind", HolderRefused, behind().fault(20, 21, history.KillServer, "one")},
	{"a hold of a grant that a late copy kept", "", copied().fault(2, 60, history.Delay, "link 1")},
	{"a hold of a grant that nothing kept", TokenRepeated, copied()},
	{"a hold of a grant that no late copy of its worker kept", TokenRepeated, copied().fault(2, 60, history.Delay, "link 2")},
	{"a hold of a grant that a waiter kept until the flush", "", robbed().fault(40, 41, history.FlushAll, "one")},
	{"a hold of a grant that a waiter kept, with no flush after it", TokenRepeated, robbed().fault(40, 41, history.StopServer, "one")},
	{"a hold of a grant that a waiter kept, with a flush after that was granted", TokenRepeated, robbed().fault(70, 71, history.FlushAll, "one")},
	{"a hold of a grant that a waiter kept and did not hear of", "", deaf(1100).fault(5, 90, history.HalfOpen, "link 2")},
	{"a hold of a grant that a waiter kept, with a lease that had not ended", TokenRepeated, deaf(300).fault(5, 90, history.HalfOpen, "link 2")},
	{"a hold of a grant that a waiter kept which heard", TokenRepeated, deaf(1100).fault(5, 90, history.HalfOpen, "link 1")},
	{"a nested hold in a grant that the other primary made of a call that was over", "", otherPrimary(330).fault(5, 5000, history.Failover, "one")},
	{"the same without another primary", TokenFell, otherPrimary(330)},
	{"the same when the lease of that grant was over", TokenFell, otherPrimary(1400).fault(5, 5000, history.Failover, "one")},
	{"a token from the past of the other primary's block", "", older(10_000).fault(5, 40, history.Failover, "one")},
	{"a token from before that block", TokenFell, older(10_001).fault(5, 40, history.Failover, "one")},
	{"a token from the past with one primary", TokenFell, older(10_000).fault(5, 40, history.KillServer, "one")},
	{"a grant that was kept over a flush, and a clock that was set back after it", "", keptOver(10)},
	{"a grant from after a flush, and a clock that was set back after it", TokenFell, keptOver(20)},
	{"two primaries with an owner each", "", parted().fault(13, 40, history.Failover, "one")},
	{"two owners after a flush, which leaves one truth", NoOrder, parted().fault(13, 14, history.FlushAll, "one")},
	{"two primaries, of which one answers late", "", partedUnseen().fault(13, 50, history.Failover, "one")},
	{"a grant that was made anew after a flush", "", partedUnseen().fault(13, 14, history.FlushAll, "one")},
	{"a grant that was made anew though nobody took it", NoOrder, partedUnseen().fault(13, 14, history.KillServer, "one")},
	{"a grant that was made anew, and a flush too late for that", TokenFell, partedUnseen().fault(36, 37, history.FlushAll, "one")},
	{"two primaries of another deployment", LeaseOverlap, parted().fault(13, 40, history.Failover, "two")},
	{"a reader that is told late of what a flush took", "", toldLate().fault(20, 24, history.FlushAll, "one")},
	{"a reader that is told late of what nobody took", NoOrder, toldLate().fault(20, 24, history.StopServer, "one")},
	{"a hold that began when the grant had ended", TokenRepeated, joinedLate(30)},
	{
		"two holders for longer than a clock was behind", LeaseOverlap,
		plain().hold(held{w: 1, token: 1, call: 1, got: 2, trusted: 2500, releasing: 3300, released: 3301}).
			add(100, history.Event{Worker: -1, What: history.Fault, Fault: history.ClockForward, On: "one", By: 1e9}).
			hold(held{w: 2, token: 2, call: 110, got: 111, trusted: 2500, releasing: 3200, released: 3201}),
	},
}
