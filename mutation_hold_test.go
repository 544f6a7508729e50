package relock_test

// holdRules are those of what is said twice in the code, of bounds that must not be
// widened, and of closing: the second way is to be held to no less than the first.
var holdRules = []mutation{
	{
		"the claim is not dropped by who leaves the line", "pubsub_wait.go",
		"			r.passOn(p.of, got.ticket)\n", "",
		[]string{"TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext"},
	},
	{
		"a hold or place is not dropped by who leaves the line", "pubsub_wait.go",
		"got.session.giveUp()", "_ = got",
		[]string{"TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext"},
	},
	{
		"a lock is passed on 128 times at most", "pubsub_wait.go",
		"maxPasses = 128", "maxPasses = 250",
		[]string{"TestALockIsPassedOn128TimesAtMost"},
	},
	{
		"a lock is passed on for 10 ms at most", "pubsub_wait.go",
		"maxTurn   = 10 * time.Millisecond", "maxTurn   = 10 * time.Second",
		[]string{"TestALockIsPassedOnFor10MsAtMost"},
	},
	{
		"a lock is passed on to the same terms", "pubsub_wait.go",
		"*front.Value.(*place).terms != *s.terms || s.left == 0", "s.left == 0",
		[]string{"TestALockIsNotPassedOnToACallOfOtherTerms"},
	},
	{
		"a lock is passed on with a fresh lease", "pubsub_wait.go",
		" || now.Until(s.trust) < s.terms.ttl/3 {", " {",
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
		"c.apply(s, p.op, p.sent, a, 0)", "c.apply(s, p.op, p.sent, a, 99)",
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
		"one.sent.Add(of.ttl-margin(of.ttl))", "now.Add(of.ttl-margin(of.ttl))",
		[]string{"TestRenewalsOfManyAreTrustedFromTheirSending"},
	},
	{
		"a renewal of many has the margin", "renew.go",
		"one.sent.Add(of.ttl-margin(of.ttl))", "one.sent.Add(of.ttl)",
		[]string{"TestRenewalsOfManyAreTrustedFromTheirSending"},
	},
	{
		"trust never moves back", "session.go",
		"s.trust = clock.Max(s.trust, trust)", "s.trust = trust",
		[]string{"TestTrustNeverMovesBack"},
	},
	{
		"heartbeats of a room go out together", "pubsub_wait.go",
		"if early := r.beat.Until(due); early < 0 || early > slack || now.Reached(r.beat) {", "if true {",
		[]string{"TestWaitersOfOneLockShareTheirHeartbeats"},
	},
	{
		"a heartbeat has an echo", "watchdog.go",
		"notAfter, true, requests...", "notAfter, false, requests...",
		[]string{"TestWaiterWhoseInboxHearsKeepsItsConnection"},
	},
	{
		"a request that queues has an echo", "pubsub_wait.go",
		"r.kind, notAfter, echo, s.request", "r.kind, notAfter, false, s.request",
		[]string{"TestWaiterWhoseInboxHearsKeepsItsConnection"},
	},
	{
		"many releases are remembered", "released.go",
		"remembered = 10_000", "remembered = 100",
		[]string{"TestManyReleasesAreSentAgainAfterAFailover"},
	},
	{
		"Close waits for what was spawned", "locker.go",
		"	c.wg.Wait()\n", "",
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
		"Shutdown waits for what is under way", "locker.go",
		"len(c.sessions) == 0 && c.tasks == 0", "len(c.sessions) == 0",
		[]string{"TestShutdownWaitsForAGrantThatIsGivenBack"},
	},
	{
		"the hook of a local unlock is called under no mutex", "reentrant.go",
		"			h.releasedHook(nil, l.c.clock)\n", "			l.mu.Lock()\n			h.releasedHook(nil, l.c.clock)\n			l.mu.Unlock()\n",
		[]string{"TestHooksOfNestedHoldsAreCalledUnderNoMutex"},
	},
	{
		"a hold forgets contexts whose parent has ended", "hold.go",
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
		"a request that queues proves a silent inbox", "pubsub_wait.go",
		"echo := ticket >= placeNew &&", "echo := false &&",
		[]string{"TestDeafInboxIsFoundByARequestThatQueues"},
	},
	{
		"a lost hold is released", "session.go",
		"\t\t\ts.releaseLater(until)\n", "\t\t\t_ = until\n",
		[]string{"TestLostHoldIsReleasedOnceRedisIsBack"},
	},
	{
		"a loss hands on the claim", "session.go",
		"\ts.room.passClaim(s)\n", "",
		[]string{"TestLossLetsTheLineGoOn"},
	},
	{
		"heartbeats go out in the order of places", "watchdog.go",
		"cmp.Compare(a.s.ticket, b.s.ticket)", "cmp.Compare(b.s.ticket, a.s.ticket)",
		[]string{"TestWaitersOfAProcessKeepTheirOrderThoughRedisLosesItsData"},
	},
}
