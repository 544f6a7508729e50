package mutation

// holdRules are those of what is said twice in the code, of bounds that must not be
// widened, and of closing: the second way is to be held to no less than the first.
var holdRules = []Rule{
	{
		"the claim is not dropped by who leaves the line", "room.go",
		"			r.passOn(p.of, got.ticket)\n", "",
		[]string{"TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext"},
	},
	{
		"a hold or place is not dropped by who leaves the line", "room.go",
		"r.then(got.acquisition.giveUp)", "_ = got",
		[]string{"TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext"},
	},
	{
		"a lock is passed on 128 times at most", "room.go",
		"maxPasses = 128", "maxPasses = 250",
		[]string{"TestALockIsPassedOn128TimesAtMost"},
	},
	{
		"a lock is passed on for 10 ms at most", "room.go",
		"maxTurn   = 10 * time.Millisecond", "maxTurn   = 10 * time.Second",
		[]string{"TestALockIsPassedOnFor10MsAtMost"},
	},
	{
		"a lock is passed on to the same terms", "room.go",
		"*front.Value.(*place).terms != *s.terms || s.left == 0", "s.left == 0",
		[]string{"TestALockIsNotPassedOnToACallOfOtherTerms"},
	},
	{
		"a lock is passed on with a fresh lease", "room.go",
		" || !s.term.Fresh(now, s.terms.ttl) {", " {",
		[]string{"TestALockIsNotPassedOnWithAnOldLease"},
	},
	{
		"the loss of a read hold is told to the hook", "hold.go",
		"if hook := c.cfg.hooks.Lost; hook != nil {", "if hook := c.cfg.hooks.Lost; hook != nil && !h.read {",
		[]string{"TestLostHookIsCalledForAReadHold"},
	},
	{
		"a loss is logged as an error", "hold.go",
		`c.cfg.log.Error("lock lost"`, `c.cfg.log.Debug("lock lost"`,
		[]string{"TestLoggerIsToldWhatGoesWrong"},
	},
	{
		"what a heartbeat finds is not acknowledged", "watchdog.go",
		"c.apply(p, said, 0)", "c.apply(p, said, 99)",
		[]string{"TestGrantThatAHeartbeatFindsCountsWhenReplicasHaveIt"},
	},
	{
		"the watchdog waits for nobody", "watchdog.go",
		"c.spawn(func(ctx context.Context) { runAll(c.renew(ctx, of, batch)) })", "runAll(c.renew(c.ctx, of, batch))",
		[]string{"TestRenewalsThatWaitForReplicasDelayNobody"},
	},
	{
		"no renewal waits for more replicas than it needs", "watchdog.go",
		"of := lot{s.within(need), need, ttl}", "of := lot{s.within(need), need, ttl}\n\t\t\tof.need.n = min(3*need.n, 3)",
		[]string{"TestWaitNamesTheReplicasThatItsLockAsksFor"},
	},
	{
		"a renewal of many is trusted from its sending", "renew.go",
		"trust.Until(one.sent, of.ttl)", "trust.Until(now, of.ttl)",
		[]string{"TestRenewalsOfManyAreTrustedFromTheirSending"},
	},
	{
		"a renewal of many has the margin", "renew.go",
		"trust.Until(one.sent, of.ttl)", "one.sent.Add(of.ttl+0*trust.Margin(of.ttl))",
		[]string{"TestRenewalsOfManyAreTrustedFromTheirSending"},
	},
	{
		"trust never moves back", "internal/trust/trust.go",
		"t.Until = clock.Max(t.Until, until)", "t.Until = until",
		[]string{"TestTrustNeverMovesBack"},
	},
	{
		"heartbeats of a room go out together", "room.go",
		"if early := r.beat.Until(due); early < 0 || early > slack || now.Reached(r.beat) {", "if true {",
		[]string{"TestWaitersOfOneLockShareTheirHeartbeats"},
	},
	{
		"a heartbeat has an echo", "watchdog.go",
		"notAfter, true, requests...", "notAfter, false, requests...",
		[]string{"TestWaiterWhoseInboxHearsKeepsItsConnection"},
	},
	{
		"a request that queues has an echo", "ask.go",
		"r.kind, p.notAfter, echo, e.request", "r.kind, p.notAfter, false, e.request",
		[]string{"TestWaiterWhoseInboxHearsKeepsItsConnection"},
	},
	{
		"many releases are remembered", "released.go",
		"remembered = 10_000", "remembered = 100",
		[]string{"TestManyReleasesAreSentAgainAfterAFailover"},
	},
	{
		"Close waits for what was spawned", "closing.go",
		"	c.wg.Wait()\n", "",
		[]string{"TestCloseWaitsForWhatTheClientHasStarted"},
	},
	{
		"Close loses what is granted meanwhile", "closing.go",
		"c.loseAll() // what was granted meanwhile", "",
		[]string{"TestCloseLosesWhatIsGrantedMeanwhile"},
	},
	{
		"Close ends the channels that are wanted", "internal/inbox/shards.go",
		"		s.wg.Go(b.Close)\n	}\n	clear", "		if b.linger != nil {\n			s.wg.Go(b.Close)\n		}\n	}\n	clear",
		[]string{"TestShardedChannelOfACallInItsHookEndsWithClose"},
	},
	{
		"Shutdown waits for what is under way", "closing.go",
		"len(c.sessions) == 0 && c.tasks == 0", "len(c.sessions) == 0",
		[]string{"TestShutdownWaitsForAGrantThatIsGivenBack"},
	},
	{
		"the hook of a local unlock is called under no mutex", "reentrant.go",
		"			h.releasedHook(nil, l.c.clock)\n", "			l.mu.Lock()\n			h.releasedHook(nil, l.c.clock)\n			l.mu.Unlock()\n",
		[]string{"TestHooksOfNestedHoldsAreCalledUnderNoMutex"},
	},
	{
		"a hold forgets contexts whose parent has ended", "holdcontext.go",
		"delete(h.contexts, ctx)", "_ = ctx",
		[]string{"TestHoldForgetsContextsWhoseParentHasEnded"},
	},
	{
		"a loss names what is so at its time", "session.go",
		"s.unproven, s.lost = false, nil", "s.unproven = false",
		[]string{"TestLossNamesReplicasOnlyWhereTheyWereTheReason"},
	},
	{
		"the longest TTL is renewed", "session.go",
		"ttl = max(ttl, terms.ttl)", "_ = terms",
		[]string{"TestLongestTTLOfNestedHoldsIsRenewed"},
	},
	{
		"a request that queues proves a silent inbox", "ask.go",
		"echo := ticket >= wire.PlaceNew &&", "echo := false &&",
		[]string{"TestDeafInboxIsFoundByARequestThatQueues"},
	},
	{
		"a lost hold is released", "session.go",
		"\ts.room.then(s.releaseLater)\n\ts.lose(", "\ts.lose(",
		[]string{"TestLostHoldIsReleasedOnceRedisIsBack"},
	},
	{
		"a loss hands on the claim", "session.go",
		"\tr.handClaim(s.acquisition, wire.PlaceNew)\n", "",
		[]string{"TestLossLetsTheLineGoOn"},
	},
	{
		"heartbeats go out in the order of places", "watchdog.go",
		"cmp.Compare(a.e.ticket, b.e.ticket)", "cmp.Compare(b.e.ticket, a.e.ticket)",
		[]string{"TestWaitersOfAProcessKeepTheirOrderThoughRedisLosesItsData"},
	},
}
