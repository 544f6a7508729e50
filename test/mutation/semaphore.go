package mutation

// semaphoreRules are those of semaphores.
var semaphoreRules = []Rule{
	{
		"the permits of a holder are told", "lua/info.lua",
		"weight = entered and 0 or grant.weight }", "weight = session.weight > 0 and 1 or 0 }",
		[]string{"TestInfoTellsThePermitsOfASemaphore"},
	},
	{
		"the permits in use are added up", ". Info.add",
		"all.Permits += h.Weight", "",
		[]string{"TestInfoTellsThePermitsOfASemaphore"},
	},
	{
		"semaphore: a session that comes back is counted once", "lua/acquire.lua",
		"    drop(session) -- its grant must not count it twice\n", "",
		[]string{"TestPermitsOfASessionThatComesBackAreCountedOnce"},
	},
	{
		"no more permits are used than there are", "lua/shared_settle.lua",
		"return used() + request.weight <= request.permits", "return true",
		[]string{"TestSoManyHoldASemaphoreAtATime", "TestSemaphoreIsNeverOverdrawnThoughProcessesDie"},
	},
	{
		"a request is judged by its weight", "lua/shared_settle.lua",
		"used() + request.weight <=", "used() + 1 <=",
		[]string{"TestASemaphoreServesWhoComesFirst", "TestSemaphoreIsNeverOverdrawnThoughProcessesDie"},
	},
	{
		"a heavy request is not passed by a lighter one", "lua/acquire.lua",
		"if state.queued == 0 and fits(request) then", "if (request.mode == 's' or state.queued == 0) and fits(request) then",
		[]string{"TestASemaphoreServesWhoComesFirst"},
	},
	{
		"who holds alone uses its permits", "lua/shared_sessions.lua",
		"  state.used = s.weight\n", "",
		[]string{"TestSoManyHoldASemaphoreAtATime"},
	},
	{
		"a grant uses its permits", "lua/shared_sessions.lua",
		"local more = begins and begins.weight or 0", "local more = 0",
		[]string{"TestSoManyHoldASemaphoreAtATime"},
	},
	{
		"a grant that ends gives its permits back", "lua/shared_sessions.lua",
		"    weigh(nil, grant)\n", "",
		[]string{"TestSoManyHoldASemaphoreAtATime"},
	},
	{
		"a grant that is forced to end gives its permits back", "lua/force.lua",
		"  weigh(nil, grant)\n", "",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a re-entry uses no permits", "lua/shared_sessions.lua",
		"    weigh(grant, before)\n  end\n", "  end\n  weigh(s, before and before.low ~= grant.low and before or nil)\n",
		[]string{"TestANamedOwnersReentryTakesNoFurtherPermits"},
	},
	{
		"a grant keeps its weight", "lua/shared_record.lua",
		"weight = tonumber(weight) or 0,\n  }\nend\n\nlocal function write_grant", "weight = 1,\n  }\nend\n\nlocal function write_grant",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"permits come back with the first lease that ends", "lua/shared_settle.lua",
		"return (request.mode == 's' or above(request)) and shortest() or blocked()", "return blocked()",
		[]string{"TestPermitsOfADeadHolderComeBackWithItsOwnLease"},
	},
	{
		"who waits for permits is told when the one before it ends", "lua/acquire.lua",
		"if request.mode ~= 'w' and not writer() then", "if request.mode == 'r' and not writer() then",
		[]string{"TestWhoWaitsBehindADeadHeavyOneIsServedWhenItsEntryEnds"},
	},
	{
		"an attempt asks until the dead are forgotten", ". waiting.attempt",
		"&& w.said.Code == room.Taken && w.said.More {", "&& false {",
		[]string{"TestPermitsOfManyDeadHoldersAreToBeHadAtOnce", "TestAnAttemptFindsFreeWhatOnlyTheDeadWaitFor"},
	},
	{
		"a call that is refused lets the queue live as long as the hash", "lua/acquire.lua",
		"redis.call('PEXPIRE', KEYS[2], life(request.ttl, keep), 'GT')", "local _ = request",
		[]string{"TestTheDeadWhoHeldTogetherLeaveNothing"},
	},
	{
		"a weight is no more than the permits", ". permitsFor",
		"case weight > permits:", "case false:",
		[]string{"TestBadPermitsFailEveryCallAndLeaveNothing"},
	},
	{
		"a semaphore of no permits is told so", ". permitsFor",
		"permits < 1 ||", "",
		[]string{"TestBadPermitsFailEveryCallAndLeaveNothing"},
	},
	{
		"other locks have no weight", ". terms.suitsKind",
		"case t.Permits.Weight > 0 && kind != wire.KindSemaphore:", "case false:",
		[]string{"TestBadPermitsFailEveryCallAndLeaveNothing"},
	},
	{
		"not every lock of a client has a weight", ". Defaults",
		`t.suitsKind("")`, "t.suitsKind(wire.KindSemaphore)",
		[]string{"TestBadPermitsFailEveryCallAndLeaveNothing"},
	},
	{
		"who would wait for its own permits is told", ". waitsForItself",
		"used > 0 && used+p.Weight > p.Of", "false",
		[]string{"TestASemaphoreRefusesOnlyWhoWouldWaitForItself"},
	},
	{
		"who holds permits is in no need of more", ". waitsForItself",
		"case holder == owner, enters && l.kind == wire.KindSemaphore: return nil", "case holder == owner && l.kind != wire.KindSemaphore: return nil",
		[]string{"TestASemaphoreRefusesOnlyWhoWouldWaitForItself"},
	},
	{
		"one grant of a caller is counted once", ". waitsForItself",
		"!slices.Contains(grants, s)", "true || slices.Contains(grants, s)",
		[]string{"TestASemaphoreRefusesOnlyWhoWouldWaitForItself"},
	},
	{
		"an Unlock ends its own owner's hold of a semaphore", "internal/room Handle.otherOwner",
		"(!w.Unlock || !h.Unlock)", "true",
		[]string{"TestHoldsOfASemaphoreThatUnlockEndsAreOfOneOwner"},
	},
	{
		"other owners' holds of a semaphore are in nobody's way", "internal/room Handle.otherOwner",
		"if w.Terms.Permits.Of > 0 && (", "if false && (",
		[]string{"TestHoldsOfASemaphoreThatUnlockEndsAreOfOneOwner"},
	},
	{
		"semaphore: renewals of many share a command", "internal/room Session.Due",
		"s.Ledger.Settled() &&", "s.Ledger.Settled() && s.Ledger.Meant.Reads == 0 &&",
		[]string{"TestRenewalsOfManySemaphoresShareCommands"},
	},
}
