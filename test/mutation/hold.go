package mutation

// holdRules are those of what is said twice in the code, of bounds that must not be
// widened, and of closing: the second way is to be held to no less than the first.
var holdRules = []Rule{
	{
		"the handler of the log holds up no lock", ". New",
		"to != slog.DiscardHandler {", "false {",
		[]string{"TestAHandlerOfTheLogThatHangsHoldsUpNothing"},
	},
	{
		"a renewal among many that was overtaken is not trusted", "internal/wire DecodeRenew",
		"< max(1, ttl.Milliseconds())", "<= 0",
		[]string{"TestRenewalOfManySaysWhichLeasesAreAsTheyWere"},
	},
	{
		"a hold of a short lease does not wait for a renewal in flight", "internal/room Session.Hold",
		"s.busy = false", "_ = s",
		[]string{"TestAHoldOfAShortTTLIsRenewedThoughAnotherRenewalIsInFlight"},
	},
	{
		"a hold of a short lease beside one that is renewed no longer has its own renewal", "internal/room Session.shortest",
		"cmp.Or(ttl, s.Terms.TTL)", "cmp.Or(ttl, 0)",
		[]string{"TestAHoldOfAShortTTLIsRenewedThoughAnotherRenewalIsInFlight"},
	},
	{
		"after a wait a shorter lease is stated", "internal/room Session.ToConfirm",
		"g.terms.TTL != s.Terms.TTL", "g.terms.TTL > s.Terms.TTL",
		[]string{"TestANestedHoldOfOtherTermsIsKeptAfterAWait"},
	},
	{
		"after a wait the lease is stated though it is fresh", "internal/room Session.Confirmation",
		"x.LeaseMayStay = false", "",
		[]string{"TestANestedHoldOfOtherTermsIsKeptAfterAWait"},
	},
	{
		"after a wait a fixed lease is whole", "internal/room Session.ToConfirm",
		"|| g.terms.Fixed && !s.Terms.Fixed", "",
		[]string{"TestANestedHoldOfOtherTermsIsKeptAfterAWait"},
	},
	{
		"an owner that waits signals nobody", ". Cond.signalBy",
		"if waits {", "if false && waits {",
		[]string{"TestASignalOfAnOwnerThatWaitsLosesNothing"},
	},
	{
		"a hold of a counted session has the timer set, which a renewal may have set for other holds", "internal/room Session.Hold",
		"s.counted() || ", "",
		[]string{"TestAHoldOfTheFirstTTLIsRenewedThoughALongerOneWasMeanwhile", "TestAHoldThatFollowsOneWithoutAWatchdogIsRenewed"},
	},
	{
		"a hold that joins without a command has the timer set", "internal/room Session.Hold",
		"if s.counted() || s.Terms != h.Terms {", "if !h.local && (s.counted() || s.Terms != h.Terms) {",
		[]string{"TestAHoldOfLocalReentryIsRenewedByItsOwnTTL"},
	},
	{
		"the claim is not dropped by who leaves the line", "internal/room Room.Leave",
		"r.passClaim(p.flow, p.Given.Place, at)", "",
		[]string{"TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext", "TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a hold or place is not dropped by who leaves the line", "internal/room Room.Leave",
		"p.Given.Acquisition.GiveUp(at)", "_ = at",
		[]string{"TestWhatIsHandedToACallThatLeavesTheLineGoesToTheNext", "TestExplorationOfRoomsFindsNothing"},
	},
	{
		"a lock is passed on 128 times at most", "internal/room maxPasses",
		"maxPasses = 128", "maxPasses = 250",
		[]string{"TestALockIsPassedOn128TimesAtMost"},
	},
	{
		"a lock is passed on for 10 ms at most", "internal/room maxPassTime",
		"maxPassTime = 10 * time.Millisecond", "maxPassTime = 10 * time.Second",
		[]string{"TestALockIsPassedOnFor10MsAtMost"},
	},
	{
		"a lock is passed on to the same terms", "internal/room Room.passToLine",
		"*front.terms != *s.Terms || !s.canPass(at)", "!s.canPass(at)",
		[]string{"TestALockIsNotPassedOnToACallOfOtherTerms"},
	},
	{
		"a lock is passed on with a fresh lease", "internal/room Session.canPass",
		"&& s.fresh(s.Terms.TTL, at.Now)", "",
		[]string{"TestALockIsNotPassedOnWithAnOldLease"},
	},
	{
		"the loss of a read hold is told to the hook", ". Hold.lostHook",
		"if hook := c.cfg.hooks.Lost; hook != nil {", "if hook := c.cfg.hooks.Lost; hook != nil && !h.reads() {",
		[]string{"TestLostHookIsCalledForAReadHold"},
	},
	{
		"a loss is logged as an error", ". Hold.logLoss",
		"log := c.cfg.log.Error", "log := c.cfg.log.Debug",
		[]string{"TestLoggerIsToldWhatGoesWrong"},
	},
	{
		"a loss that was asked for is no error in the log", ". Hold.logLoss",
		"if loss.AskedFor(why) {", "if false && loss.AskedFor(why) {",
		[]string{"TestALossSaysWhyInTheErrorTheHookAndTheLog"},
	},
	{
		"MaxHold is told as the reason only where renewals did not fail before", "internal/room Hold.endedBy",
		"&& (s.fails == 0 || s.renewed.Reached(h.last))", "",
		[]string{"TestALossSaysWhyInTheErrorTheHookAndTheLog"},
	},
	{
		"holds that end together say each why", "internal/room Session.Check",
		"h.why = h.endedBy(); why = h.why", "why = h.endedBy()",
		[]string{"TestHoldsThatEndTogetherSayEachWhy"},
	},
	{
		"a loss that a release is the first to find is logged", ". Hold.releasedHook",
		"if ending.Is(err, ErrLost) {", "if false && ending.Is(err, ErrLost) {",
		[]string{"TestALossIsLoggedOnceWhoeverFindsIt"},
	},
	{
		"what a heartbeat finds is not acknowledged", "internal/room Request.BeatAnswered",
		"q.apply(&said, 0, at)", "q.apply(&said, 99, at)",
		[]string{"TestGrantThatAHeartbeatFindsCountsWhenReplicasHaveIt"},
	},
	{
		"the watchdog waits for nobody", ". round.send",
		"w.c.tracker.Go(func(ctx context.Context) { runAll(w.renew(ctx, renewal, batch)) })", "runAll(w.renew(w.c.ctx, renewal, batch))",
		[]string{"TestRenewalsThatWaitForReplicasDelayNobody"},
	},
	{
		"no renewal waits for more replicas than it needs", "internal/room Session.Due",
		"r = Renewal{Lease: lease, Within: need.Within(s.shortest(at.Now)), Need: need}", "r = Renewal{Lease: lease, Within: need.Within(s.shortest(at.Now)), Need: need}; r.Need.N = min(3*need.N, 3)",
		[]string{"TestWaitNamesTheReplicasThatItsLockAsksFor"},
	},
	{
		"a renewal of many is trusted from its sending", "internal/room Statement.Renewed",
		"s.extend(st.Sent, s.trustedUntil(st.Sent, st.Lease), 0)", "s.extend(at.Now, s.trustedUntil(at.Now, st.Lease), 0)",
		[]string{"TestRenewalsOfManyAreTrustedFromTheirSending"},
	},
	{
		"trust never moves back", "internal/room Session.extend",
		"s.trust = clock.Max(s.trust, until)", "s.trust = until",
		[]string{"TestTrustNeverMovesBack"},
	},
	{
		"heartbeats of a room go out together", "internal/room Room.align",
		"if early := r.beat.Until(due); early < 0 || early > slack || now.Reached(r.beat) {", "if true {",
		[]string{"TestWaitersOfOneLockShareTheirHeartbeats"},
	},
	{
		"a heartbeat has an echo", ". watchdog.pollCall",
		"w.c.listeners.Echo(k.listener, true)", "wire.Quiet",
		[]string{"TestWaiterWhoseInboxHearsKeepsItsConnection"},
	},
	{
		"a request that queues has an echo", ". waiting.sendOnce",
		"k.kind, q.NotAfter, echo, asks", "k.kind, q.NotAfter, wire.Quiet, asks",
		[]string{"TestWaiterWhoseInboxHearsKeepsItsConnection"},
	},
	{
		"many releases are remembered", "internal/replay remembered",
		"remembered = 10_000", "remembered = 100",
		[]string{"TestManyReleasesAreSentAgainAfterAFailover"},
	},
	{
		"Close waits for what was spawned", ". Client.Close",
		"c.tracker.Wait()", "",
		[]string{"TestCloseWaitsForWhatTheClientHasStarted"},
	},
	{
		"Close loses what is granted meanwhile", ". Client.Close",
		"late := c.loseAll()", "late := []func(){}",
		[]string{"TestCloseLosesWhatIsGrantedMeanwhile"},
	},
	{
		"Close ends the channels that are wanted", "internal/inbox Shards.Close",
		"s.wg.Go(b.Close) }; clear", "if b.linger != nil { s.wg.Go(b.Close) } }; clear",
		[]string{"TestShardedChannelOfACallInItsHookEndsWithClose"},
	},
	{
		"Shutdown waits for what is under way", "internal/shutdown Tracker.Await",
		"(!tasks || t.tasks == 0)", "true",
		[]string{"TestShutdownWaitsForAGrantThatIsGivenBack"},
	},
	{
		"the hook of a local unlock is called under no mutex", ". Hold.end",
		"h.releasedHook(err, at.Now)", "k.mu.Lock(); h.releasedHook(err, at.Now); k.mu.Unlock()",
		[]string{"TestHooksOfNestedHoldsAreCalledUnderNoMutex"},
	},
	{
		"a hold forgets contexts whose parent has ended", ". Hold.forget",
		"delete(h.contexts, ctx)", "_ = ctx",
		[]string{"TestHoldForgetsContextsWhoseParentHasEnded"},
	},
	{
		"a loss names what is so at its time", "internal/room Session.extend",
		"s.unproven, s.why = false, nil", "s.unproven = false",
		[]string{"TestLossNamesReplicasOnlyWhereTheyWereTheReason"},
	},
	{
		"the longest TTL is renewed", "internal/room Session.renewal",
		"lease, renew = max(lease, g.terms.TTL), true", "if renew = true; lease == 0 {\n\tlease = g.terms.TTL\n}",
		[]string{"TestLongestTTLOfNestedHoldsIsRenewed"},
	},
	{
		"a request that queues proves a silent inbox", ". waiting.sendOnce",
		"if place >= room.PlaceNew {", "if false {",
		[]string{"TestDeafInboxIsFoundByARequestThatQueues"},
	},
	{
		"a renewal is due by what is left", "internal/trust Due",
		"lease/3 + Margin(lease) - lease)", "lease/3 + Margin(lease))",
		[]string{"TestNestedUnlocksPutNoRenewalOff", "TestGrantThatIsToldLateIsRenewed", "TestARenewalIsDueAtOnceWhenLessIsLeft"},
	},
	{
		"a suspension shortens the time that is told", "internal/clock Clock.Time",
		"return t.Add(-slept)", "return t",
		[]string{"TestSuspensionShortensTheTimeThatIsTold"},
	},
	{
		"a ticket says what the hold is when it is handed over", ". Hold.detach",
		"t.Read = h.hold.Read", "t.Read = false",
		[]string{"TestWhoResumesHoldsUnderTheSameToken", "TestATicketOfADowngradedHoldReads"},
	},
	{
		"who is refused has the copies of its requests ended", "internal/room Entry.Fail",
		"at.do(Effect{Do: Release, Of: e.Acquisition})", "if e.doubt == 0 { at.do(Effect{Do: Release, Of: e.Acquisition}) } else { at.do(Effect{Do: Forget, Of: e.Acquisition}) }",
		[]string{"TestHeartbeatOfAWaiterThatWasRefusedIsGrantedNothing"},
	},
	{
		"a hold is trusted for no longer than its own TTL after a renewal", "internal/room Session.trustEnds",
		"clock.Min(s.trust, trust.Until(from, ttl))", "s.trust",
		[]string{"TestAHoldIsTrustedForItsOwnTTLBesideANestedOneOfAnHour", "TestAHoldIsTrustedForItsOwnTTLBesideALongerOneThatIsRenewed", "TestAQuorumHoldIsTrustedForItsOwnTermsBesideANestedOne"},
	},
	{
		"a renewal is due for the shortest hold", "internal/room Session.due",
		"!renew || due.Until(first) > 0", "!renew",
		[]string{"TestAHoldIsTrustedForItsOwnTTLBesideALongerOneThatIsRenewed"},
	},
	{
		"no renewal of another hold counts for one without a watchdog", "internal/room Hold.start",
		"h.last = h.Session.renewed", "",
		[]string{"TestNoWatchdogEndsAHoldThoughItsOwnerHasOthers", "TestGrantIsRenewedWhileAnyHoldHasAWatchdog"},
	},
	{
		"no renewal of another hold counts for one that has been held for its MaxHold", "internal/room Hold.start",
		"h.last = h.Acquired.Add(t.MaxHold)", "h.last = h.Acquired.Add(1000 * t.MaxHold)",
		[]string{"TestMaxHoldEndsAHoldThoughItsOwnerHasOthers"},
	},
	{
		"a hold that has ended by itself is not one that Redis counts", "internal/room Session.shed",
		"h.why = h.endedBy(); s.drop(h)", "h.why = h.endedBy()",
		[]string{"TestAHoldThatEndsBesideANestedOneIsUnlockedAsLost"},
	},
	{
		"a lost hold is released", "internal/room Session.Lose",
		"at.do(Effect{Do: Release, Of: s.Acquisition})", "at.do(Effect{Do: Forget, Of: s.Acquisition})",
		[]string{
			"TestLostHoldIsReleasedOnceRedisIsBack", "TestF08LateCopyOfTheAcquireOfARemovedHoldGrantsNothing",
			"TestALateMessageOfALossLeavesNothingInRedis",
		},
	},
	{
		"a release has begun before its waiter is woken", "internal/room Session.Lose",
		"at.do(Effect{Do: Release, Of: s.Acquisition})", "if s.Entry != nil { s.Entry.finished(at) }; at.do(Effect{Do: Release, Of: s.Acquisition})",
		[]string{"TestAReleaseBeginsBeforeItsCallIsWoken"},
	},
	{
		"a release has begun before who is refused is woken", "internal/room Entry.Fail",
		"at.do(Effect{Do: Release, Of: e.Acquisition})", "e.finished(at); at.do(Effect{Do: Release, Of: e.Acquisition})",
		[]string{"TestAReleaseBeginsBeforeItsCallIsWoken"},
	},
	{
		"a release has begun before its nonce is forgotten", "internal/room Session.Lose",
		"s.endLost(why, at)", "s.endLost(why, at); at.do(Effect{Do: Forget, Of: s.Acquisition})",
		[]string{"TestShutdownWaitsForTheReleaseOfAHoldThatItsAncestorEnds"},
	},
	{
		"a loss hands on the claim", "internal/room Session.endLost",
		"r.handClaim(s.Acquisition, PlaceNew, at)", "",
		[]string{"TestLossLetsTheLineGoOn", "TestExplorationOfRoomsFindsNothing"},
	},
	{
		"heartbeats go out in the order of places", ". watchdog.poll",
		"cmp.Compare(a.Place, b.Place)", "cmp.Compare(b.Place, a.Place)",
		[]string{"TestWaitersOfAProcessKeepTheirOrderThoughRedisLosesItsData"},
	},
	{
		"a loss that its release finds ends the contexts", ". Hold.end",
		"if err != nil && err != errAbsent { k.end(at)", "if err != nil && err != errAbsent { cancel := h.cancelAll(ErrNotHeld); k.end(at); cancel()",
		[]string{"TestALossThatItsReleaseFindsIsTheCauseOfItsContexts"},
	},
	{
		"a later attempt waits for the release that telling of fewer holds ends in", ". acquisition.tellLater",
		"last.release(ctx, left)", "last.releaseInBackground()",
		[]string{"TestALaterAttemptFindsWhatAnEndedCallHasGivenBackFree"},
	},
	{
		"a loss is the cause of contexts though a release has come since", ". Hold.endCause",
		"if h.hold.Lost {", "if false {",
		[]string{"TestALossIsTheCauseOfContextsThatHaveYetToEndAtTheRelease"},
	},
	{
		"redisson: a loss is the cause of contexts though a release has come since", "redisson Hold.endCause",
		"err != nil && h.lost != nil", "false",
		[]string{"TestALossIsTheCauseOfContextsThoughASharedLockWasReleasedSince"},
	},
	{
		"Do is unconfirmed though its function succeeded", ". under",
		"err = ending.Join(err, h.releaseUnlessDetached())",
		"end := h.releaseUnlessDetached(); if err == nil && ending.Is(end, ErrUnconfirmed) { end = nil }; err = ending.Join(err, end)",
		[]string{"TestDoIsUnconfirmedThoughItsFunctionSucceeded"},
	},
	{
		"a Downgrade that Redis refuses is unconfirmed", ". Hold.downgrade",
		"case transport.Hopeless(err): return fmt.Errorf($x, ErrUnconfirmed, err)", "case transport.Hopeless(err): return err",
		[]string{"TestDowngradeThatIsRefusedSaysSo"},
	},
	{
		"a Shutdown whose context has ended drains", ". Client.Shutdown",
		"if ctx == nil { return fmt.Errorf(\"relock: %w\", errNoContext) }",
		"if err := unusable(ctx); err != nil { return fmt.Errorf(\"relock: %w\", err) }",
		[]string{"TestShutdownUnderAnEndedContextDrains"},
	},
	{
		"Once and a SyncLocker ask for no name of an owner", ". ownerFor",
		"if l.anonymous {",
		"if id, named := ctx.Value(ownerKey{}).(string); l.anonymous && (!named || checkOwner(id) == nil) {",
		[]string{"TestSyncLockerOfAMismatchedContextLocks", "TestOnceKnowsNoOwner"},
	},
	{
		"a new owner is a UUID", ". WithNewOwner",
		"uuid.NewString()", "`owner:` + uuid.NewString()",
		[]string{"TestOwnerTravelsWithTheContext"},
	},
	{
		"a sharded channel is left after a Check", ". Client.check",
		"defer listener.Join()()", "listener.Join()",
		[]string{"TestCheckCostsTwoScriptsAtFirstAndLaterOne/sharded"},
	},
	{
		"an attempt with replicas has a twelfth of the TTL for the way", "internal/room Replicas.Within",
		"lease/12", "lease/6",
		[]string{"TestOneAttemptWithReplicasIsBounded"},
	},
	{
		"a record has no context of its caller", "internal/logqueue handler.Handle",
		"ctx: ctx", "ctx: context.TODO()",
		[]string{"TestTheContextOfARecordIsAlwaysTheBackground"},
	},
	{
		"Close waits for the handler of the log for 100 ms", ". Client.Close",
		"logGrace", "3*logGrace",
		[]string{"TestAHandlerOfTheLogThatHangsHoldsUpNothing"},
	},
}
