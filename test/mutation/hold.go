package mutation

// holdRules are those of what is said twice in the code, of bounds that must not be
// widened, and of closing: the second way is to be held to no less than the first.
var holdRules = []Rule{
	{
		"the handler of the log holds up no lock", "locker.go",
		"to != slog.DiscardHandler {", "false {",
		[]string{"TestAHandlerOfTheLogThatHangsHoldsUpNothing"},
	},
	{
		"a renewal among many that was overtaken is not trusted", "internal/wire/statement.go",
		"< max(1, ttl.Milliseconds())", "<= 0",
		[]string{"TestRenewalThatIsOvertakenIsNotTrusted", "TestRenewalOfManySaysWhichLeasesAreAsTheyWere"},
	},
	{
		"a session of holds of several terms is scheduled for each", "internal/room/hold.go",
		" || s.ends {", " {",
		[]string{"TestSessionOfHoldsOfTwoTermsIsRenewed", "TestAHoldThatFollowsOneWithoutAWatchdogIsRenewed"},
	},
	{
		"the claim is not dropped by who leaves the line", "internal/room/line.go",
		"\t\tr.passOn(p.of, p.Given.Ticket, at)\n", "",
		[]string{"TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext", "TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a hold or place is not dropped by who leaves the line", "internal/room/line.go",
		"p.Given.Acquisition.GiveUp(at)", "_ = at",
		[]string{"TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext", "TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a lock is passed on 128 times at most", "internal/room/room.go",
		"maxPasses = 128", "maxPasses = 250",
		[]string{"TestALockIsPassedOn128TimesAtMost"},
	},
	{
		"a lock is passed on for 10 ms at most", "internal/room/room.go",
		"maxTurn   = 10 * time.Millisecond", "maxTurn   = 10 * time.Second",
		[]string{"TestALockIsPassedOnFor10MsAtMost"},
	},
	{
		"a lock is passed on to the same terms", "internal/room/line.go",
		"*front.terms != *s.Terms || !s.passes(at)", "!s.passes(at)",
		[]string{"TestALockIsNotPassedOnToACallOfOtherTerms"},
	},
	{
		"a lock is passed on with a fresh lease", "internal/room/line.go",
		" && s.fresh(s.Terms.TTL, at.Now)\n", "\n",
		[]string{"TestALockIsNotPassedOnWithAnOldLease"},
	},
	{
		"the loss of a read hold is told to the hook", "trace.go",
		"if hook := c.cfg.hooks.Lost; hook != nil {", "if hook := c.cfg.hooks.Lost; hook != nil && !h.reads() {",
		[]string{"TestLostHookIsCalledForAReadHold"},
	},
	{
		"a loss is logged as an error", "trace.go",
		"log := c.cfg.log.Error", "log := c.cfg.log.Debug",
		[]string{"TestLoggerIsToldWhatGoesWrong"},
	},
	{
		"a loss that was asked for is no error in the log", "trace.go",
		"if loss.AskedFor(why) {", "if false {",
		[]string{"TestALossSaysWhyInTheErrorTheHookAndTheLog"},
	},
	{
		"MaxHold is told as the reason only where renewals did not fail before", "internal/room/term.go",
		" && (s.fails == 0 || s.renewed.Reached(h.last))", "",
		[]string{"TestALossSaysWhyInTheErrorTheHookAndTheLog"},
	},
	{
		"holds that end together say each why", "internal/room/term.go",
		"\t\t\th.why = h.endedBy()\n\t\t\twhy = h.why\n", "\t\t\twhy = h.endedBy()\n",
		[]string{"TestHoldsThatEndTogetherSayEachWhy"},
	},
	{
		"a loss that a release is the first to find is logged", "trace.go",
		"if ending.Is(err, ErrLost) {", "if false && ending.Is(err, ErrLost) {",
		[]string{"TestALossIsLoggedOnceWhoeverFindsIt"},
	},
	{
		"what a heartbeat finds is not acknowledged", "internal/room/answer.go",
		"q.apply(&said, 0, at)", "q.apply(&said, 99, at)",
		[]string{"TestGrantThatAHeartbeatFindsCountsWhenReplicasHaveIt"},
	},
	{
		"the watchdog waits for nobody", "watchdog.go",
		"c.spawn(func(ctx context.Context) { runAll(c.renew(ctx, of, batch)) })", "runAll(c.renew(c.ctx, of, batch))",
		[]string{"TestRenewalsThatWaitForReplicasDelayNobody"},
	},
	{
		"no renewal waits for more replicas than it needs", "internal/room/statement.go",
		"r = Renewal{Lease: lease, Within: need.Within(s.shortest(at.Now)), Need: need}", "r = Renewal{Lease: lease, Within: need.Within(s.shortest(at.Now)), Need: need}\n\t\tr.Need.N = min(3*need.N, 3)",
		[]string{"TestWaitNamesTheReplicasThatItsLockAsksFor"},
	},
	{
		"a renewal of many is trusted from its sending", "internal/room/statement.go",
		"trust.Until(st.Sent, st.Lease)", "trust.Until(at.Now, st.Lease)",
		[]string{"TestRenewalsOfManyAreTrustedFromTheirSending"},
	},
	{
		"a renewal of many has the margin", "internal/room/statement.go",
		"trust.Until(st.Sent, st.Lease)", "st.Sent.Add(st.Lease+0*trust.Margin(st.Lease))",
		[]string{"TestRenewalsOfManyAreTrustedFromTheirSending"},
	},
	{
		"trust never moves back", "internal/trust/trust.go",
		"{ t.Until = clock.Max(t.Until, until) }", "{ t.Until = until }",
		[]string{"TestTrustNeverMovesBack"},
	},
	{
		"heartbeats of a room go out together", "internal/room/room.go",
		"if early := r.beat.Until(due); early < 0 || early > slack || now.Reached(r.beat) {", "if true {",
		[]string{"TestWaitersOfOneLockShareTheirHeartbeats"},
	},
	{
		"a heartbeat has an echo", "watchdog.go",
		"c.listeners.Echo(k.listener, true)", "wire.Quiet",
		[]string{"TestWaiterWhoseInboxHearsKeepsItsConnection"},
	},
	{
		"a request that queues has an echo", "ask.go",
		"k.kind, q.NotAfter, echo, wireRequest", "k.kind, q.NotAfter, wire.Quiet, wireRequest",
		[]string{"TestWaiterWhoseInboxHearsKeepsItsConnection"},
	},
	{
		"many releases are remembered", "internal/replay/journal.go",
		"remembered = 10_000", "remembered = 100",
		[]string{"TestManyReleasesAreSentAgainAfterAFailover"},
	},
	{
		"Close waits for what was spawned", "locker.go",
		"	c.tracker.Wait()\n", "",
		[]string{"TestCloseWaitsForWhatTheClientHasStarted"},
	},
	{
		"Close loses what is granted meanwhile", "locker.go",
		"c.loseAll() // what was granted meanwhile", "",
		[]string{"TestCloseLosesWhatIsGrantedMeanwhile"},
	},
	{
		"Close ends the channels that are wanted", "internal/inbox/shards.go",
		"		s.wg.Go(b.Close)\n	}\n	clear", "		if b.linger != nil {\n			s.wg.Go(b.Close)\n		}\n	}\n	clear",
		[]string{"TestShardedChannelOfACallInItsHookEndsWithClose"},
	},
	{
		"Shutdown waits for what is under way", "internal/shutdown/tracker.go",
		"t.left() == 0 && t.tasks == 0", "t.left() == 0",
		[]string{"TestShutdownWaitsForAGrantThatIsGivenBack"},
	},
	{
		"the hook of a local unlock is called under no mutex", "reentrant.go",
		"			h.releasedHook(nil, l.c.clock.Now())\n", "			l.mu.Lock()\n			h.releasedHook(nil, l.c.clock.Now())\n			l.mu.Unlock()\n",
		[]string{"TestHooksOfNestedHoldsAreCalledUnderNoMutex"},
	},
	{
		"a hold forgets contexts whose parent has ended", "context.go",
		"delete(h.contexts, ctx)", "_ = ctx",
		[]string{"TestHoldForgetsContextsWhoseParentHasEnded"},
	},
	{
		"a loss names what is so at its time", "internal/room/session.go",
		"s.unproven, s.lost = false, nil", "s.unproven = false",
		[]string{"TestLossNamesReplicasOnlyWhereTheyWereTheReason"},
	},
	{
		"the longest TTL is renewed", "internal/room/session.go",
		"ttl = max(ttl, terms.TTL)", "_ = terms",
		[]string{"TestLongestTTLOfNestedHoldsIsRenewed"},
	},
	{
		"a request that queues proves a silent inbox", "ask.go",
		"if ticket >= room.PlaceNew {", "if false {",
		[]string{"TestDeafInboxIsFoundByARequestThatQueues"},
	},
	{
		"a renewal is due by what is left", "internal/trust/trust.go",
		"lease/3 + Margin(lease) - lease)", "lease/3 + Margin(lease))",
		[]string{"TestNestedUnlocksPutNoRenewalOff", "TestGrantThatIsToldLateIsRenewed", "TestARenewalIsDueAtOnceWhenLessIsLeft"},
	},
	{
		"a suspension shortens the time that is told", "internal/clock/clock.go",
		"return t.Add(-slept)", "return t",
		[]string{"TestSuspensionShortensTheTimeThatIsTold"},
	},
	{
		"a ticket says what the hold is when it is handed over", "handover.go",
		"	t.Read = h.hold.Read ", "	t.Read = false ",
		[]string{"TestWhoResumesHoldsUnderTheSameToken", "TestATicketOfADowngradedHoldReads"},
	},
	{
		"who is refused has the copies of its requests ended", "internal/room/entry.go",
		"	if e.Session == nil && e.doubt != 0 {", "	if false {",
		[]string{"TestHeartbeatOfAWaiterThatWasRefusedIsGrantedNothing"},
	},
	{
		"a hold is trusted for no longer than its own TTL after a renewal", "internal/room/term.go",
		"clock.Min(s.trust.Until, trust.Until(from, t.TTL))", "s.trust.Until",
		[]string{"TestAHoldIsTrustedForItsOwnTTLBesideANestedOneOfAnHour", "TestAHoldIsTrustedForItsOwnTTLBesideALongerOneThatIsRenewed", "TestAQuorumHoldIsTrustedForItsOwnTermsBesideANestedOne"},
	},
	{
		"a renewal is due for the shortest hold", "internal/room/term.go",
		"!renew || due.Until(first) > 0", "!renew",
		[]string{"TestAHoldIsTrustedForItsOwnTTLBesideALongerOneThatIsRenewed"},
	},
	{
		"no renewal of another hold counts for one without a watchdog", "internal/room/term.go",
		"\t\th.last = h.Session.renewed\n", "",
		[]string{"TestNoWatchdogEndsAHoldThoughItsOwnerHasOthers", "TestGrantIsRenewedWhileAnyHoldHasAWatchdog"},
	},
	{
		"no renewal of another hold counts for one that has been held for its MaxHold", "internal/room/term.go",
		"\t\th.last = h.Acquired.Add(t.MaxHold)\n", "\t\th.last = h.Acquired.Add(time.Hour)\n",
		[]string{"TestMaxHoldEndsAHoldThoughItsOwnerHasOthers"},
	},
	{
		"a nested hold of a shorter TTL has its lease stated where the last renewal is old", "internal/room/statement.go",
		" && s.fresh(said.Least, at.Now)", "",
		[]string{"TestANestedHoldOfAShortTTLIsStatedWithAnotherCallsOfALongOne"},
	},
	{
		"a hold that has ended by itself is not one that Redis counts", "internal/room/term.go",
		"\t\th.lost, h.why = true, h.endedBy()\n\t\ts.drop(h)\n", "\t\th.lost, h.why = true, h.endedBy()\n",
		[]string{"TestAHoldThatEndsBesideANestedOneIsUnlockedAsLost"},
	},
	{
		"a lost hold is released", "internal/room/term.go",
		"s.LoseHeld(why, at)", "s.Lose(why, at)",
		[]string{"TestLostHoldIsReleasedOnceRedisIsBack"},
	},
	{
		"a loss hands on the claim", "internal/room/session.go",
		"\tr.handClaim(s.Acquisition, PlaceNew, at)\n", "",
		[]string{"TestLossLetsTheLineGoOn", "TestExplorationOfRoomsFindsNothing"},
	},
	{
		"heartbeats go out in the order of places", "watchdog.go",
		"cmp.Compare(a.Ticket(), b.Ticket())", "cmp.Compare(b.Ticket(), a.Ticket())",
		[]string{"TestWaitersOfAProcessKeepTheirOrderThoughRedisLosesItsData"},
	},
	{
		"a loss that its release finds ends the contexts", "hold.go",
		"		k.end(&at) // a loss", "		cancel := h.cancelAll(ErrNotHeld)\n		k.end(&at)\n		runAll(cancel) // a loss",
		[]string{"TestALossThatItsReleaseFindsIsTheCauseOfItsContexts", "TestALossThatItsReleaseFindsEndsItsContextsThoughTheHookPanics"},
	},
	{
		"a loss is the cause of contexts though a release has come since", "context.go",
		"if h.hold.Lost() {", "if false {",
		[]string{"TestALossIsTheCauseOfContextsThatHaveYetToEndAtTheRelease"},
	},
}
