package relock_test

// handleRules are those by which a grant comes to the call that asked for it, and to
// nobody else.
var handleRules = []mutation{
	{
		"a grant for an occupied handle is given back", "obtain.go",
		"case freed != nil:\n\t\t\treturn errOccupied", "case freed != nil:\n\t\t\tfor {\n\t\t\t\tif freed, _ = l.attach(w, h); freed == nil {\n\t\t\t\t\tbreak\n\t\t\t\t}\n\t\t\t\t<-freed\n\t\t\t}",
		[]string{"TestGrantForAnOccupiedHandleGoesToTheNext", "TestHoldThatWasLostBehindItsHandleIsNotReturned"},
	},
	{
		"a hold that is lost before its call returns is no result", "obtain.go",
		"case h.judge() != nil:", "case false:",
		[]string{"TestHoldThatIsLostBeforeItsCallReturnsIsNoResult"},
	},
	{
		"a hold whose hook does not return is given back", "obtain.go",
		"if !kept {", "if !kept && err != nil {",
		[]string{"TestPanicOfTheAcquiredHookGivesTheHoldBack", "TestPanicOfTheAcquiredHookLeavesTheOuterHold"},
	},
	{
		"a hold is given back once", "hold.go",
		"s.phase == held && !h.released\n", "s.phase == held\n",
		[]string{"TestPanicOfAHookThatHasUnlockedEndsNoOtherHold"},
	},
	{
		"a hook that panics keeps back no other", "session.go",
		"defer runAll(tells[1:])\n\trun(tells[0])", "run(tells[0])\n\trunAll(tells[1:])",
		[]string{"TestPanicOfTheLostHookKeepsNothingBack"},
	},
	{
		"a hook that panics keeps no turn", "statement.go",
		"if !returned && s.turn != nil {", "if !returned && false {",
		[]string{"TestPanicOfTheLostHookInAStatementStopsNoOther"},
	},
	{
		"the watchdog calls no hook", "watchdog.go",
		"c.tellApart(tells...)", "runAll(tells)",
		[]string{"TestLostHookThatDoesNotReturnStopsNoRenewal"},
	},
	{
		"answers are noted before hooks are called", "watchdog.go",
		"tells = append(tells, c.renewedHook(st.s))", "run(c.renewedHook(st.s))",
		[]string{"TestRenewedHookThatBlocksLosesNoOtherLock"},
	},
	{
		"a local re-entry has its replicas", "reentry.go",
		"t.replicas.n >= nested.replicas.n", "true",
		[]string{"TestLocalReentryAsksRedisForItsReplicas"},
	},
	{
		"the name of an anonymous hold is no owner", "owner.go",
		"if id[0] == madeMark {", "if false {",
		[]string{"TestNameThatRelockMadeIsEnteredByNobody"},
	},
	{
		"nobody joins an anonymous grant", "lua/acquire.lua",
		"if request.named and string.sub(request.owner, 1, 1) == '~' then", "if false then",
		[]string{"TestNameThatRelockMadeIsRefusedByTheScript"},
	},
	{
		"nobody takes a free lock by the name of an anonymous hold", "lua/acquire.lua",
		"  and not (ARGV[10] == '1' and string.sub(owner, 1, 1) == '~')\n", "",
		[]string{"TestNameThatRelockMadeIsRefusedByTheScript"},
	},
}
