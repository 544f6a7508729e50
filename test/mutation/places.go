package mutation

// placeRules are rules that are kept at several places (docs/decisions/0038-where-promises-are-kept.md), each taken out
// at one of them.
var placeRules = []Rule{
	// At most one owner, and trust.
	{
		"the usual grant is of a lock that nobody has", "lua/acquire.lua",
		"fields[1] or fields[2] or ARGV[10]", "fields[2] or ARGV[10]",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"whose lease has ended holds no more", "lua/shared_sessions.lua",
		"return s and s.deadline > now and not s.orphan and s", "return s and not s.orphan and s",
		[]string{"TestNoStatementFindsALeaseThatHasEnded"},
	},
	{
		"a renewal is trusted from its sending", "internal/room Statement.Stated",
		"s.extend(st.Sent, s.trustedUntil(st.Sent, reply.Remaining), acks)", "s.extend(at.Now, s.trustedUntil(at.Now, reply.Remaining), acks)",
		[]string{"TestRenewalsAreTrustedFromTheirSending"},
	},
	{
		"a hold ends by the clock", "internal/room Session.Check",
		"case s.ended(at.Now):", "case false:",
		[]string{"TestAWaitThatRedisRefusesUntilItsLeaseHasEndedIsLost"},
	},
	{
		"redisson: a hold ends by the clock", "redisson Hold.judge",
		"case h.lost == nil && now.Reached(h.trust):", "case false:",
		[]string{"TestSuspendedHolderOfRedissonIsLostAtTheFirstQuestion"},
	},
	// The first question after a pause.
	{
		"Err asks the clock", ". Hold.judge",
		"h.hold.Session.Check(&at)", "",
		[]string{"TestSuspendedHolderIsLostAtTheFirstQuestion/Err", "TestSuspendedHolderIsLostAtTheFirstQuestion/TrustedUntil"},
	},
	{
		"HoldCount asks the clock", ". keeper.look",
		"k.room.Judge(&at)", "",
		[]string{"TestSuspendedHolderIsLostAtTheFirstQuestion/HoldCount"},
	},
	{
		"Err of a context asks the clock", "internal/holdcontext Context.Err",
		"above.judge()", "",
		[]string{
			"TestSuspendedHolderIsLostAtTheFirstQuestion/context", "TestSuspendedQuorumHoldIsLostAtTheFirstLookAtItsContext",
			"TestSuspendedHolderOfRedissonIsLostAtTheFirstQuestion/context",
		},
	},
	// Out of memory, and lifetimes.
	{
		"await begins with PEXPIRE", "lua/await.lua",
		"touch(ttl, tonumber(ARGV[6]))", "state.keep = tonumber(ARGV[6])",
		[]string{"TestEveryFurtherStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"abandon begins with PEXPIRE", "lua/abandon.lua",
		"touch(waiter.ttl, tonumber(ARGV[2]))", "state.keep = tonumber(ARGV[2])",
		[]string{"TestEveryFurtherStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"signal begins with PEXPIRE", "lua/signal.lua",
		"touch(session.deadline - now, tonumber(ARGV[5]))", "state.keep = tonumber(ARGV[5])",
		[]string{"TestEveryFurtherStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"detach begins with PEXPIRE", "lua/detach.lua",
		"touch(math.max(ttl, until_ms - now), tonumber(ARGV[7]))", "state.keep = tonumber(ARGV[7])",
		[]string{"TestEveryFurtherStatementWorksWhenRedisIsOutOfMemory"},
	},
	{
		"resume begins with PEXPIRE", "lua/resume.lua",
		"touch(ttl, tonumber(ARGV[6]))", "state.keep = tonumber(ARGV[6])",
		[]string{"TestEveryFurtherStatementWorksWhenRedisIsOutOfMemory", "TestEveryFurtherStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"raise begins with PEXPIRE", "lua/raise.lua",
		"  redis.call('PEXPIRE', KEYS[1], ARGV[4] + math.max(ahead, 0), 'GT')\n", "",
		[]string{"TestEveryFurtherStatementWorksWhenRedisIsOutOfMemory"},
	},
	{
		"together, a first grant asks for a lifetime first", "lua/usual.lua",
		"    stored = redis.pcall('PEXPIRE', KEYS[i], life)\n    stored = type(stored) == 'number' and redis.pcall('HSET', KEYS[i], 'holder', identity, field, counts .. block, 'token', token, 'kind', kind)\n",
		"    stored = redis.pcall('HSET', KEYS[i], 'holder', identity, field, counts .. block, 'token', token, 'kind', kind)\n",
		[]string{"TestEveryFurtherStatementWorksWhenRedisIsOutOfMemory", "TestEveryFurtherStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"together, a grant asks for a lifetime first", "lua/usual.lua",
		"    stored = redis.pcall('PEXPIRE', KEYS[i], life)\n    stored = type(stored) == 'number' and redis.pcall('HSET', KEYS[i], 'holder', identity, field, counts .. block, 'token', token)\n",
		"    stored = redis.pcall('HSET', KEYS[i], 'holder', identity, field, counts .. block, 'token', token)\n",
		[]string{"TestEveryFurtherStatementWorksWhenRedisIsOutOfMemory"},
	},
	{
		"a queue has a lifetime", "lua/shared_sessions.lua",
		"redis.call('PEXPIRE', KEYS[2], lease, 'NX')", "local _ = lease",
		[]string{"TestEveryStatementLeavesNoKeyWithoutALifetime", "TestEveryFurtherStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"the queue that the usual waiter begins has a lifetime", "lua/acquire.lua",
		"redis.call('PEXPIRE', KEYS[2], ARGV[8], 'NX')", "local _ = ARGV[8]",
		[]string{"TestEveryStatementLeavesNoKeyWithoutALifetime"},
	},
	// Late requests.
	{
		"a resume has a not-after", "lua/resume.lua",
		"if not_after <= micros or not_after > micros + 60000000 then", "if false then",
		[]string{"TestEveryFurtherRequestHasANotAfter"},
	},
	{
		"together, a request that comes too early is refused", "lua/usual.lua",
		"left > 0 and left <= 60000000", "left > 0",
		[]string{"TestEveryFurtherRequestHasANotAfter"},
	},
	{
		"a resume that was given up gets nothing", "lua/resume.lua",
		"state.ended and redis.call('HGET', KEYS[1], 'e:' .. asks.nonce)", "nil",
		[]string{"TestAResumeThatWasGivenUpGetsNothing"},
	},
	// Keys of another type.
	{
		"condition: a queue that is another's is found before a wait gives anything up", "lua/await.lua",
		"head() --", "--",
		[]string{"TestEveryFurtherStatementLeavesKeysOfAnotherTypeAlone", "TestAWaitFindsAQueueOfAnotherType"},
	},
	{
		"an end that nobody waits for reads no queue", "lua/force.lua",
		" and state.queued > 0 then", " then",
		[]string{"TestEveryFurtherStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"a hash of another type is told before anything is written", "lua/shared_state.lua",
		"if fields.err then\n  return fields\nend\n", "",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"the lifetime of another's key is left by those who hold together", "lua/shared_sessions.lua",
		"local added = redis.call('ZADD', KEYS[2], ...)", "redis.call('PEXPIRE', KEYS[2], lease, 'GT')\n  local added = redis.call('ZADD', KEYS[2], ...)",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	// What ended calls leave.
	{
		"what a release leaves is waited for", ". releasing.releaseInBackground",
		"c.leaving.Begin(r.a.keeper.hash)", "func() {}",
		[]string{"TestAnAttemptFindsFreeWhatAnEndedCallHasLeft"},
	},
	{
		"what a Multi gives back is waited for", ". MultiHold.giveBack",
		"hold.lock.c.leaving.Begin(hold.lock.hash)", "func() {}",
		[]string{"TestAnAttemptFindsFreeWhatAMultiGaveBack"},
	},
	{
		"a quorum's attempt waits until what earlier calls have left is removed", ". QuorumLock.acquire",
		"l.quorum.leaving.Await(ctx, l.name, time.Second)", "",
		[]string{"TestAnAttemptFindsFreeWhatAQuorumGaveBack"},
	},
	{
		"what a quorum gives back is waited for", "internal/quorum Majority.GiveBack",
		"h.lock.BeginLeaving(), make", "func() {}, make",
		[]string{"TestAnAttemptFindsFreeWhatAQuorumGaveBack"},
	},
	{
		"redisson: who looks waits until what earlier calls have left is removed", "redisson Lock.ask",
		"l.c.leaving.Await(ctx, l.names.key, time.Second)", "",
		[]string{"TestInfoOfRedissonShowsNoCallThatHasEnded"},
	},
	{
		"redisson: what a call leaves is waited for", "redisson session.undo",
		"s.inBackground(limit, func(ctx context.Context, left func()) {", "left := func() {}; s.c.spawn(limit, func(ctx context.Context) {",
		[]string{"TestAnAttemptFindsFreeWhatAnEndedCallOfRedissonHasLeft", "TestInfoOfRedissonShowsNoCallThatHasEnded"},
	},
	{
		"redisson: what ends beside a call is waited for", "redisson session.tellFewerInBackground",
		"s.inBackground(limit, func(ctx context.Context, _ func()) {", "s.c.spawn(limit, func(ctx context.Context) {",
		[]string{"TestAnAttemptFindsFreeWhatAnOccupiedHandleOfRedissonGaveBack", "TestAnAttemptFindsFreeWhatAnUnlockOfRedissonHasLost"},
	},
	{
		"redisson: what an unlock could not confirm is waited for", "redisson session.tellFewer",
		"s.inBackground(limit, func(ctx context.Context, left func()) {", "left := func() {}; s.c.spawn(limit, func(ctx context.Context) {",
		[]string{"TestAnAttemptFindsFreeWhatAnUnlockOfRedissonCouldNotConfirm"},
	},
	// Calls that have ended.
	{
		"a quorum's call whose context has ended holds nothing", ". QuorumLock.acquire",
		"if err == nil && ending.Passed(ctx) != nil {", "if false {",
		[]string{"TestAQuorumCallThatHasEndedNeverHolds"},
	},
	{
		"relocktest: a call of a Fake that has ended holds nothing", "relocktest Fake.take",
		"if err := ending.Passed(ctx); err != nil {", "if err := error(nil); err != nil {",
		[]string{"TestACallOfAFakeThatHasEndedNeverHolds"},
	},
	// Kinds.
	{
		"who waits on a condition keeps a name's kind", "lua/shared_conditions.lua",
		"    + redis.call('ZCOUNT', KEYS[2], '(' .. text(-far), '(' .. text(-(now + apart))) > 0", "    > 0",
		[]string{"TestWhoWaitsOnAConditionKeepsTheKind"},
	},
	// The end of a client.
	{
		"what is granted as the client closes is no hold", ". waiting.firstHold",
		"case w.keeper.c.refusing.Load():", "case false:",
		[]string{"TestCallInFlightAtCloseGetsNoHold"},
	},
	{
		"Close loses the holds of who waits on a condition", ". Client.loseAll",
		"a.Held() || a.Away()", "a.Held()",
		[]string{"TestClosingEndsWaits"},
	},
	{
		"redisson: Close loses what is held", "redisson Client.Close",
		"todo = append(todo, s.lose(fmt.Errorf(\"%w: %w\", relock.ErrLost, relock.ErrClosed))...)", "_ = s",
		[]string{"TestCloseLosesHoldsAndShutdownWaitsForThem"},
	},
	{
		"redisson: what is granted as the client closes is no hold", "redisson waiting.answered",
		"if w.lock.c.closing {", "if false {",
		[]string{"TestACallOfRedissonInFlightAtCloseGetsNoHold"},
	},
	{
		"redisson: a grant to a call that Close ends is given back", "redisson waiting.answered",
		"if w.lock.c.closing { s.doubt = true;", "if w.lock.c.closing {",
		[]string{"TestAGrantToACallThatCloseEndsIsGivenBack"},
	},
	// Tokens.
	{
		"the usual hand-off is in the counter", "lua/release.lua",
		"'token', last, queued > 0 and 'crowd' or 'token', queued > 0 and text(queued) or last)",
		"'kind', entries[4], queued > 0 and 'crowd' or 'kind', queued > 0 and text(queued) or entries[4])",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"the usual grant is in the counter", "lua/acquire.lua",
		"ARGV[6] .. block, 'token', token)", "ARGV[6] .. block)",
		[]string{"TestTokensGrowWithEveryGrant"},
	},
	{
		"together, a grant is in the counter", "lua/usual.lua",
		"counts .. block, 'token', token)", "counts .. block)",
		[]string{"TestCallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo"},
	},
	{
		"a grant beside others is in the counter", "lua/shared_sessions.lua",
		"redis.call('HSET', KEYS[1], 'token', text(state.token), 'kind', state.kind)", "redis.call('HSET', KEYS[1], 'kind', state.kind)",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a counter is raised", "lua/raise.lua",
		"  redis.call('HSET', KEYS[1], 'token', ARGV[3])\n", "",
		[]string{"TestQuorumTokensGrowThoughClocksDiffer"},
	},
	{
		"a counter is never lowered", "lua/raise.lua",
		"if record[4] + 0 < ARGV[3] + 0 then", "if true then",
		[]string{"TestARaiseNeverLowersACounter"},
	},
	{
		"who holds no more raises nothing", "lua/raise.lua",
		"if not alone and not several then", "if false then",
		[]string{"TestARaiseNeverLowersACounter"},
	},
	{
		"each hold of a run has a token of its own", "internal/room Session.serve",
		"s.reserveNext()", "s.left--; s.reserve()",
		[]string{"TestFairPassesOnToThoseOfItsProcessWhoAreNext"},
	},
	// Releases.
	{
		"Unlock gives up after the ReleaseTimeout", ". releasing.releaseNow",
		"context.WithDeadline(c.ctx, by)", "context.WithDeadline(c.ctx, by.Add(time.Hour))",
		[]string{"TestUnlockGivesUpAfterTheReleaseTimeout"},
	},
	{
		"a nested Unlock gives up after the ReleaseTimeout", ". acquisition.tellFewer",
		"context.WithDeadline(c.ctx, by)", "context.WithDeadline(c.ctx, by.Add(time.Hour))",
		[]string{"TestUnlockThatWaitsForTheTurnReturnsWithinTheReleaseTimeout"},
	},
	{
		"redisson: Unlock gives up after the ReleaseTimeout", "redisson Hold.end",
		"context.WithTimeout(c.ctx, c.cfg.releaseTimeout)", "context.WithTimeout(c.ctx, time.Hour)",
		[]string{"TestAnAttemptFindsFreeWhatAnUnlockOfRedissonCouldNotConfirm"},
	},
	// Hand-offs and news of waiters.
	{
		"condition: a wait hands the lock over", "lua/await.lua",
		"return { now, finish(true), 1 }", "return { now, finish(false), 1 }",
		[]string{"TestAWaitHandsTheLockOverAtOnce"},
	},
	{
		"who waits is told that a resumed hold ends sooner", "lua/resume.lua",
		"more = finish(unsettled())", "more = finish(false)",
		[]string{"TestWhoWaitsIsToldOfAShorterHoldAfterAResume"},
	},
	{
		"a Multi is wanted when any of its locks is", ". MultiHold.Wanted",
		"hold.whenWanted(want)", "hold.whenWanted(want); break",
		[]string{"TestAMultiIsWantedWhenAnyOfItsLocksIs"},
	},
	{
		"a quorum is wanted at its primaries", "internal/quorum Majority.Awaited",
		"m.hold.WhenWanted(h.tellWanted)", "",
		[]string{"TestAQuorumIsWantedWhenAnotherWaits"},
	},
	{
		"a quorum is wanted at a primary that it takes later", "internal/quorum Majority.adopt",
		"hold.WhenWanted(h.tellWanted)", "",
		[]string{"TestAQuorumIsWantedAtAPrimaryThatItTookLater"},
	},
	{
		"who asks whether its hold is wanted hears what came before", ". Hold.whenWanted",
		"if wanted { f() }", "_ = wanted",
		[]string{"TestAMultiThatIsWantedAlreadySaysSo"},
	},
	// Several locks, readers, labels.
	{
		"a Multi takes its locks in one order", ". NewMulti",
		"cmp.Compare(a.hash, b.hash)", "cmp.Compare(a.hash, a.hash)",
		[]string{"TestMultisNeverWaitInACircle"},
	},
	{
		"a Multi is lost with the first that is lost", ". MultiHold.Err",
		"range h.holds {", "range h.holds[:1] {",
		[]string{"TestMultiIsLostWithTheFirstThatIsLost"},
	},
	{
		"a primary counts once it has the token", "internal/quorum Majority.trust",
		"return m.raised", "return true",
		[]string{"TestAHoldNeedsAMajorityThatKnowsItsToken"},
	},
	{
		"readers behind a reader are let in with it", "lua/shared_settle.lua",
		"        admit = waiter.mode == 'w' and admit or admit - 1\n", "        return\n",
		[]string{"TestThousandReadersFollowOneWriter"},
	},
	{
		"who would write under its own context's read hold is told", ". Lock.deadlock",
		"if !l.read && h.reads() {", "if false {",
		[]string{"TestUpgradeOfAnAnonymousReaderFailsAtOnce"},
	},
	{
		"redisson: an owner that reads cannot write", "redisson/lua/write_acquire.lua",
		"if redis.call('HEXISTS', KEYS[1], ARGV[5]) == 1 then", "if false then",
		[]string{"TestAWriterReadsAndDowngradesWithoutAGap"},
	},
	{
		"redisson: who would write under its own context's read hold is told", "redisson Lock.waitsForItself",
		"case l.kind == writing && h.lock.kind == reading && !same:", "case false:",
		[]string{"TestAWriterUnderItsOwnReadHoldOfRedissonIsTold"},
	},
	{
		"a label is text of 1 to 128 bytes", "internal/key CheckLabel",
		"check(label, maxLabel, \"\",", "check(label, maxLabel+1, \"\",",
		[]string{"TestBadLabelIsRefused"},
	},
	// A password that is rotated.
	{
		"a list of locks waits out refused credentials", "internal/transport Transport.Scan",
		"t.barred(forCaller(err))", "forCaller(err)",
		[]string{"TestLocksTellsOfARotationAsOfAnOutage"},
	},
	{
		"a read that waits for a release tells an outage", ". askAgain",
		"call := q(l.c.wire, key.Of(l.c.cfg.prefix, l.hash))",
		"l.c.leaving.Await(ctx, l.hash, time.Second); call := q(l.c.wire, key.Of(l.c.cfg.prefix, l.hash))",
		[]string{"TestAReadThatWaitsForAReleaseTellsAnOutage"},
	},
}
