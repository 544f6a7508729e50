package mutation

// Interop are rules that a real Redisson shows to be needed. Their tests need a JVM.
var Interop = []Rule{
	{
		"java: a read hold lasts no longer than readers in Java let it", "redisson terms.toRead",
		"t.ttl = min(t.ttl, most)", "",
		[]string{"TestAKilledReaderOfJavasTakesNoReadThatIsTrusted"},
	},
	{
		"java: an unlock wakes Java", "redisson/lua/release.lua",
		"redis.call('DEL', KEYS[1])\nredis.call(ARGV[3], ARGV[4], '0')", "redis.call('DEL', KEYS[1])",
		[]string{"TestEachIsWokenByTheOthersUnlock/server"},
	},
	{
		"java: an unlock of a fair lock wakes the head in Java", "redisson/lua/shared_line.lua",
		"    redis.call(publish, channel .. ':' .. head, '0')", "",
		[]string{"TestEachIsWokenByTheOthersUnlock/server"},
	},
	{
		"java: an unlock of a writer wakes Java", "redisson/lua/write_release.lua",
		"end\nredis.call(ARGV[3], ARGV[4], '1')", "end",
		[]string{"TestEachIsWokenByTheOthersUnlock/server"},
	},
	{
		"java: an unlock of the last reader wakes Java", "redisson/lua/read_release.lua",
		"  redis.call(ARGV[3], ARGV[4], '0')", "",
		[]string{"TestReadersOfBothShareAndKeepWritersOut/server"},
	},
	{
		"java: unlocks are told in shards in a Cluster", "redisson Client.hear",
		"map[bool]string{true: \"SPUBLISH\", false: \"PUBLISH\"}[sharded]", "map[bool]string{true: \"PUBLISH\", false: \"PUBLISH\"}[sharded]",
		[]string{"TestEachIsWokenByTheOthersUnlock/cluster"},
	},
	{
		"java: the unlock of Java wakes us", "redisson Client.deliver",
		"if all := c.waiters[channel]; all != nil && (", "if all := c.waiters[channel]; all != nil && false && (",
		[]string{"TestEachIsWokenByTheOthersUnlock/server"},
	},
	{
		"java: a nested unlock keeps the lock", "redisson/lua/release.lua",
		"if ARGV[2] ~= '0' then", "if false then",
		[]string{"TestNestedHoldsExcludeTheOtherUntilTheLast/server"},
	},
	{
		"java: a nested unlock keeps a fair lock", "redisson/lua/fair_release.lua",
		"if ARGV[2] ~= '0' then", "if false then",
		[]string{"TestNestedHoldsExcludeTheOtherUntilTheLast/server"},
	},
	{
		"java: a nested unlock keeps a write lock", "redisson/lua/write_release.lua",
		"if ARGV[2] ~= '0' then", "if false then",
		[]string{"TestNestedHoldsExcludeTheOtherUntilTheLast/server"},
	},
	{
		"java: the last unlock ends the lock", "redisson session.sendFewer",
		"call = s.releaseCall(left, top)", "call = s.releaseCall(max(left, 1), top)",
		[]string{"TestNestedHoldsExcludeTheOtherUntilTheLast/server"},
	},
	{
		"java: a downgrade wakes readers in Java", "redisson/lua/write_release.lua",
		"  settle(ARGV[5])\nelse", "  settle(ARGV[5])\n  return 1\nelse",
		[]string{"TestDowngradeLetsTheOthersReadersIn/server"},
	},
	{
		"java: a downgrade makes the lock one that is read", "redisson/lua/write_release.lua",
		"  redis.call('HSET', KEYS[1], 'mode', 'read')\n", "",
		[]string{"TestDowngradeLetsTheOthersReadersIn/server"},
	},
	{
		"java: a waiter asks again when the lease it was told is over", "redisson waiting.sleep",
		"if most := w.pulse(); rest < 0 || rest > most { rest = most }", "rest = time.Hour",
		[]string{"TestDowngradeLetsTheOthersReadersIn/server"},
	},
	{
		"java: TryLock waits", "redisson Lock.try",
		"w.once = wait <= 0", "w.once = true",
		[]string{"TestNestedHoldsExcludeTheOtherUntilTheLast/server"},
	},
	{
		"java: TryLock without a wait does not", "redisson Lock.try",
		"w.once = wait <= 0; if w.once {", "w.once = false; if wait <= 0 {",
		[]string{"TestNestedHoldsExcludeTheOtherUntilTheLast/server"},
	},
	{
		"java: a reader has a key for each hold, which Java looks at", "redisson/lua/shared_reads.lua",
		"    if redis.call('PTTL', KEYS[i]) < lease then", "    if false then",
		[]string{"TestReadersOfBothShareAndKeepWritersOut/server"},
	},
	{
		"java: a reader leaves the hash to the readers of Java", "redisson/lua/read_release.lua",
		"if not settle(ARGV[5]) then", "redis.call('DEL', KEYS[1])\nif true then",
		[]string{"TestOurReadersLeaveTheHashToJavas"},
	},
	{
		"java: ForceUnlock wakes us", "redisson/lua/force.lua",
		"elseif held == 1 then", "elseif false then",
		[]string{"TestForceUnlockOfEitherSideLetsTheOtherIn/server"},
	},
	{
		"java: ForceUnlock wakes the head of a fair queue", "redisson/lua/force.lua",
		"  wake(ARGV[1], ARGV[2])", "",
		[]string{"TestForceUnlockOfEitherSideLetsTheOtherIn/server"},
	},
	{
		"java: a holder is told that Java forced its lock", "redisson round.renewed",
		"todo = s.lose(errMissing)", "",
		[]string{"TestForceUnlockOfEitherSideLetsTheOtherIn/server"},
	},
	{
		"java: ForceUnlock takes the lock of Java", "redisson/lua/force.lua",
		"local held = redis.call('DEL', KEYS[1])", "local held = redis.call('EXISTS', KEYS[1])",
		[]string{"TestForceUnlockOfEitherSideLetsTheOtherIn/server"},
	},
	{
		"java: a dead waiter of Java leaves the queue", "redisson/lua/shared_line.lua",
		"    if not head or deadline and tonumber(deadline) > now then", "    if not head or deadline then",
		[]string{"TestAKilledWaiterAtTheHeadOfAFairQueueIsPassedByItsDeadline"},
	},
	{
		"java: a dead waiter here leaves the queue by its deadline", "redisson/lua/fair_acquire.lua",
		"string.format('%.0f', from + wait), owner)", "string.format('%.0f', from + 100 * wait), owner)",
		[]string{"TestAKilledWaiterAtTheHeadOfAFairQueueIsPassedByItsDeadline"},
	},
	{
		"java: a waiter at the head is not overtaken before its deadline", "redisson/lua/fair_acquire.lua",
		"free and (not head or head == owner)", "free",
		[]string{"TestAKilledWaiterAtTheHeadOfAFairQueueIsPassedByItsDeadline"},
	},
	{
		"java: the watchdog keeps what Java would take", "redisson Client.runDue",
		"if lease := s.lease(now); lease > 0 {", "if lease := s.lease(now); lease > 0 && s.kind == fair {",
		[]string{"TestWatchdogsOfBothKeepLocks/server"},
	},
	{
		"java: a fixed lease ends", "redisson Hold.renewable",
		"h.lost != nil || h.terms.fixed:", "h.lost != nil:",
		[]string{"TestAFixedLeaseOfEitherSideEnds/server"},
	},
	{
		"java: the watchdog keeps the keys of a reader", "redisson/lua/renew.lua",
		"keep(2, tonumber(count), lease)", "",
		[]string{"TestReadersOfBothShareAndKeepWritersOut/server"},
	},
	{
		"java: the lock of a killed holder ends", "redisson/lua/shared_lease.lua",
		"  if left < lease then", "  if left < 0 and redis.call('TTL', key) == -2 then",
		[]string{"TestAKilledHolderOfEitherSideGivesWayWithItsLease/server"},
	},
	{
		"java: a waiter finds that the lease of Java is over", "redisson waiting.sleep",
		"t := time.NewTimer(rest + time.Millisecond)", "t := time.NewTimer(pulse)",
		[]string{"TestAKilledHolderOfEitherSideGivesWayWithItsLease/server"},
	},
	{
		"java: a waiter for a fair lock finds that the lease of Java is over", "redisson/lua/fair_acquire.lua",
		"local left = math.max(redis.call('PTTL', KEYS[1]), 0)", "local left = 3600000",
		[]string{"TestAFixedLeaseOfEitherSideEnds/server"},
	},
	{
		"java: Java sees the lease", "redisson/lua/shared_lease.lua",
		"string.format('%.0f', lease)", "string.format('%.0f', 2 * lease)",
		[]string{"TestJavaSeesOfOurHoldersWhatItSeesOfItsOwn"},
	},
	{
		"java: Java sees the lock", "redisson namesOf",
		`return names{name, name} }; return names{name, "{" + name + "}"}`, `return names{name, name} }; return names{name + "\x00", "{" + name + "}"}`,
		[]string{"TestJavaSeesOfOurHoldersWhatItSeesOfItsOwn"},
	},
	{
		"java: Java sees who writes", "redisson/lua/write_acquire.lua",
		"redis.call('HSET', KEYS[1], 'mode', 'write')", "redis.call('HSET', KEYS[1], 'mode', 'w')",
		[]string{"TestJavaSeesOfOurHoldersWhatItSeesOfItsOwn"},
	},
	{
		"java: a holder knows its loss before Java has the lock", "redisson waiting.answered",
		"clock.Max(h.trust, trust.Until(sent, rest))", "clock.Max(h.trust, trust.Until(sent, rest+5*time.Second))",
		[]string{"TestOurHolderKnowsItsLossBeforeJavaHasTheLock"},
	},
	{
		"java: a holder that has renewed knows its loss before Java has the lock", "redisson round.renewed",
		"trust.Until(sent, rest)", "trust.Until(sent, 5*time.Second+rest)",
		[]string{"TestOurHolderKnowsItsLossBeforeJavaHasTheLock"},
	},
	{
		"java: who asks while Java holds waits", "redisson/lua/acquire.lua",
		"if held and not again then", "if false then",
		[]string{"TestNestedHoldsExcludeTheOtherUntilTheLast/server"},
	},
	{
		"java: tokens of both grow", "redisson/lua/acquire.lua",
		"or redis.call('INCR', KEYS[2]))", "or (redis.call('GET', KEYS[2]) or 0))",
		[]string{"TestGoAndJavaExcludeEachOther/fenced"},
	},
}
