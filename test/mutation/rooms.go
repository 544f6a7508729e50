package mutation

// roomRules are those of what decides in a client, which exploring rooms in memory is to
// find when they are gone.
var roomRules = []Rule{
	{
		"a hold that is passed on has a token of its own", "internal/room Room.passToLine",
		"s.reserveNext()", "s.left--; s.reserve()",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a request that goes unanswered leaves a doubt", "internal/room Acquisition.settled",
		"if a.copies == 0 && !a.keepsDoubt {", "if true {",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"an answer that is given up for leaves a doubt", "internal/room Acquisition.settled",
		"if f != nil && f.Unknown { a.keepsDoubt = true }", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a grant that was answered is trusted from its sending", "internal/room Request.apply",
		"e.grant(said.Low, said.High, q.Sent,", "e.grant(said.Low, said.High, at.Now,",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a claim that nobody takes is free", "internal/room Room.passClaim",
		"r.claimed = false", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a claim of a named owner that nobody takes is free", "internal/room Room.passClaim",
		"delete(r.flows, flow)", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a waiter has a time to ask", "internal/room Entry.schedule",
		"at.timer(e.Acquisition, due, 0) }", "_ = due }",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"every statement that lacks the queue is made again with it", "internal/room Statement.Stated",
		"reply.Several && !st.Several:", "reply.Several && !s.several:",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a hold that nobody takes is reserved no longer", "internal/room Acquisition.GiveUp",
		"a.Session.unreserve()", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"who leaves says so", "internal/room Acquisition.GiveUp",
		"a.leaveRoom(at); at.do(Effect{Do: Release, Of: a})", "a.leaveRoom(at)",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"who may stand in the queue says that it leaves", "internal/room Acquisition.GiveUp",
		"case !e.queued && a.doubt == 0:", "case !e.queued:",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a waiter hears of its grant", "internal/room Entry.grant",
		"e.finished(at); s.schedule(at)", "s.schedule(at)",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a session is renewed", "internal/room Entry.grant",
		"e.finished(at); s.schedule(at)", "e.finished(at)",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"what ends hands on its claim", "internal/room Acquisition.leaveRoom",
		"r.handClaim(a, place, at)", "_ = place",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a client that drains begins nothing", ". registry.register",
		"case r.tracker.Draining():", "case false:",
		[]string{"TestCallThatHasNotAskedWhenTheClientShutsDownTakesNothing"},
	},
}
