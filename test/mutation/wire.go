package mutation

// wireRules are those of the scripts that the tests of every statement in every state
// look for: what keys live for, what comes first in a script, and which records agree.
var wireRules = []Rule{
	{
		"a lock in another layout is refused", "lua/shared_state.lua",
		"string.sub(fields[4], -#layout) ~= layout", "false",
		[]string{"TestANameInUseInAnotherLayoutIsRefusedByEveryCall", "TestWhoHeldOrWaitedBeforeAnotherLayoutChangesNothing"},
	},
	{
		"a lock that is waited for in another layout is refused", "lua/shared_state.lua",
		"(fields[1] or fields[2])", "fields[1]",
		[]string{"TestANameInUseInAnotherLayoutIsRefusedByEveryCall"},
	},
	{
		"a name that is free in another layout is taken", "lua/shared_state.lua",
		"(fields[1] or fields[2])", "true",
		[]string{"TestANameThatIsFreeInAnotherLayoutIsTaken", "TestBuildsOfTwoLayoutsNeverHoldOneNameTogether"},
	},
	{
		"the layout is part of the stored kind", "internal/wire kindArgs",
		"KindPlain: KindPlain + layoutMark", "KindPlain: KindPlain",
		[]string{"TestANameThatIsFreeInAnotherLayoutIsTaken"},
	},
	{
		"the refusal of another layout is an ErrKind", ". requestError.Unwrap",
		"return []error{ErrKind, e.err}", "return []error{e.err}",
		[]string{"TestANameInUseInAnotherLayoutIsRefusedByEveryCall", "TestBuildsOfTwoLayoutsNeverHoldOneNameTogether"},
	},
	{
		"a queue left in another layout is told as such", ". waiting.refused",
		"layout == wire.Layout", "layout != \"\"",
		[]string{"TestAQueueLeftInAnotherLayoutIsRefusedToo"},
	},
	{
		"a token has digits of its owner", "internal/wire Token",
		"int64(digits.Sum32()%owners)", "0",
		[]string{"TestTokensOfTwoPrimariesDifferThoughTheirInstantsMeet"},
	},
	{
		"tokens of neighbouring instants differ as floats", "internal/wire unit",
		"unit, owners = 1000, 488", "unit, owners = 1000, 999",
		[]string{"TestTokensOfNeighbouringInstantsDifferAsFloats"},
	},
	{
		"redis tells of the token that the hold has", "internal/wire DecodeInfo",
		"Token(low, h.Owner)", "low",
		[]string{"TestTokenIsTheInstantOfTheGrantInNanoseconds", "TestWhoResumesHoldsUnderTheSameToken"},
	},
	{
		"redis knows a token by its instant", "internal/wire Encoder.Force",
		"token = Instant(token)", "_ = Instant(token)",
		[]string{"TestForceUnlockEndsTheGrantAndTellsItsHolders"},
	},
	{
		"a primary raises its counter to an instant", ". Hold.raise",
		"instant := wire.Instant(token)", "instant := token",
		[]string{"TestQuorumTokensGrowThoughClocksDiffer"},
	},
	{
		"a first grant asks for a lifetime first", "lua/acquire.lua",
		"redis.call('PEXPIRE', KEYS[1], ARGV[8])\n      redis.call('HSET', KEYS[1], 'holder', ARGV[4], ARGV[5], ARGV[6] .. '1'", "redis.call('HSET', KEYS[1], 'holder', ARGV[4], ARGV[5], ARGV[6] .. '1'",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory", "TestEveryStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"who queues asks for a lifetime first", "lua/acquire.lua",
		"    redis.call('PEXPIRE', KEYS[1], ARGV[8], 'GT')\n    redis.call('ZADD'", "    redis.call('ZADD'",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory"},
	},
	{
		"the usual hold begins with PEXPIRE", "lua/hold.lua",
		"stored = redis.pcall('PEXPIRE', KEYS[i], ARGV[2], 'GT')", "stored = 0",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory", "TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"downgrade begins with PEXPIRE", "lua/downgrade.lua",
		"touch(ttl, tonumber(ARGV[5]))", "state.keep = tonumber(ARGV[5])",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory", "TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"force begins with PEXPIRE", "lua/force.lua",
		"touch((blocked() or now) - now, keep)", "state.keep = keep",
		[]string{"TestEveryStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"acquire looks whose the key is before it touches it", "lua/acquire.lua",
		"if not (fields.err or", "redis.call('PEXPIRE', KEYS[1], ARGV[8], 'GT')\nif not (fields.err or",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"a queue that is another's is found before anything is written", "lua/shared_queue.lua",
		"if KEYS[2] and state.crowd then\n  front", "if false then\n  front",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"the lifetime of a queue that is another's is left", "lua/acquire.lua",
		"    local last =", "    redis.call('PEXPIRE', KEYS[2], ARGV[8], 'GT')\n    local last =",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"no hash's TTL moves earlier by a usual hold", "lua/hold.lua",
		"ARGV[2], 'GT')", "ARGV[2])",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"no hash's TTL moves earlier by who queues", "lua/acquire.lua",
		"    redis.call('PEXPIRE', KEYS[1], ARGV[8], 'GT')\n    redis.call('ZADD'", "    redis.call('PEXPIRE', KEYS[1], ARGV[8])\n    redis.call('ZADD'",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"no queue's TTL moves earlier where the case is not the usual one", "lua/shared_sessions.lua",
		"lease, 'GT')", "lease)",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"no hash's TTL moves earlier", "lua/shared_state.lua",
		"life(ttl, keep), 'GT') == 0", "life(ttl, keep)) == 0",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"TokenKeep begins when a grant is forced to end", "lua/force.lua",
		"finish(unsettled(), 0)", "finish(unsettled())",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a statement that comes again changes nothing", "lua/hold.lua",
		"op + 0 <= last + 0", "op + 0 < last + 0",
		[]string{"TestEveryStatementThatArrivesAgainChangesNothing"},
	},
	{
		"a downgrade overrides older statements only", "lua/downgrade.lua",
		"if op > session.op then", "if true then",
		[]string{"TestEveryStatementThatArrivesAgainChangesNothing"},
	},
	{
		"a ForceUnlock tells every reader", "lua/force.lua",
		"      tell(session.client, 'lost ' .. nonce)\n", "",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"one of several that is dropped is dropped everywhere", "lua/shared_sessions.lua",
		"  redis.call('HDEL', KEYS[1], 's:' .. s.nonce)\n", "",
		[]string{"TestEveryStatementLeavesALockAsIsPromised", "TestEveryStatementIsForgottenWithThoseWhoMadeIt"},
	},
	{
		"an ended nonce is kept while copies of it count", "lua/shared_state.lua",
		"if due > now then", "if due > now + 8000 then",
		[]string{"TestEveryStatementLeavesEndedRequestsEnded"},
	},
	{
		"the usual release passes nothing to the dead", "lua/release.lua",
		" and tonumber(deadline) > now and not (told", " and not (told",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"the usual release ends its own hold only", "lua/release.lua",
		"local alone = fields[1] == ARGV[1] and", "local alone = fields[1] and",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a released nonce is not the usual case while a copy may arrive", "lua/release.lua",
		" and ARGV[3] == '0'\n", "\n",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"the usual release tells of a shorter lease", "lua/release.lua",
		" and not (told and tonumber(deadline) < tonumber(told))", "",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"who is let in leaves the queue", "lua/acquire.lua",
		"if request.waiter and KEYS[2] then", "if false then",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a block begins after the last token", "lua/shared_clock.lua",
		"math.max(last, high - size) + 1", "math.max(last, high - size)",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"newcomers stay behind those whom a call left over", "lua/acquire.lua",
		"fields[1] or fields[2] or ARGV[10]", "fields[1] or ARGV[10]",
		[]string{"TestEveryStatementLeftOverKeepsNewcomersBehind"},
	},
	{
		"who reads waits while somebody writes", "lua/shared_settle.lua",
		"request.mode == 'r' and writer or blocked", "request.mode == 'r' and function() end or blocked",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
}
