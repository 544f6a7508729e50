package mutation

// conditionRules are those of waits on conditions.
var conditionRules = []Rule{
	{
		"condition: a signal that Close interrupts says so", ". Cond.signalBy",
		"case err != nil && k.c.ctx.Err() != nil:", "case false:",
		[]string{"TestASignalThatCloseInterruptsSaysSo"},
	},
	{
		"condition: a wait that was granted before it was answered holds", ". awaiting.sendWait",
		"case err != nil && w.a.Held():", "case false:",
		[]string{"TestAWaitThatIsGrantedBeforeItIsAnsweredHolds"},
	},
	{
		"condition: a lock on which others only wait so is listed", ". scan.look",
		"&& info.CondWaiters == 0", "",
		[]string{"TestLocksHasALockOnWhichOthersOnlyWaitOnConditions"},
	},
	{
		"condition: a waiter counts while its lease runs", "lua/info.lua",
		"'(' .. text(-far), '(' .. text(-(now + apart))", "'(' .. text(-far), '(' .. text(-apart)",
		[]string{"TestADeadWaiterOnAConditionIsCountedForItsLeaseOnly"},
	},
	{
		"condition: the command says who waits so", "cmd/relock holding",
		"len(info.Holders) == 0 && info.CondWaiters > 0", "false",
		[]string{"TestLsAndInfoShowWaitersOnConditions"},
	},
	{
		"condition: the dashboard says who waits so", "relockweb lockOf",
		"CondWaiting: info.CondWaiters,", "",
		[]string{"TestWaitersOnConditionsAreShown"},
	},
	{
		"condition: a waiter looks again at least every ten seconds", ". awaiting.sleep",
		"time.NewTicker(trust.Pulse(w.a.Terms.TTL))", "time.NewTicker(w.a.Terms.TTL / 3)",
		[]string{"TestAWaiterOnAConditionLooksAgainSoonAfterAFailoverThoughItsLeaseIsLong"},
	},
	{
		"condition: a signal outlives its receiver in the queue", "lua/shared_queue.lua",
		"    owe(nonce)\n  end\n  return #dead", "  end\n  return #dead",
		[]string{"TestSignalThatMeetsADeadWaiterGoesToTheNext", "TestSignalThatIsPassedOnKeepsItsPlace"},
	},
	{
		"condition: who comes back with its signal owes none", "lua/shared_sessions.lua",
		"    clear_owed(nonce)\n", "",
		[]string{"TestWhoComesBackWithASignalAfterItsLeaseAndWaitsAnewOwesNone"},
	},
	{
		"a hold beside what is left of a place is released", "lua/release.lua",
		"was = math.max(was, 1)", "was = 1",
		[]string{"TestWhoWaitedInAQueueThatWasLostReleasesWhatItHolds"},
	},
	{
		"condition: a signal outlives its receiver that holds", "lua/shared_sessions.lua",
		"local function drop(s)\n  owe(s.nonce)\n", "local function drop(s)\n",
		[]string{"TestSignalThatMeetsADeadWaiterGoesToTheNext", "TestForceUnlockLeavesWaitersOnConditions"},
	},
	{
		"condition: a signal is not spent on the deaf", "lua/shared_settle.lua",
		"    owe(nonce)\n    tell(waiter.client, 'look '", "    tell(waiter.client, 'look '",
		[]string{"TestSignalToTheDeafGoesToTheNextAtOnce"},
	},
	{
		"condition: a signal that is passed on keeps its place", "lua/shared_conditions.lua",
		"signal(condition, tonumber(place)) == nil", "signal(condition, 0) == nil",
		[]string{"TestSignalThatIsPassedOnKeepsItsPlace"},
	},
	{
		"condition: an unlock forgets the dead", "lua/release.lua",
		"sweep_conditions()\n", "",
		[]string{"TestDeadWaiterOnAConditionIsForgottenByTheNextUnlock"},
	},
	{
		"condition: who died is forgotten though the queue has expired", "lua/shared_conditions.lua",
		"if state.conds.count > signalled and", "if false and",
		[]string{"TestWaitersThatDiedDuringALongHoldLeaveNothing"},
	},
	{
		"condition: who lives is not forgotten with its queue", "lua/shared_conditions.lua",
		"      if waiter.deadline <= now then\n        budget", "      if true then\n        budget",
		[]string{"TestWaitersThatLiveOutliveTheirQueue"},
	},
	{
		"condition: the longest waiter is signalled", "lua/shared_conditions.lua",
		"local nonce = ends and string.match(ends, '^%S+') or '-'\n  while", "local nonce = ends and string.match(ends, '%S+$') or '-'\n  while",
		[]string{"TestSignalWakesTheLongestWaiter"},
	},
	{
		"condition: a signal leaves the others where they are", "lua/shared_conditions.lua",
		"    join_links('-', after or '-', condition)", "    join_links('-', '-', condition)",
		[]string{"TestSignalWakesTheLongestWaiter"},
	},
	{
		"condition: who leaves its condition is missed by nobody", "lua/shared_conditions.lua",
		"    link(before, 0, further or '-', after, condition)", "    link(before, 0, further or '-', '-', condition)",
		[]string{"TestPagesOfWaitersGoOnWhereSomebodyHasLeft"},
	},
	{
		"condition: one script reads a bounded number of the dead", "lua/awaiting.lua",
		"left == 0 or looks == 0", "left == 0",
		[]string{"TestReadingWhoWaitsGoesOverAFewOfTheDeadAtATime"},
	},
	{
		"an error repeats no name of any size", "internal/key Quote",
		"len(name) > maxName ||", "",
		[]string{"TestQuoteRepeatsNoNameOfAnySize"},
	},
	{
		"condition: a page goes on where the one before ended", "lua/awaiting.lua",
		" and waiter.told >= after then", " then",
		[]string{"TestPagesOfWaitersGoOnWhereSomebodyHasLeft"},
	},
	{
		"condition: a page does not go on at the end of the chain", "lua/awaiting.lua",
		" and (since or '0') == after", "",
		[]string{"TestPagesOfWaitersPassNobodyOverWhereOneWaitsAnew"},
	},
	{
		"condition: the copy of a signal moves nobody else", "lua/signal.lua",
		"state.conds.signaller == by.nonce and number <= state.conds.number", "false",
		[]string{"TestLostRepliesLoseNoSignalAndNoHold"},
	},
	{
		"condition: the copy of a wait ends no later hold", "lua/await.lua",
		"if op <= session.op then", "if op < 0 then",
		[]string{"TestLateCopiesOfAWaitAndASignalChangeNothing"},
	},
	{
		"condition: who was signalled before it was cancelled was signalled", "lua/abandon.lua",
		"  return { now, 0, there and signalled and 2 or 0 }", "  return { now, 0, there and 1 or 0 }",
		[]string{"TestSignalAndCancelHaveOneWinner"},
	},
	{
		"condition: who is cancelled leaves its condition", "lua/abandon.lua",
		"leave_condition(who.nonce)\n", "",
		[]string{"TestWaitThatEndsWithoutASignalHoldsTheLock"},
	},
	{
		"condition: a heartbeat keeps a waiter on its condition", "lua/acquire.lua",
		"if state.conds and keep_awaiting(request) then", "if false then",
		[]string{"TestSignalWakesTheLongestWaiter"},
	},
	{
		"condition: crowd says that somebody waits on one", "lua/shared_settle.lua",
		" or state.conds or state.branches) and ' +'", " or state.branches) and ' +'",
		[]string{"TestSignalWakesTheLongestWaiter"},
	},
	{
		"condition: who waits gives up the grant of its token", "lua/await.lua",
		"if tonumber(ARGV[8]) < session.low or tonumber(ARGV[8]) > session.high then", "if false then",
		[]string{"TestAWaitThatWasLostBeforeItBeganMissesNoSignal"},
	},
	{
		"condition: no heartbeat leaves before the wait is told", "internal/room Entry.Beat",
		"if e.busy || !e.queued {", "if e.busy {",
		[]string{"TestARoundOfTheWatchdogMakesNoHolderOfWhoWaits"},
	},
	{
		"condition: what nobody knows any more owes its signal", ". Client.disown",
		"wire.Session{Nonce: nonce}, replay.OwesSignal,", "wire.Session{Nonce: nonce}, 0,",
		[]string{"TestASignalledSessionThatNobodyKnowsPassesItsSignalOn"},
	},
	{
		"condition: a wait that was refused is refused for good", "lua/await.lua",
		"  change(session, op + 1, session.writes, session.reads, 0)\n", "",
		[]string{"TestLateCopyOfARefusedWaitGivesUpNothing"},
	},
	{
		"condition: the copy of a wait that was refused is refused", "lua/await.lua",
		"op + 1 == session.op and -1 or 1", "1",
		[]string{"TestWaitThatIsRefusedWithoutAnAnswerIsRefusedAgain"},
	},
	{
		"condition: the number behind that of a wait is kept for its refusal", "internal/room Session.BeginWait",
		"s.op += 2", "s.op++",
		[]string{"TestWaitThatIsRefusedWithoutAnAnswerIsRefusedAgain"},
	},
	{
		"condition: the dead do not hold elsewhere", "lua/await.lua",
		"sweep_sessions()\nlocal grant", "local grant",
		[]string{"TestOwnerWhoseOtherProcessHasDiedCanWait"},
	},
	{
		"condition: a wait that is not confirmed gives the lock back", ". awaiting.lose",
		"w.a.Session.Lose(why, &at)", "w.a.Session.Close(why, &at)",
		[]string{"TestWaitThatReplicasDoNotConfirmPassesItsSignalOn"},
	},
	{
		"condition: who reads when its turn comes passes its signal on", "lua/acquire.lua",
		"    owe(request.nonce)\n", "",
		[]string{"TestWaiterWhoseOwnerReadsPassesItsSignalOn"},
	},
	{
		"condition: an owner that holds elsewhere gives up nothing", "lua/await.lua",
		"if grant and grant.sessions > 1 then", "if false then",
		[]string{"TestOwnerThatHoldsElsewhereOrReadsCannotWait"},
	},
	{
		"condition: an answer of before the wait is none of what holds again", "internal/room Statement.stale",
		"return st.Session.Away() || st.Said.Op < st.Session.awaitOp", "return false",
		[]string{"TestRenewalThatIsAnsweredAfterAWaitLosesNothing"},
	},
	{
		"condition: a wait asks its context without the mutex", ". awaiting.silence",
		"if ctx.Err() == nil {", "w.a.keeper.mu.Lock(); live := ctx.Err() == nil; w.a.keeper.mu.Unlock(); if live {",
		[]string{"TestAWaitUnderItsHoldsContextIsCancelled"},
	},
	{
		"condition: all holds come back", ". wireRequest",
		"rest, writes = room.Rest{}, q.Await.Writes", "rest = room.Rest{}",
		[]string{"TestForgottenWaiterWakesUpWithAllItsHolds", "TestWaiterThatWasPausedWakesUpBesideWhoHasItsSignal"},
	},
	{
		"condition: a wait makes up for a signal that a failover has lost", ". Client.rouse",
		"if a.Away() && elsewhere {", "if false {",
		[]string{"TestSignalThatAFailoverLosesIsMadeUpFor"},
	},
	{
		"condition: so it does in a Cluster, whose other servers have its inbox", ". awaiting.awaitSignal",
		"moved = c.transport.Server(w.a.keeper.hash) != w.server", "moved = false",
		[]string{"TestWaitersOnConditionsWakeUpAfterAFailover"},
	},
	{
		"condition: a reader who signals keeps its hold", ". Cond.signalBy",
		"if !writes {", "if !writes && false {",
		[]string{"TestSignalByAReaderLeavesItsHold"},
	},
	{
		"condition: all holds come back under the new token", "internal/room Session.wake",
		"h.Token, h.Acquired = token, at.Now", "h.Token, h.Acquired = token, at.Now; break",
		[]string{"TestHoldsOfLocalReentryComeBackAfterAWait"},
	},
	{
		"condition: a release of what was lost owes its signal", "lua/release.lua",
		"local lost = string.sub(ARGV[3], 1, 1) == '-'", "local lost = false",
		[]string{"TestReleaseOfWhatNobodyHeardOfPassesItsSignalOn"},
	},
	{
		"condition: a hold that is released while its owner waits has ended", "internal/room Hold.End",
		"h.GiveBack(at)", "",
		[]string{"TestAnUnlockDuringAWaitOfItsOwnerIsRemembered", "TestAWaitReturnsWithoutWhatHasEndedMeanwhile"},
	},
	{
		"condition: an Unlock during a wait of its owner finds the hold", "internal/room Handle.Next",
		"return l.nextAway()", "return nil",
		[]string{"TestAnUnlockDuringAWaitOfItsOwnerIsRemembered", "TestAWaitWhoseHoldsAreAllUnlockedIsLostAndTheLockIsFree"},
	},
	{
		"condition: the handle is free while its owner waits", "internal/room Session.BeginWait",
		"h.goAway(at)", "_ = h",
		[]string{"TestUnlockEndsNoHoldWhoseOwnerWaits"},
	},
	{
		"condition: contexts last while their owner waits", ". Hold.endCause",
		"err == nil || err == errAbsent {", "err == nil {",
		[]string{"TestWaitIsLostWhereTheLockCannotBeHadAgain"},
	},
	{
		"condition: holds are not trusted while their owner waits", ". Hold.state",
		"case h.hold.Session.Absent(): return errAbsent", "",
		[]string{"TestSignalWakesTheLongestWaiter"},
	},
	{
		"condition: a fixed lease is whole again", ". awaiting.endWait",
		"if unproven {", "if unproven && false {",
		[]string{"TestFixedLeaseIsWholeAfterAWait", "TestReplicasConfirmAWait"},
	},
	{
		"condition: a wait is given up where Redis does not answer", ". awaiting.silence",
		"e.Silent(k.c.clock.Now()) > w.a.Terms.TTL {", "false {",
		[]string{"TestWaitWhoseRedisFallsSilentIsLost"},
	},
	{
		"condition: the longest lease of the holds is asked for after a wait", "internal/room Session.ToConfirm",
		"g.terms.TTL != s.Terms.TTL", "g.terms.TTL < s.Terms.TTL",
		[]string{"TestALongerFixedLeaseIsHadAfterAWaitThatHeardNothing"},
	},
	{
		"condition: a lease that is not renewed is as long as the longest of the holds", "internal/room Session.Confirmation",
		"s.eachGroup(func(g group) { x.Lease = max(x.Lease, g.terms.TTL) })", "",
		[]string{"TestHoldsOfTwoLeasesAreKeptAfterAWait"},
	},
	{
		"condition: a session that may not wait is renewed on", "internal/room Entry.Rejoin",
		"s.busy = false", "",
		[]string{"TestSessionThatMayNotWaitIsRenewedOn"},
	},
	{
		"condition: a wait does not return to an occupied handle", "internal/room Session.Return",
		"if h.Handle.mixes(h) {", "if false {",
		[]string{"TestWaitReturnsToItsHandleAfterTheUnlockOfALostHold"},
	},
	{
		"condition: an occupied handle does not keep the lock", ". awaiting.rejoin",
		"case <-limit.C:", "case <-w.a.keeper.c.draining:",
		[]string{"TestWaitGivesUpALockThatItsHandleCannotHave"},
	},
	{
		"condition: who is on none any more has been woken", ". awaiting.abandon",
		"said == wire.Signalled || said == wire.OnNone && !moved", "said == wire.Signalled",
		[]string{"TestWaiterThatWasSignalledWhileItDidNotHearIsWoken"},
	},
	{
		"condition: a wait that Redis refused is lost if its lease has ended", "internal/room Entry.Rejoin",
		"s.Check(at)", "",
		[]string{"TestAWaitThatRedisRefusesUntilItsLeaseHasEndedIsLost"},
	},
	{
		"condition: a wait whose hold was detached holds nothing", "internal/room Hold.Detach",
		"s.drop(h)", "",
		[]string{"TestAHoldThatIsDetachedBeforeItsWaitReturnsIsLostToTheWait"},
	},
	{
		"condition: nobody joins what a wait has until it returns", "internal/room Session.NestLocally, Session.covers, Session.Reenter, Session.Admit, Room.HeldBy",
		"s.Absent()", "s.Away()",
		[]string{"TestWhatIsLockedWhileAWaitIsConfirmedCanBeUnlocked"},
	},
	{
		"condition: a wait without a hold is lost", "internal/room Session.finishApart",
		"s.Lose(ErrLeft, at)", "",
		[]string{"TestAWaitWhoseHoldsAreAllUnlockedIsLostAndTheLockIsFree"},
	},
	{
		"condition: a refused wait whose hold was forced meanwhile is lost", "internal/room Entry.Rejoin",
		"s.Lose(e.revoked, at)", "",
		[]string{"TestARefusedWaitWhoseHoldWasForcedMeanwhileIsLost"},
	},
	{
		"condition: a refused wait whose lease has ended says so", ". awaiting.sendWait",
		"case lost != nil:", "case lost != nil && err != nil:",
		[]string{"TestARefusedWaitWhoseLeaseHasEndedMeanwhileIsLost"},
	},
	{
		"condition: a read hold of which redis has not heard refuses a wait", "internal/room Session.BeginWait",
		"n.Writes == 0 || n.Reads > 0", "n.Writes == 0",
		[]string{"TestAWaitRightAfterADowngradeIsRefused"},
	},
	{
		"condition: a wait gives up what redis knew", "internal/room Session.wake",
		"s.Ledger.Granted(ledger.Counts{Writes: a.Writes})", "",
		[]string{"TestAfterAWaitRedisIsToldOfTheHoldThatIsAboutToBeMade"},
	},
	{
		"condition: what ends before a wait is refused is told", "internal/room Entry.Rejoin",
		"s.CatchUp(at)", "",
		[]string{"TestARefusedWaitHasNoHoldThatHasEndedMeanwhile"},
	},
	{
		"condition: the hold of the context comes before that of the handle", ". Cond.caller",
		"cmp.Or(holdIn(ctx, c.lock), c.lock.newest())", "cmp.Or(c.lock.newest(), holdIn(ctx, c.lock))",
		[]string{"TestASignalIsOfTheHoldOfItsContext"},
	},
	{
		"condition: a sharded channel is left after the wait", ". Cond.wait",
		"defer a.keeper.listener.Join()()", "a.keeper.listener.Join()",
		[]string{"TestAShardedWaitOnAConditionListensUntilItsEnd"},
	},
	{
		"condition: a signal that finds no hold in redis ends the hold", ". acquisition.markGone",
		"a.Session.Lose(room.ErrRemoved, &at)", "",
		[]string{"TestASignalOfALockThatRedisHasLostEndsTheHold"},
	},
	{
		"condition: who holds nothing in redis does not wait", ". awaiting.sendWait",
		"said == room.NotHeld && doubt", "said == room.NotHeld",
		[]string{"TestAWaitOfALockThatRedisHasLostIsNoWait"},
	},
	{
		"condition: a wait that may have begun and is refused loses its holds", ". awaiting.sendWait",
		"case err != nil && doubt:", "case false:",
		[]string{"TestAWaitThatRedisMayHaveExecutedAndThenRefusesLosesItsHolds"},
	},
	{
		"condition: only a wait whose time has passed is given up for silence", ". awaiting.silence",
		"if ctx.Err() == nil { return nil }", "",
		[]string{"TestAWokenWaiterOutlastsASilenceOfRedis"},
	},
	{
		"condition: a wait that redis does not let go is lost", ". awaiting.abandon",
		"case err != nil: return false, &requestError{err: err}", "",
		[]string{"TestAWaiterThatRedisDoesNotLetGoIsLost"},
	},
	{
		"condition: a wait that redis does not let go is not woken", ". awaiting.abandon",
		"case err != nil && w.a.Held():", "case err != nil && true:",
		[]string{"TestAWaiterThatRedisDoesNotLetGoIsLost"},
	},
	{
		"condition: a waiter whose time has passed asks at once", ". awaiting.abandon",
		"w.a.Entry.Kick(&at)", "",
		[]string{"TestAWaiterThatRedisHasForgottenHasTheLockAsItsTimeEnds"},
	},
	{
		"condition: a hold of another lock is not its hold", ". holdIn",
		"h.lock.hash == l.hash &&", "",
		[]string{"TestASignalUnderAHoldOfAnotherLockIsOfItsOwn"},
	},
}
