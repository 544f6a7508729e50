package mutation

// redissonRules are those of the locks that Redisson shares.
var redissonRules = []Rule{
	{
		"redisson: a shorter request does not shorten the time of a longer one", "redisson waiting.request",
		"clock.Max(s.until, sent.Add(timeout+2*slack))", "sent.Add(timeout + 2*slack)",
		[]string{"TestALateRequestIsUndoneThoughAShorterOneWentUnansweredAfterIt"},
	},
	{
		"redisson: a hold that was unlocked in place of another gives that one back", "redisson Hold.giveBack",
		"if h = h.lock.next(); h == nil {", "if true {",
		[]string{"TestAHoldThatIsGivenBackThoughItWasUnlockedLeavesNone"},
	},
	{
		"redisson: a request before the server's clock is known takes nothing", "redisson Client.notAfter",
		"return 1", "return time.Now().UnixMilli() + (timeout + slack).Milliseconds()",
		[]string{"TestALateFirstRequestTakesNothingThoughTheServersClockIsBehind"},
	},
	{
		"redisson: only what Unlock ends must be told apart", "redisson Lock.mixed",
		"h.unlock && (h.s.named", "(h.s.named",
		[]string{"TestAReadHoldOfItsOwnIsGrantedBesideAnotherOwnersRLock"},
	},
	{
		"redisson: a release that redis does not know loses the owner's other holds", "redisson session.sendFewer",
		"todo = s.lose(errMissing)", "",
		[]string{"TestAnUnlockThatRedisDoesNotKnowLosesTheOthersOfItsOwner"},
	},
	{
		"redisson: a release is sent for the longest lease", "redisson session.patience",
		"max(s.longest, time.Minute)", "time.Second",
		[]string{"TestAReleaseIsSentForTheLongestLeaseOfItsOwner"},
	},
	{
		"redisson: an owner's other calls hear of its grant", "redisson waiting.answered",
		"s.wakeOthers(1)", "",
		[]string{"TestAllCallsOfAnOwnerHearOfItsGrant"},
	},
	{
		"redisson: each primary has a clock of its own", "redisson waiting.request",
		"c.transport.Server(s.names.key)", `""`,
		[]string{"TestALateRequestTakesNothingThoughAnotherPrimarysClockIsAhead"},
	},
	{
		"redisson: a downgrade that cannot be on its handle is given back", "redisson RWLock.downgrade",
		"err := w.grant()", "err := w.gate(); if err == nil { err = w.take() }",
		[]string{"TestADowngradeThatAnotherReaderOvertakesIsRefused"},
	},
	{
		"redisson: an owner that has ended takes no later one's name", "redisson Client.session",
		"if s.named && c.owners[key] == nil {", "if s.named {",
		[]string{"TestADowngradeOfAnOwnerThatHasEndedLeavesTheNextOne"},
	},
	{
		"redisson: the end of an owner leaves the name to a later one", "redisson session.end",
		"s.owner.sessionCount == 0 && s.c.owners[s.owner.key] == s.owner {", "s.named && s.owner.sessionCount == 0 {",
		[]string{"TestADowngradeOfAnOwnerThatHasEndedLeavesTheNextOne"},
	},
	{
		"redisson: a fair waiter in a new session listens where that is told", "redisson waiting.obtain",
		"if w.s.channel() != seat.name {", "if false {",
		[]string{"TestAFairWaiterWhoseSessionHasEndedHearsOfItsTurn"},
	},
	{
		"redisson: an owner that has lost a lock does not wait for it", "redisson/lua/acquire.lua",
		"if not again and tonumber(ARGV[2]) > 1 then", "if not held and tonumber(ARGV[2]) > 1 then",
		[]string{"TestAnOwnerIsToldOfItsLossThoughTheLockIsTaken"},
	},
	{
		"redisson: a reader that has lost a lock does not wait for it", "redisson/lua/read_acquire.lua",
		"if not again and tonumber(ARGV[2]) > 1 then", "if not mode and tonumber(ARGV[2]) > 1 then",
		[]string{"TestAnOwnerIsToldOfItsLossThoughTheLockIsTaken/read_"},
	},
	{
		"redisson: a writer that has lost a lock does not wait for it", "redisson/lua/write_acquire.lua",
		"if not again and tonumber(ARGV[2]) > 1 then", "if not mode and tonumber(ARGV[2]) > 1 then",
		[]string{"TestAnOwnerIsToldOfItsLossThoughTheLockIsTaken/write_"},
	},
	{
		"redisson: an owner that writes writes again below its read hold", "redisson Lock.waitsForItself",
		"h.lock.kind == reading && !same:", "h.lock.kind == reading:",
		[]string{"TestAWriterThatReadsWritesAgain"},
	},
	{
		"redisson: what an owner has ended is told again while it holds", "redisson Client.runDue",
		"append(untold, s.owner.untold()...)", "untold",
		[]string{"TestAWriterWhoseEndIsRefusedKeepsReadersOutNoLongerThanThat"},
	},
	{
		"redisson: Shutdown leaves an owner that holds its retries", "redisson waiting.open",
		"if w.s.owner.holds() {", "if false {",
		[]string{"TestAReentryDuringShutdownIsSentAgain", "TestAReentryDuringShutdownIsToldOfItsLoss"},
	},
	{
		"redisson: the release of a lost hold is given up after its lease", "redisson session.patience",
		"if h != nil && h.lost != nil {", "if false {",
		[]string{"TestShutdownGivesUpTheReleaseOfALostHold"},
	},
	{
		"redisson: a late request is cleared soon", "redisson session.sweep",
		"last = left <= pause", "pause, last = max(left, pause), true",
		[]string{"TestALateRequestOfAnEndedCallOfRedissonIsClearedSoon"},
	},
	{
		"redisson: who asks how to hear leaves with its context", "redisson Client.askSharded",
		"case <-ctx.Done(): return ending.Of(ctx); case <-c.open.Done():", "case <-c.open.Done():",
		[]string{"TestFirstCallInASilentClusterEndsWithItsContext"},
	},
	{
		"redisson: a grant that comes after the end of its call is given back", "redisson waiting.inTime",
		"if ending.Passed(w.ctx) == nil {", "if true {",
		[]string{"TestACallOfRedissonThatHasEndedNeverHolds"},
	},
	{
		"redisson: an attempt waits until what earlier calls have left is removed", "redisson waiting.obtain",
		"c.leaving.Await(w.ctx, w.lock.names.key, trust.Attempt(w.lock.terms.ttl)/2)", "",
		[]string{"TestAnAttemptFindsFreeWhatAnEndedCallOfRedissonHasLeft"},
	},
	{
		"redisson: a request that comes late takes nothing", "redisson/lua/shared_clock.lua",
		"return after > 0 and now > after", "return false",
		[]string{"TestALateCopyOfARequestHoldsNothing"},
	},
	{
		"redisson: a copy that may yet arrive is released", "redisson session.tellFewer",
		"s.c.spawn(time.Minute, s.sweep)", "",
		[]string{"TestALateCopyOfARequestHoldsNothing"},
	},
	{
		"redisson: a call that ends undoes what nobody heard of", "redisson Client.leave",
		"if undo {", "if false && undo {",
		[]string{"TestACallThatEndsUnheardHoldsNothing", "TestWhoGivesUpLeavesTheQueueAndWakesTheNext"},
	},
	{
		"redisson: a release that is sent again may have done it", "redisson session.send",
		"held = again || len(raw)", "held = len(raw)",
		[]string{"TestCountsAreExactWhateverAnswerIsLost"},
	},
	{
		"redisson: trust counts from the sending", "redisson waiting.answered",
		"trust.Until(sent, rest)", "trust.Until(now, rest)",
		[]string{"TestTrustOfASharedLockCountsFromTheSending"},
	},
	{
		"redisson: a hold is lost before its lease ends", "redisson waiting.answered",
		"trust.Until(sent, rest)", "sent.Add(rest+time.Second)",
		[]string{"TestAHolderThatCannotRenewKnowsBeforeTheLeaseEnds"},
	},
	{
		"redisson: a hold that was renewed is lost before its lease ends", "redisson round.renewed",
		"trust.Until(sent, rest)", "trust.Until(sent, rest).Add(time.Second)",
		[]string{"TestAHolderThatHasRenewedKnowsBeforeTheLeaseEnds"},
	},
	{
		"redisson: a hold that is gone from Redis is lost", "redisson round.renewed",
		"case got.Reply[0] == int64(0): todo = s.lose(", "case got.Reply[0] == int64(0) && now.IsZero(): todo = s.lose(",
		[]string{"TestAHoldThatRedisHasLostIsFoundByTheNextRenewal"},
	},
	{
		"redisson: waiters rely on messages for a pulse", "redisson waiting.sleep",
		"rest < 0 || rest > most", "rest < 0",
		[]string{"TestAnExpiryThatNobodyPublishesIsFoundWithinAPulse"},
	},
	{
		"redisson: what a caller is told and leaves goes to the next", "redisson Client.part",
		"if w.told || len(w.news) > 0 {", "if false {",
		[]string{"TestAWakingThatItsReceiverLeavesGoesToTheNext"},
	},
	{
		"redisson: a reader has a key for each hold", "redisson/lua/read_acquire.lua",
		"keep(2, tonumber(ARGV[2]), lease)\n", "",
		[]string{"TestReadersShareAndEachHoldHasItsKey"},
	},
	{
		"redisson: the keys that stay live as long as the holds", "redisson/lua/read_acquire.lua",
		"keep(2, tonumber(ARGV[2]), lease)\n", "keep(1 + tonumber(ARGV[2]), 1, lease)\n",
		[]string{"TestALongLeaseSurvivesTheUnlockOfAShorterOne"},
	},
	{
		"redisson: Close leaves queues first", "redisson Client.Close",
		"c.tracker.Await(grace, true)", "_ = grace",
		[]string{"TestTheEndOfAClientLeavesTheQueueOfASharedLock"},
	},
	{
		"redisson: a writer that Shutdown waits for may read", "redisson Client.session",
		"c.tracker.Draining() && !o.holds()", "c.tracker.Draining()",
		[]string{"TestAWriterDowngradesAndReadsDuringShutdown"},
	},
	{
		"redisson: an owner whose holds are lost is refused during Shutdown", "redisson owner.holds",
		"return h.lost == nil && !h.released", "return true",
		[]string{"TestAWriterThatHasLostTheLockReadsNoMoreDuringShutdown"},
	},
	{
		"redisson: Shutdown waits for releases under way", "redisson Hold.end",
		"c.ends++", "defer func() { c.mu.Lock(); c.ends++; c.mu.Unlock() }()",
		[]string{"TestCloseLosesHoldsAndShutdownWaitsForThem"},
	},
	{
		"redisson: a writer's reads leave its lease", "redisson/lua/read_release.lua",
		"redis.call('HGET', KEYS[1], 'mode') == 'write'", "false",
		[]string{"TestShortReadsDoNotCutAWritersLease"},
	},
	{
		"redisson: readers are told of a downgrade", "redisson/lua/write_release.lua",
		"  settle(ARGV[5])\nelse\n  redis.call('DEL', KEYS[1])\nend\n", "  settle(ARGV[5])\n  return 1\nend\nredis.call('DEL', KEYS[1])\n",
		[]string{"TestAWriterReadsAndDowngradesWithoutAGap"},
	},
	{
		"redisson: a plain lock is no read/write lock", "redisson/lua/write_acquire.lua",
		"if not mode and redis.call('EXISTS', KEYS[1]) == 1 then", "if false then",
		[]string{"TestOneNameIsOfOneKind"},
	},
	{
		"redisson: a nested hold takes no token", "redisson/lua/acquire.lua",
		"again and redis.call('GET', KEYS[2]) or redis.call('INCR', KEYS[2])", "redis.call('INCR', KEYS[2])",
		[]string{"TestTokensGrowFromGrantToGrant"},
	},
	{
		"redisson: nobody overtakes the queue of a fair lock", "redisson/lua/fair_acquire.lua",
		"free and (not head or head == owner)", "free",
		[]string{"TestADeadHeadIsPassedAtItsDeadlineWithoutAStorm"},
	},
	{
		"redisson: a dead head is dropped at its deadline", "redisson/lua/shared_line.lua",
		"if not head or deadline and tonumber(deadline) > now then", "if true then",
		[]string{"TestADeadHeadIsPassedAtItsDeadlineWithoutAStorm"},
	},
	{
		"redisson: a waiter that asks is not dead", "redisson/lua/fair_acquire.lua",
		"elseif tonumber(mine) < now + wait then", "elseif false then",
		[]string{"TestAWaiterThatLivesIsNotDroppedAtItsDeadline"},
	},
	{
		"redisson: who leaves the queue wakes the next", "redisson/lua/fair_release.lua",
		"  wake(ARGV[3], ARGV[4])\n", "",
		[]string{"TestWhoGivesUpLeavesTheQueueAndWakesTheNext"},
	},
	{
		"redisson: a reader trusts its own lease, not that of all readers", "redisson round.renewed",
		"min(time.Duration(left)*time.Millisecond, h.terms.ttl)", "time.Duration(left)*time.Millisecond",
		[]string{"TestAReaderTrustsItsOwnLeaseOnly"},
	},
	{
		"redisson: a session that is over clears up behind no later one of its owner", "redisson session.clear",
		"if followed { return }", "_ = followed",
		[]string{"TestWhatAnEarlierReadLeftEndsNoLaterOne", "TestWhatAnEarlierDowngradeLeftEndsNoLaterOne"},
	},
	{
		"redisson: an owner's next session waits for the unlock of the one before", "redisson session.end",
		"s.now = nil", "delete(s.owner.successions, s.kind)",
		[]string{"TestAnUnlockThatIsMadeAgainEndsNoLaterRead"},
	},
	{
		"redisson: a read hold lasts no longer than readers in Java let it", "redisson terms.toRead",
		"t.ttl = min(t.ttl, most)", "",
		[]string{"TestAReaderTrustsNoMoreThanAReaderInJavaLeavesIt"},
	},
	{
		"redisson: a read lease that Java might cut is refused where nobody renews it", "redisson terms.toRead",
		"if t.fixed && t.ttl > most {", "if false {",
		[]string{"TestAReadLeaseThatJavaMightCutIsRefused"},
	},
	{
		"redisson: a renewal is trusted for the shortest watchdog in Java", "redisson round.renewed",
		"min(time.Duration(left)*time.Millisecond, h.terms.ttl)", "time.Duration(left)*time.Millisecond",
		[]string{"TestARenewalIsTrustedForNoMoreThanTheShortestWatchdogInJava"},
	},
	{
		"redisson: a renewal is trusted for no longer than a hold has asked for", "redisson round.renewed",
		"min(time.Duration(left)*time.Millisecond, h.terms.ttl)", "time.Duration(left)*time.Millisecond",
		[]string{"TestAHoldOfASharedLockIsTrustedForItsOwnTTLBesideANestedOneOfAnHour"},
	},
	{
		"redisson: a grant is trusted for no longer than a hold has asked for", "redisson waiting.answered",
		"rest := min(said.rest, h.terms.ttl)", "rest := said.rest",
		[]string{"TestAHoldOfASharedLockIsTrustedForItsOwnTTLBesideALongerOne"},
	},
	{
		"redisson: a renewal that failed is tried again soon for the shortest hold", "redisson round.renewed",
		"min(r.shortest/10, time.Second)", "min(r.holds[0].terms.ttl/10, time.Second)",
		[]string{"TestAFailedRenewalIsTriedAgainInTimeForTheShortestHold"},
	},
	{
		"redisson: a field in a read/write lock is no plain lock", "redisson/lua/acquire.lua",
		"if held and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then", "if false then",
		[]string{"TestAFieldInAReadWriteLockIsNoHoldOfAnotherKind"},
	},
	{
		"redisson: a field in a read/write lock is no fair lock", "redisson/lua/fair_acquire.lua",
		"if not free and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then", "if false then",
		[]string{"TestAFieldInAReadWriteLockIsNoHoldOfAnotherKind"},
	},
	{
		"redisson: an owner has a field for each kind of lock", "redisson Client.session",
		"ownerKey{l.names.key, name, l.kind.ofLock()}", "ownerKey{l.names.key, name, plain}",
		[]string{"TestAnOwnerThatReadsGetsNoLockOfAnotherKind", "TestAnUnlockAfterALossEndsNoLockOfAnotherKind", "TestAnOwnerHoldsTheKindsOfOneNameApart"},
	},
	{
		"redisson: a call does not wait for a hold of its own of another kind", "redisson Lock.waitsForItself",
		"case l.kind.ofLock() != h.lock.kind.ofLock():", "case false:",
		[]string{"TestAnOwnerHoldsTheKindsOfOneNameApart"},
	},
	{
		"redisson: a handle that is granted the lock again has lost its older hold", "redisson Lock.loseOlder",
		"if h.s != s {", "if false && h.s != s {",
		[]string{"TestAHandleOfASharedLockHasNoSecondHoldBeforeTheFirstIsUnlocked"},
	},
	{
		"redisson: Shutdown waits for no lost hold", "redisson session.held",
		"func(h *Hold) bool { return h.lost == nil }", "func(h *Hold) bool { return true }",
		[]string{"TestShutdownWaitsForNoLostHold"},
	},
	{
		"redisson: a loss wakes Shutdown", "redisson Hold.lose",
		"h.s.c.tracker.Ended(); if h.lostc", "if h.lostc",
		[]string{"TestShutdownWaitsForNoLostHold"},
	},
	{
		"redisson: a hold that nobody made says so", "redisson Hold.unmade",
		"return h == nil || h.s == nil", "return false",
		[]string{"TestSharedLocksThatNobodyMadeSaySo"},
	},
	{
		"redisson: of several readers an RUnlock ends the oldest", "redisson Lock.next",
		"order = slices.All(l.holds)", "order = slices.Backward(l.holds)",
		[]string{"TestRUnlockOfAnOldSharedReaderLeavesALaterOneOfItsHandle"},
	},
	{
		"redisson: a read hold is put on no handle of another owner", "redisson waiting.answered",
		"|| w.unlock && w.lock.mixed(w.owner)", "",
		[]string{"TestOfTwoOwnersThatWaitToReadByOneHandleOneIsRefused"},
	},
	{
		"redisson: the release of a nested hold is sent until it is answered", "redisson session.tellFewer",
		"s.c.spawn(limit, s.restate)", "",
		[]string{"TestTheReleaseOfANestedHoldIsSentUntilItIsAnswered"},
	},
	{
		"redisson: a downgrade that finds no write hold reads nothing", "redisson Hold.endForReader",
		"_ = read.end()", "_ = read",
		[]string{"TestADowngradeOfAWriteHoldThatIsGoneLeavesNoReader", "TestADowngradeWhoseHoldIsUnlockedMeanwhileLeavesNoReader"},
	},
	{
		"redisson: a downgrade that is not answered reads", "redisson Hold.endForReader",
		"err == nil || errors.Is(err, relock.ErrUnconfirmed)", "err == nil",
		[]string{"TestADowngradeThatRedisDoesNotAnswerReads"},
	},
	{
		"redisson: a write hold that a downgrade finds lost is yet to be unlocked", "redisson Hold.endForReader",
		"h.missed(err, true)", "",
		[]string{"TestADowngradeOfAWriteHoldThatIsGoneLeavesNoReader"},
	},
	{
		"redisson: Redis is told once of a hold's end", "redisson Hold.end",
		"if !told {", "if _ = told; true {",
		[]string{"TestTheUnlockAfterALostDowngradeEndsNoLaterHold"},
	},
	{
		"redisson: a downgrade does not wait", "redisson waiting.obtain",
		"w.once || w.downgraded != nil", "w.once",
		[]string{"TestADowngradeDoesNotWaitForWhoHasTakenTheLock"},
	},
	{
		"redisson: a hold counts until its end has the turn to be told", "redisson session.tellFewer",
		"s.tellFewerInBackground(h)", "defer s.tellFewerInBackground(h); s.forget(h)",
		[]string{"TestAReleaseThatGetsNoTurnEndsNoNestedHold"},
	},
	{
		"redisson: what is lost and unlocked is not counted", "redisson waiting.request",
		"s.counted(sent) + 1", "len(s.holds) + 1",
		[]string{"TestAnOwnerLocksAnewAfterAllThatItLostIsUnlocked"},
	},
	{
		"redisson: downgrades of one hold have one session", "redisson Client.session",
		"if s := succession.now; s != nil {", "if s := succession.now; s != nil && name != \"\" {",
		[]string{"TestOfTwoDowngradesOfOneHoldOneReads"},
	},
	{
		"redisson: a hold whose own lease ends takes no other with it", "redisson Hold.missed",
		"if !ended || h.lost == nil {", "if true {",
		[]string{"TestADowngradeWhoseLeaseEndsLosesNoOtherHold"},
	},
	{
		"redisson: a name keeps its keys in one slot", "redisson checkName",
		"hashed(namesOf(name).queue()) != hashed(name)", "false",
		[]string{"TestANameWhoseKeysWouldLieInSeveralSlotsIsRefused"},
	},
	{
		"redisson: a single attempt does not wait for an Unlock", "redisson waiting.gate",
		"if w.once {", "if false {",
		[]string{"TestASingleAttemptDoesNotWaitForTheUnlockOfALostHold"},
	},
	{
		"redisson: who waits for a lost hold hears that the client is closed", "redisson waiting.gate",
		"case <-w.lock.c.open.Done(): return relock.ErrClosed", "",
		[]string{"TestAClosedClientLetsNobodyWaitForALostHold"},
	},
	{
		"redisson: an owner with too many holds waits for none of its own", "redisson decided",
		"ending.Is(err, relock.ErrNotHeld) || ending.Is(err, relock.ErrTooManyHolds)", "ending.Is(err, relock.ErrNotHeld)",
		[]string{"TestAnOwnerWithTooManyHoldsIsToldAtOnce"},
	},
	{
		"redisson: a waiter of a fair lock asks before its deadline", "redisson waiting.pulse",
		"if w.lock.kind == fair { return min(pulse", "if false { return min(pulse",
		[]string{"TestAFairWaiterAsksBeforeItsDeadline"},
	},
	{
		"redisson: a ForceUnlock that is sent again may have done it", "redisson Lock.ForceUnlock",
		"removed := unanswered && held || len(raw)", "_, _ = unanswered, held; removed := len(raw)",
		[]string{"TestAForceUnlockSentAgainSaysThatItTookTheLock"},
	},
	{
		"redisson: a ForceUnlock that is sent again leaves the next holder", "redisson/lua/force.lua",
		"if redis.call('EXISTS', KEYS[1]) == 1 and not known() then", "if false then",
		[]string{"TestAForceUnlockSentAgainLeavesTheSuccessor"},
	},
	{
		"redisson: any number of readers is read", "redisson/lua/info.lua",
		"local all = {redis.call('PTTL', KEYS[1]), more}\n", "local all = {redis.call('PTTL', KEYS[1]), more, unpack(redis.call('HGETALL', KEYS[1]))}\n",
		[]string{"TestALockWithThousandsOfReadersIsSeenAndForced"},
	},
	{
		"redisson: a nested unlock leaves the lease as it is (release)", "redisson/lua/release.lua",
		"redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])", "redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1])) redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])",
		[]string{"TestANestedUnlockInTheLastMillisecondLeavesALease"},
	},
	{
		"redisson: a nested unlock leaves the lease as it is (fair_release)", "redisson/lua/fair_release.lua",
		"redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])", "redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1])) redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])",
		[]string{"TestANestedUnlockInTheLastMillisecondLeavesALease"},
	},
	{
		"redisson: a nested unlock leaves the lease as it is (write_release)", "redisson/lua/write_release.lua",
		"redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])", "redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1])) redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])",
		[]string{"TestANestedUnlockInTheLastMillisecondLeavesALease"},
	},
	{
		"redisson: a nested unlock leaves the lease as it is (read_release)", "redisson/lua/read_release.lua",
		"redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])", "redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1])) redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])",
		[]string{"TestANestedUnlockInTheLastMillisecondLeavesALease"},
	},
	{
		"redisson: the end of one holder goes by the owner", "redisson Lock.ForceUnlockHolder",
		`h.Owner != "" && one.Owner != h.Owner ||`, "",
		[]string{"TestForceUnlockHolderTakesTheLockFromThatHolderAlone"},
	},
	{
		"redisson: the end of one holder goes by the token", "redisson Lock.ForceUnlockHolder",
		"|| h.Token != 0 && one.Token != h.Token", "",
		[]string{"TestForceUnlockHolderTakesTheLockFromThatHolderAlone"},
	},
	{
		"redisson: the end of one holder is of its own side", "redisson Lock.ForceUnlockHolder",
		"if l.kind.rw() && (one.Read == written || written == (l.kind == reading)) {", "if false && written {",
		[]string{"TestForceUnlockHolderOfOneSideLeavesTheOther"},
	},
	{
		"redisson: a reader that is removed leaves the other readers", "redisson Lock.forceCall",
		"case reading: return transport.Call{", "case reading + 100: return transport.Call{",
		[]string{"TestForceUnlockHolderTakesTheLockFromThatHolderAlone"},
	},
	{
		"redisson: a release that Close interrupts is unconfirmed", "redisson Hold.end",
		`fmt.Errorf("%w: %w before redis answered; the lease ends it", relock.ErrUnconfirmed, relock.ErrClosed)`, "relock.ErrClosed",
		[]string{"TestReleaseOfRedissonThatCloseInterruptsIsUnconfirmed", "TestDowngradeThatCloseInterruptsIsUnconfirmed"},
	},
	{
		"redisson: a wait that ends unanswered is no end of a context", "redisson unheard",
		"case waited && errors.Is(err, ctx.Err()):", "case false:",
		[]string{"TestAWaitThatEndsUnansweredIsNoEndOfAContext"},
	},
	{
		"redisson: a wait that ends at an occupied handle is no end of a context", "redisson waiting.gate",
		"if errors.Is(context.Cause(w.ctx), errWait) {", "if false {",
		[]string{"TestAWaitThatEndsAtAnOccupiedHandleIsNoEndOfAContext"},
	},
	{
		"redisson: a call that reads tells an outage", "redisson Lock.ask",
		"unheard(ctx, l.c.ctx, err)", "err",
		[]string{"TestReadingCallsOfRedissonTellAnOutageAndAClose"},
	},
	{
		"redisson: a closed client does not read", "redisson Lock.ask",
		"err = relock.ErrClosed", "_ = relock.ErrClosed",
		[]string{"TestReadingCallsOfRedissonTellAnOutageAndAClose"},
	},
	{
		"redisson: the first call in a Cluster asks until its context ends", "redisson Client.hearInTime",
		"return err != nil, err", "return false, err",
		[]string{"TestFirstCallsInAClusterThatRefusesConnectionsTellAnOutage"},
	},
	{
		"redisson: the first attempt in a Cluster tells an outage", "redisson waiting.hear",
		"return unheard(w.ctx, c.open, err)", "return err",
		[]string{"TestFirstCallInASilentClusterEndsWithItsContext", "TestFirstCallsInAClusterThatRefusesConnectionsTellAnOutage"},
	},
	{
		"redisson: a wait below zero is one attempt", "redisson Lock.try",
		"wait = 2 * trust.Attempt(", "wait += 2 * trust.Attempt(",
		[]string{"TestAWaitOfZeroOrLessIsOneAttempt"},
	},
	{
		"redisson: a context that ends at an occupied handle tells the loss", "redisson waiting.gate",
		"return fmt.Errorf($x, relock.ErrLost, ending.Of(w.ctx))", "return ending.Of(w.ctx)",
		[]string{"TestALostHoldOfASharedLockOccupiesItsHandle"},
	},
	{
		"redisson: a Shutdown that runs out of time leaves the client open", "redisson Client.Shutdown",
		`return fmt.Errorf("redisson: shutdown: %w", ending.Of(ctx))`, "return errors.Join(ending.Of(ctx), c.Close())",
		[]string{"TestAShutdownOfRedissonThatRunsOutOfTimeLeavesTheClientOpen"},
	},
	{
		"redisson: Unlock spares a hold of Acquire", "redisson Lock.next",
		"if h.unlock { rank += 2 }", "",
		[]string{"TestUnlockOfRedissonSparesAHoldOfAcquire"},
	},
	{
		"redisson: Unlock ends a lost hold first", "redisson Lock.next",
		"rank = 1", "rank = 0",
		[]string{"TestUnlockOfRedissonEndsALostHoldFirst"},
	},
	{
		"redisson: holds of Acquire count", "redisson Lock.judge",
		"if err == nil {", "if err == nil && h.unlock {",
		[]string{"TestUnlockOfRedissonSparesAHoldOfAcquire"},
	},
	{
		"redisson: a handle tells the token of a lost hold", "redisson Lock.Token",
		"h != nil {", "h != nil && h.Err() == nil {",
		[]string{"TestAHandleOfRedissonTellsTheTokenOfItsLostHold"},
	},
	{
		"redisson: the end of one holder that was not answered counts as done", "redisson Lock.ForceUnlockHolder",
		"removed = removed || unanswered ||", "_ = unanswered; removed = removed ||",
		[]string{"TestTheEndOfOneHolderThatIsSentAgainIsTold"},
	},
	{
		"redisson: all readers of a client are told of a writer that was forced", "redisson Lock.ForceUnlock",
		`message, mode = messageAll, "write"`, `message, mode = messageOne, "write"`,
		[]string{"TestAWriterThatUnlocksLetsEveryWaitingReaderIn"},
	},
	{
		"redisson: all readers of a client are told of a writer that was removed", "redisson Lock.forceCall",
		`channel, messageAll, "write"`, `channel, messageOne, "write"`,
		[]string{"TestAWriterThatUnlocksLetsEveryWaitingReaderIn"},
	},
	{
		"redisson: a writer that is removed loses its read holds", "redisson Lock.forceCall",
		"Script: forceScript, Keys: $k, Args: []any{l.c.publish, channel, messageAll, $$a}",
		`Script: releaseScripts[writing], Keys: $k, Args: []any{h.Owner + ":write", 0, l.c.publish, channel, l.names.tag}`,
		[]string{"TestAWriterThatIsRemovedLosesItsReadHoldsToo"},
	},
	{
		"redisson: a lasting refusal is no outage", "redisson outage",
		"|| outcome == transport.Refused", "",
		[]string{"TestAWrongPasswordIsToldAtOnceByTheFirstCallOfRedisson"},
	},
	{
		"redisson: no Option is nil", "redisson newConfig",
		`return c, fmt.Errorf("%w: an Option is nil; leave it out", relock.ErrInvalidOption)`, "continue",
		[]string{"TestBadInputOfASharedLockIsRefused"},
	},
	{
		"redisson: a Ring is refused", "redisson New",
		"if !transport.CanListen(rdb) {", "if false && !transport.CanListen(rdb) {",
		[]string{"TestAClientOfRedissonIsNotMadeOverARing"},
	},
	{
		"redisson: several Defaults add up", "redisson Defaults",
		"c.terms.with(opts)", "(terms{ttl: 30 * time.Second}).with(opts)",
		[]string{"TestSeveralDefaultsOfRedissonAddUp"},
	},
	{
		"redisson: an option of a handle replaces that of the Defaults", "redisson MaxHold",
		"t.maxHold = d", "if t.maxHold == 0 { t.maxHold = d }",
		[]string{"TestSeveralDefaultsOfRedissonAddUp"},
	},
	{
		"redisson: ShardedPubSub decides in a Cluster too", "redisson Client.hear",
		"case c.cfg.sharded != nil:", "case c.cfg.sharded != nil && !cluster:",
		[]string{"TestUnlocksArePublishedAsShardedPubSubSays"},
	},
	{
		"redisson: a Cluster that knows no sharded pub/sub is told plainly", "redisson Client.hear",
		`strings.HasPrefix(answer.Error(), "ERR")`, `strings.HasPrefix(answer.Error(), "NOPERM")`,
		[]string{"TestUnlocksArePublishedAsShardedPubSubSays"},
	},
	{
		"redisson: Downgrade takes no hold that RUnlock could not tell apart", "redisson RWLock.downgrade",
		"unlock: true", "unlock: false",
		[]string{"TestADowngradeIsRefusedBesideReadHoldsOfAnotherOwner"},
	},
	{
		"redisson: a named owner does not read by a handle that an anonymous one reads by", "redisson Lock.mixed",
		`(h.s.named || owner != "")`, "h.s.named",
		[]string{"TestAReadHoldOfItsOwnIsGrantedBesideAnotherOwnersRLock"},
	},
	{
		"redisson: Downgrade takes a hold of Acquire", "redisson RWLock.Downgrade",
		"if h == nil {", "if h == nil || !h.unlock {",
		[]string{"TestADowngradeTakesAHoldOfAcquireOrDo"},
	},
	{
		"redisson: a release waits for 5 s by default", "redisson newConfig",
		"releaseTimeout: 5 * time.Second", "releaseTimeout: 3 * time.Second",
		[]string{"TestAnAttemptFindsFreeWhatAnUnlockOfRedissonCouldNotConfirm"},
	},
	{
		"redisson: a head may be silent for five minutes by default", "redisson newConfig",
		"fairWait: 5 * time.Minute", "fairWait: time.Minute",
		[]string{"TestAWaiterMayBeSilentForFiveMinutes"},
	},
	{
		"redisson: a fair waiter asks every third of FairWait", "redisson waiting.pulse",
		"fairWait/3", "fairWait/2",
		[]string{"TestAFairWaiterAsksEveryThirdOfFairWait"},
	},
	{
		"redisson: a name has 512 bytes at most", "redisson maxName",
		"512", "1024",
		[]string{"TestANameWhoseKeysWouldLieInSeveralSlotsIsRefused", "TestAnOwnerOfRedissonHasUpTo512BytesOfUTF8"},
	},
	{
		"redisson: a name is UTF-8", "redisson checkName",
		"!utf8.ValidString(name)", "!utf8.ValidString(name[:0])",
		[]string{"TestANameWhoseKeysWouldLieInSeveralSlotsIsRefused"},
	},
	{
		"redisson: an owner is UTF-8", "redisson checkOwner",
		"!utf8.ValidString(id)", "!utf8.ValidString(id[:0])",
		[]string{"TestAnOwnerOfRedissonHasUpTo512BytesOfUTF8"},
	},
	{
		"redisson: Lost is the same channel each time", "redisson Hold.Lost",
		"if h.lostc == nil {", "if h.lostc == nil || h.lost == nil {",
		[]string{"TestAHoldThatRedisHasLostIsFoundByTheNextRenewal"},
	},
	{
		"redisson: a free lock has no kind", "redisson Lock.Info",
		"if len(info.Holders) > 0 || info.Waiters > 0 {", "if len(info.Holders) >= 0 {",
		[]string{"TestInfoTellsTheKindOfItsHandle"},
	},
	{
		"redisson: the counter of tokens does not expire", "redisson/lua/acquire.lua",
		"redis.call('INCR', KEYS[2]))", "redis.call('INCR', KEYS[2]))\n  redis.call('PEXPIRE', KEYS[2], 86400000)",
		[]string{"TestTokensGrowFromGrantToGrant"},
	},
	{
		"redisson: Close tells Redis for a quarter of a second", "redisson closeGrace",
		"250 *", "900 *",
		[]string{"TestReleaseOfRedissonThatCloseInterruptsIsUnconfirmed"},
	},
	{
		"redisson: an owner is the client's ID, a colon and a number", "redisson Client.session",
		`c.id + ":" +`, `c.id + "-" +`,
		[]string{"TestALockIsHeldInRedissonsHashAndLeavesNothing"},
	},
	{
		"redisson: a hold's name is its lock's", "redisson Hold.Name",
		"return h.lock.name", "return h.lock.names.tag",
		[]string{"TestALockIsHeldInRedissonsHashAndLeavesNothing"},
	},
}
