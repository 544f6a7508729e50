package mutation

// severalRules are those of sessions that hold together, and of how they end.
var severalRules = []Rule{
	{
		"a grant that comes after the end of its call is given back", ". waiting.inTime",
		"if ending.Passed(w.ctx) == nil {", "if true {",
		[]string{"TestACallThatHasEndedNeverHolds", "TestAWaitThatIsOverNeverHolds"},
	},
	{
		"an attempt waits until what earlier calls have left is removed", ". waiting.ask",
		"c.leaving.Await(w.ctx, w.keeper.hash, trust.Attempt(a.Terms.TTL)/2)", "",
		[]string{"TestAnAttemptFindsFreeWhatAnEndedCallHasLeft"},
	},
	{
		"who looks waits until what earlier calls have left is removed", ". askAgain",
		"l.c.leaving.Await(ctx, l.hash, time.Second)", "",
		[]string{"TestAnAttemptFindsFreeWhatAnEndedCallHasLeft"},
	},
	{
		"an attempt does not wait for remains without end", ". waiting.ask",
		"trust.Attempt(a.Terms.TTL)/2)", "time.Hour)",
		[]string{"TestAnAttemptWaitsForRemainsNoLongerThanHalfItsTime"},
	},
	{
		"a Multi of semaphores is of one owner", ". Multi.hasOthers",
		"!slices.Equal(first.owners(), owners)", "false",
		[]string{"TestAMultiOfSemaphoresIsOfOneOwner", "TestAMultiOfSemaphoresLetsInNoMoreThanThereArePermits"},
	},
	{
		"a Multi says first what is wrong with the call", ". Multi.lock",
		"err == nil && m.hasOthers", "(err == nil || true) && m.hasOthers",
		[]string{"TestAMultiOfSemaphoresIsOfOneOwner"},
	},
	{
		"a Multi whose context ends first says so", ". Multi.try",
		">= wait && ending.Passed(ctx) == nil {", ">= wait {",
		[]string{"TestAMultiWhoseLastLockComesTooLateHoldsNone"},
	},
	{
		"a Multi asks once though its wait is over", ". Multi.try",
		"case l == m.locks[0]:", "case false:",
		[]string{"TestAMultiWhoseWaitEndsBeforeItAsksIsNoContention"},
	},
	{
		"what a Multi has lost is left at once", ". MultiHold.giveBack",
		"errors.Is(hold.judge(), ErrLost)", "false",
		[]string{"TestAMultiThatFailsOwesNoUnlock"},
	},
	{
		"a Multi that comes too late is given back", ". Multi.try",
		"if wait > 0 && time.Since(began) >= wait && ending.Passed(ctx) == nil {", "if false {",
		[]string{"TestAMultiWhoseLastLockComesTooLateHoldsNone"},
	},
	{
		"nobody joins a grant that is over", "lua/shared_sessions.lua",
		"grant and grant.deadline > now and", "grant and",
		[]string{"TestDeadGrantOfManySessionsIsJoinedByNobodyWhileOthersRead"},
	},
	{
		"nobody joins a grant that others have followed", "lua/shared_sessions.lua",
		" and grant.low >= state.since and", " and",
		[]string{"TestDeadGrantIsJoinedByNobodyThoughALongLeaseOfItWasUnlocked"},
	},
	{
		"the first to hold among the dead ends their grants", "lua/shared_sessions.lua",
		"state.since, state.used = math.max(state.since, s.low), 0", "state.used = 0",
		[]string{"TestDeadGrantIsJoinedByNobodyThoughALongLeaseOfItWasUnlocked"},
	},
	{
		"a statement for one of several overrides older ones only", "lua/hold.lua",
		"if op > session.op and", "if",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a statement for writing leaves one of several that reads", "lua/hold.lua",
		"if op > session.op and (", "if op > session.op and (true or ",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a statement without a lease is made when redis is out of memory", "lua/hold.lua",
		"    if type(stored) == 'number' then\n      return 1\n    end\n", "    return type(stored) == 'number' and 1 or stored\n",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory"},
	},
	{
		"no deadline of one of several moves earlier", "lua/shared_sessions.lua",
		"math.max(s.deadline, deadline)", "deadline",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"who is joined keeps its last statement", "lua/shared_sessions.lua",
		"  save(s, grant, true)\n  state.used = s.weight\n", "  s.op = 1\n  save(s, grant, true)\n  state.used = s.weight\n",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"who is joined keeps its counts", "lua/shared_sessions.lua",
		"  save(s, grant, true)\n  state.used = s.weight\n", "  s.writes, s.reads = math.min(s.writes, 1), math.min(s.reads, 1)\n  save(s, grant, true)\n  state.used = s.weight\n",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"who is joined keeps its deadline", "lua/shared_sessions.lua",
		"  save(s, grant, true)\n  state.used = s.weight\n", "  s.deadline = now + s.ttl\n  save(s, grant, true)\n  state.used = s.weight\n",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"who is joined goes on excluding others", "lua/shared_sessions.lua",
		"exclude(s.writes > 0 and s.owner or nil)", "exclude(nil)",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"who is joined holds alone no more", "lua/shared_sessions.lua",
		"  redis.call('HDEL', KEYS[1], 'holder', 'until', 'o:' .. s.owner)\n  state.alone = nil\nend", "  state.alone = nil\nend",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"who joins writing excludes others", "lua/shared_sessions.lua",
		"    exclude(grant.owner)\n", "    state.exclusive = grant.owner\n",
		[]string{"TestExclusiveGrantOfManySessionsEndsWithItsLongestLease"},
	},
	{
		"who joins writing is counted", "lua/shared_sessions.lua",
		"    grant.writing = grant.writing + 1\n", "",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a session that joins is counted", "lua/shared_sessions.lua",
		"grant.sessions = grant.sessions + 1", "local _ = begins",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"one that states no write is counted so", "lua/shared_sessions.lua",
		" - (wrote and 1 or 0)", "",
		[]string{"TestWriterOfSeveralThatOnlyReadsExcludesNobody"},
	},
	{
		"a writing session that ends is counted", "lua/shared_sessions.lua",
		"grant.writing - (s.writes > 0 and 1 or 0)", "grant.writing",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a session of several counts in its own grant only", "lua/shared_sessions.lua",
		"if grant and grant.low == low then", "if grant then",
		[]string{"TestForceEndsAGrantOfManySessionsAtOnce", "TestExclusiveGrantOfManySessionsEndsWithItsLongestLease"},
	},
	{
		"one of several that ends is in the way no more", "lua/shared_sessions.lua",
		"  redis.call('ZREM', KEYS[2], 'r' .. s.nonce)\n", "",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"several sessions block a writer", "lua/shared_sessions.lua",
		"  local _, deadline = longest()\n  return deadline", "  return nil",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"an exclusive grant ends with its longest lease", "lua/shared_sessions.lua",
		"if state.exclusive and not longest() then", "if false then",
		[]string{"TestDeadWriterOfManySessionsIsInNobodysWay"},
	},
	{
		"the last of several leaves the lock as it was", "lua/shared_sessions.lua",
		"if state.several and (not first[2] or tonumber(first[2]) >= -far) then", "if false then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a forced end is of one token of several", "lua/force.lua",
		"elseif grant and grant.low == token then", "elseif grant then",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a forced end is at once", "lua/force.lua",
		"  redis.call('HDEL', KEYS[1], 'g:' .. owner)\n  weigh(", "  weigh(",
		[]string{"TestForceEndsAGrantOfManySessionsAtOnce"},
	},
	{
		"a forced end excludes nobody any more", "lua/force.lua",
		"  end_exclusion(owner, { writing = 0 })\n", "",
		[]string{"TestForceEndsAGrantOfManySessionsAtOnce"},
	},
	{
		"a forced end goes on where it stopped", "lua/force.lua",
		"(removed == 1 or from ~= '0')", "removed == 1",
		[]string{"TestForceEndsAGrantOfManySessionsAtOnce"},
	},
	{
		"a forced end says where it stopped", "lua/force.lua",
		"return last or 0", "return 0",
		[]string{"TestForceEndsAGrantOfManySessionsAtOnce"},
	},
	{
		"a forced end passes over nobody of one instant", "lua/force.lua",
		"    page = redis.call('ZRANGE', KEYS[2], first, last, 'BYSCORE', 'REV', 'WITHSCORES')\n", "",
		[]string{"TestForceEndsAGrantOfManySessionsAtOnce"},
	},
	{
		"a forced end begins with the shortest lease", "lua/force.lua",
		`  local first = '(' .. (from == '0' and text(-far) or from)
  local size = math.max(budget, 1)
  local page = redis.call('ZRANGE', KEYS[2], first, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, size, 'WITHSCORES')
  local last = page[2 * size]
  if last then
    -- Sessions with one deadline go together, because the next call begins behind that deadline.
    page = redis.call('ZRANGE', KEYS[2], first, last, 'BYSCORE', 'REV', 'WITHSCORES')`,
		`  local first = from == '0' and '-inf' or '(' .. from
  local size = math.max(budget, 1)
  local page = redis.call('ZRANGE', KEYS[2], first, '(' .. text(-far), 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
  local last = page[2 * size]
  if last then
    -- Sessions with one deadline go together, because the next call begins behind that deadline.
    page = redis.call('ZRANGE', KEYS[2], first, last, 'BYSCORE', 'WITHSCORES')`,
		[]string{"TestForceUnlockHolderEndsABranchThatIsRenewedBetweenTwoPages"},
	},
	{
		"a forced end goes on behind many that are dead", "lua/force.lua",
		"math.max(budget, 1)", "budget",
		[]string{"TestForceEndsAGrantOfManySessionsAtOnce"},
	},
	{
		"a forced end leaves other owners' sessions", "lua/force.lua",
		"session and session.low == token and (session.owner == owner or string.sub(session.owner, 1, #owner + 2) == owner .. '~.') then", "session then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a forced end leaves the owner's next grant", "lua/force.lua",
		"session and session.low == token and (", "session and (",
		[]string{"TestForceEndsAGrantOfManySessionsAtOnce"},
	},
	{
		"a local re-entry needs a third of its lease", "internal/room Session.NestLocally",
		"!s.fresh(t.TTL, at.Now)", "at.Now.Until(s.trustEnds(t.TTL, clock.Instant{})) < t.TTL/4",
		[]string{"TestLocalHoldsAreLostWithTheirSession"},
	},
}
