package mutation

// roomRules are those of what decides in a client, which exploring rooms in memory is to
// find when they are gone.
var roomRules = []Rule{
	{
		"a hold that is passed on has a token of its own", "internal/room/line.go",
		"\ts.token++\n", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a request that goes unanswered leaves a doubt", "internal/room/acquisition.go",
		"if a.copies == 0 && !a.unanswered {", "if true {",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"an answer that is given up for leaves a doubt", "internal/room/acquisition.go",
		"\tif f != nil && f.Unknown {\n\t\ta.unanswered = true\n\t}\n", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a grant that was answered is trusted from its sending", "internal/room/answer.go",
		"e.grant(said.Low, said.High, q.Sent,", "e.grant(said.Low, said.High, at.Now,",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a claim that nobody takes is free", "internal/room/line.go",
		"\t\tr.claimed = false\n", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a claim of a named owner that nobody takes is free", "internal/room/line.go",
		"\tdelete(r.flows, of)\n", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a waiter has a time to ask", "internal/room/entry.go",
		"\tat.timer(e.Acquisition, due, 0)\n}\n\n// Kick", "\t_ = due\n}\n\n// Kick",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"every statement that lacks the queue is made again with it", "internal/room/statement.go",
		"reply.Several && !st.Several:", "reply.Several && !s.several:",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a hold that nobody takes is reserved no longer", "internal/room/acquisition.go",
		"\t\ta.Session.unreserve()\n", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"who leaves says so", "internal/room/acquisition.go",
		"\ta.end(at)\n\tat.do(Effect{Do: Release, Of: a})\n", "\ta.end(at)\n",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"who may stand in the queue says that it leaves", "internal/room/acquisition.go",
		"case !e.queued && a.doubt == 0:", "case !e.queued:",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a waiter hears of its grant", "internal/room/entry.go",
		"\te.finished(at)\n\ts.schedule(at)", "\ts.schedule(at)",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a session is renewed", "internal/room/entry.go",
		"\te.finished(at)\n\ts.schedule(at)", "\te.finished(at)",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"what ends hands on its claim", "internal/room/acquisition.go",
		"\tr.handClaim(a, ticket, at)\n", "\t_ = ticket\n",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a client that drains begins nothing", "keeper.go",
		"case c.tracker.Draining():", "case false:",
		[]string{"TestCallThatHasNotAskedWhenTheClientShutsDownTakesNothing"},
	},
}
