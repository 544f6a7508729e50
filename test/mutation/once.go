package mutation

// onceRules are those of names that rest, and of what runs once in an interval.
var onceRules = []Rule{
	{
		"a lock that was had too late to be used is not a run of Once", ". Client.Once",
		"case ending.Is(err, errGone):", "case false:",
		[]string{"TestOnceWhoseGrantOutlivesItsLeaseSaysSo"},
	},
	{
		"what no call has had is given back as the client closes", "internal/room Session.Close",
		"case s.anyReturned():", "case true:",
		[]string{
			"TestGrantThatComesAsTheClientClosesIsGivenBack", "TestHoldThatWasPassedOnAsTheClientClosedIsGivenBack",
			"TestGrantThatItsWaiterHasNotSeenIsGivenBackByClose", "TestHoldThatACallWasAboutToJoinIsGivenBackByClose",
		},
	},
	{
		"what a call had of several is given back as the client closes", "internal/room Session.anyReturned",
		"!h.Pending && h.place", "h.place",
		[]string{"TestWhatAMultiHadAsItsClientClosesIsGivenBack", "TestWhatAQuorumHadAsItsClientsCloseIsGivenBack"},
	},
	{
		"a hold that its call does not have yet is given back as the client closes", "internal/room Session.anyReturned",
		"h.place != unplaced", "h.place >= unplaced",
		[]string{"TestHoldThatItsCallDoesNotHaveYetIsGivenBackByClose"},
	},
	{
		"what is gone by the end of the client is not taken", ". waiting.restart",
		"ending.Is(err, errGone) && w.keeper.c.refusing.Load()", "false",
		[]string{"TestGrantThatComesAsTheClientClosesIsGivenBack"},
	},
	{
		"a name rests after its grant", "lua/shared_sessions.lua",
		"since + request.rest, request.nonce", "now, request.nonce",
		[]string{"TestANameRestsUntilSoLongAfterItWasAcquired", "TestANameRestsThoughItsHolderDied", "TestOnceRunsOnceInEachInterval"},
	},
	{
		"a name that rests is taken", "lua/shared_sessions.lua",
		"if state.rests > math.max(deadline or 0, now) then", "if false then",
		[]string{"TestANameRestsUntilSoLongAfterItWasAcquired", "TestScriptsDoWhatTheModelSays"},
	},
	{
		"a name rests after a grant", "lua/shared_sessions.lua",
		"    rest_after(s)\n", "",
		[]string{"TestANameRestsAfterAHoldThatWasWaitedFor"},
	},
	{
		"the hash lives as long as the rest", "lua/shared_sessions.lua",
		"    redis.call('PEXPIRE', KEYS[1], state.rests - now + state.keep, 'GT')\n", "",
		[]string{"TestANameRestsForLongerThanItsHashWould"},
	},
	{
		"a rest is forgotten with the next grant", "lua/shared_sessions.lua",
		"  elseif state.rester then\n    state.rests = 0\n", "",
		[]string{"TestANameThatWasHeldForLongDoesNotRest"},
	},
	{
		"a rest that is over is remembered until then", "lua/shared_settle.lua",
		"if state.rester and state.rests == 0 then", "if state.rester and state.rests <= now then",
		[]string{"TestOnceIsNotRunAgainThoughItsIntervalHadEnded"},
	},
	{
		"crowd says that a name rests", "lua/shared_settle.lua",
		"(state.several or state.ended or state.rester or", "(state.several or state.ended or",
		[]string{"TestANameRestsUntilSoLongAfterItWasAcquired"},
	},
	{
		"a request after which the name is to rest is not usual", "internal/wire Encoder.Acquire",
		"rests = rests || r.Rest.For > 0", "rests = rests && r.Rest.For > 0",
		[]string{"TestANameRestsUntilSoLongAfterItWasAcquired"},
	},
	{
		"a hand-over sees the rest of who is next", "lua/shared_record.lua",
		"(%d+ %d+ %d+ %S+ %d+)", "(%d+ %d+ %d+ %d+ %d+)",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a heartbeat keeps what is to rest", "lua/acquire.lua",
		"request.op .. string.match(request.counts, ' .*$')", "write_counts(request.op, request.writes, request.reads, request.ttl, request.block)",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a grant in vain leaves no rest", "lua/release.lua",
		"if ARGV[6] == 'undone' and state.rester == ended.nonce then", "if false then",
		[]string{"TestAGrantThatNoCallHadLeavesNoRest", "TestAMultiThatGivesUpLeavesNoRest", "TestOnceThatFailedIsSpentUnlessItsErrorSaysOtherwise"},
	},
	{
		"a grant in vain ends no other's rest", "lua/release.lua",
		"if ARGV[6] == 'undone' and state.rester == ended.nonce then", "if ARGV[6] == 'undone' then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a call waits for no rest of its own grant", "lua/acquire.lua",
		"if request.rest and state.rester == request.nonce and request.op > state.rest_op then", "if false then",
		[]string{"TestALockWaitsForNoRestOfItsOwn", "TestAWaiterWaitsForNoRestOfItsOwn", "TestScriptsDoWhatTheModelSays"},
	},
	{
		"a call that has joined a grant keeps its rest", "lua/shared_sessions.lua",
		"    if state.rests > 0 then\n", "    if false then\n",
		[]string{"TestARestStaysForWhoJoinedTheGrantOfACallThatFailed", "TestScriptsDoWhatTheModelSays"},
	},
	{
		"a hold that a call had is not in vain", "internal/room Hold.Put",
		"h.Session.Used++", "",
		[]string{"TestANameRestsUntilSoLongAfterItWasAcquired"},
	},
	{
		"a hold that a call could not return is in vain", ". Lock.putOnHandle",
		"h.skipRest()", "",
		[]string{"TestAGrantThatNoCallHadLeavesNoRest"},
	},
	{
		"a hold of several that are not all to be had is in vain", ". Multi.try",
		"how.pending = true", "",
		[]string{"TestAMultiThatGivesUpLeavesNoRest", "TestAMultiWaitsForNoRestOfWhatItLostDuringAHook"},
	},
	{
		"a hold of several that a call has had is not in vain", ". Multi.acquire",
		"hold.markReturned(true)", "_ = hold",
		[]string{"TestAMultiWaitsForNoRestOfItsOwn"},
	},
	{
		"a majority that a call has had is not in vain", ". QuorumLock.acquire",
		"h.majority.MarkReturned()", "",
		[]string{"TestAQuorumIsAcquiredOnceThoughPrimariesAreTakenAgain"},
	},
	{
		"a part of a majority that was not to be had is in vain", ". primary.Queue, primary.Try",
		"pending: true", "pending: false",
		[]string{"TestAQuorumThatLosesWhatItHadBeforeAMajorityLeavesNoRest"},
	},
	{
		"a primary that is taken again begins no rest of its own", "internal/quorum Majority.adopt",
		"hold.MarkReturned(time.Since(h.granted) < h.lock.Rest)", "hold.MarkReturned(true)",
		[]string{"TestAQuorumIsAcquiredOnceThoughPrimariesAreTakenAgain"},
	},
	{
		"an operator ends the rest with the hold", "lua/force.lua",
		"  removed, state.rests = 1, 0\n  drop(alone)", "  removed = 1\n  drop(alone)",
		[]string{"TestForceUnlockEndsTheRestOfAName"},
	},
	{
		"an operator ends the rest that was meant", "lua/force.lua",
		"elseif owner == '' and token == state.rests and state.rests > now then", "elseif owner == '' and token == state.rests then",
		[]string{"TestForceUnlockEndsNoRestThatIsOver"},
	},
	{
		"what is to rest is not passed on", "internal/room Acquisition.passable",
		"&& a.Terms.Rest.For == 0", "",
		[]string{"TestAHoldAfterWhichANameRestsIsNotPassedOn"},
	},
	{
		"what several may hold does not rest", ". terms.suitsKind",
		"case t.Rest.For > 0 && !plain:", "case false:",
		[]string{"TestWhatCannotRestIsRefused"},
	},
	{
		"not every lock of a client rests", ". Defaults",
		`t.suitsKind("")`, "t.suitsKind(wire.KindPlain)",
		[]string{"TestWhatCannotRestIsRefused"},
	},
	{
		"an interval ends by the server's clock", ". forOnce",
		"Aligned: true}", "Aligned: false}",
		[]string{"TestOnceRunsOnceInEachInterval", "TestOnceRunsOnceInEachIntervalOverProcesses"},
	},
	{
		"no owner enters a run", ". forOnce",
		"s.anonymous, s.terms.Rest = true,", "s.anonymous, s.terms.Rest = false,",
		[]string{"TestOnceKnowsNoOwner"},
	},
	{
		"a run that failed counts unless it says otherwise", ". Client.Once",
		"if ending.Is(err, ErrUnspent) {", "if err != nil {",
		[]string{"TestOnceThatFailedIsSpentUnlessItsErrorSaysOtherwise"},
	},
	{
		"a cause that says unspent is not the run's own", ". Client.Once",
		"if ending.Is(err, ErrUnspent) {", "if errors.Is(err, ErrUnspent) {",
		[]string{"TestACauseThatSaysUnspentIsNotTheRunsOwn"},
	},
	{
		"a name whose call failed is not at rest, however late Redis hears of it", ". releasing.release",
		"if err != nil && r.note.Undone {", "if false {",
		[]string{"TestOnceThatFailedSpendsNothingThoughRedisIsAwayForLong"},
	},
	{
		"no rest keeps a shutdown", ". releasing.release",
		"context.WithTimeout(r.a.keeper.c.open, r.a.Terms.Rest.For)", "context.WithTimeout(context.Background(), r.a.Terms.Rest.For)",
		[]string{"TestShutdownWaitsNoLongerForARestThanForALease"},
	},
}
