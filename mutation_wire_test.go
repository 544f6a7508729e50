package relock_test

// wireRules are those of the scripts that the tests of every statement in every state
// look for: what keys live for, what comes first in a script, and which records agree.
var wireRules = []mutation{
	{
		"a first grant asks for a lifetime first", "lua/acquire.lua",
		"  local covered = redis.call('PEXPIRE', KEYS[1], ttl + keep, 'GT') == 1\n",
		"  redis.call('HSET', KEYS[1], 'kind', kind)\n  local covered = redis.call('PEXPIRE', KEYS[1], ttl + keep, 'GT') == 1\n",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory", "TestEveryStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"who queues asks for a lifetime first", "lua/acquire.lua",
		"  local ticket, deadline = math.max(micros,",
		"  redis.call('HSET', KEYS[1], 'kind', kind)\n  local ticket, deadline = math.max(micros,",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory"},
	},
	{
		"renew begins with PEXPIRE", "lua/renew.lua",
		"    local kept = redis.pcall('PEXPIRE', KEYS[i], ttl + keep, 'GT')\n", "    local kept = 0\n",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory", "TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"the usual hold begins with PEXPIRE", "lua/hold.lua",
		"    redis.call('PEXPIRE', KEYS[1], ttl + keep, 'GT')\n    if later", "    if later",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory", "TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"downgrade begins with PEXPIRE", "lua/downgrade.lua",
		"touch(ttl, keep)", "state.keep = keep",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory", "TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"force begins with PEXPIRE", "lua/force.lua",
		"touch(state.owner and state.deadline - now or 0, keep)", "state.keep = keep",
		[]string{"TestEveryStatementLeavesNoKeyWithoutALifetime"},
	},
	{
		"acquire looks whose the key is before it touches it", "lua/acquire.lua",
		"local usual = not", "redis.call('PEXPIRE', KEYS[1], tonumber(ARGV[12]) + keep, 'GT')\nlocal usual = not",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"a queue that is another's is found before anything is written", "lua/shared_queue.lua",
		"if (shared or state.queued > 0) and KEYS[2] then", "if false then",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"a queue of readers that is another's is found before anything is written", "lua/release.lua",
		"check_queue(state.shared)", "check_queue()",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"a queue of readers that is another's is found before a grant is forced to end", "lua/force.lua",
		"check_queue(state.shared)", "check_queue()",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"the lifetime of a queue that is another's is left", "lua/shared_queue.lua",
		"  local added = redis.call('ZADD', KEYS[2], ...)\n",
		"  redis.call('PEXPIRE', KEYS[2], lease, 'GT')\n  local added = redis.call('ZADD', KEYS[2], ...)\n",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"who cannot read goes on writing", "lua/shared_readers.lua",
		"  grant.mode = 'r'\n", "  grant.mode = 'r'\n  redis.call('HDEL', KEYS[1], 'holder')\n",
		[]string{"TestEveryStatementLeavesKeysOfAnotherTypeAlone"},
	},
	{
		"no hash's TTL moves earlier by a usual hold", "lua/hold.lua",
		"ttl + keep, 'GT')", "ttl + keep)",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"no hash's TTL moves earlier by who queues", "lua/acquire.lua",
		"  redis.call('PEXPIRE', KEYS[1], ttl + keep, 'GT')\n  local covered", "  redis.call('PEXPIRE', KEYS[1], ttl + keep)\n  local covered",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"no queue's TTL moves earlier by who queues", "lua/acquire.lua",
		"PEXPIRE', KEYS[2], ttl + keep, 'GT')", "PEXPIRE', KEYS[2], ttl + keep)",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"no hash's TTL moves earlier", "lua/shared_state.lua",
		"ttl + keep, 'GT') == 0", "ttl + keep) == 0",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"no hash's TTL moves earlier by renewals of many", "lua/renew.lua",
		"ttl + keep, 'GT')", "ttl + keep)",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"the keep time begins when a grant is forced to end", "lua/force.lua",
		"if state.queued == 0 and not (state.owner", "if false and not (state.owner",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a renewal of many overrides older ones only", "lua/renew.lua",
		"tonumber(op) > tonumber(last)", "tonumber(op) >= tonumber(last)",
		[]string{"TestEveryStatementThatArrivesAgainChangesNothing"},
	},
	{
		"a downgrade overrides older statements only", "lua/downgrade.lua",
		"if op > session.op then", "if true then",
		[]string{"TestEveryStatementThatArrivesAgainChangesNothing"},
	},
	{
		"a ForceUnlock tells every reader", "lua/force.lua",
		"    tell(client, 'lost ' .. nonce)", "    if grant.mode == 'w' then\n      tell(client, 'lost ' .. nonce)\n    end",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a reader that is dropped is dropped everywhere", "lua/shared_readers.lua",
		"    redis.call('HDEL', KEYS[1], field)\n", "",
		[]string{"TestEveryStatementLeavesALockAsIsPromised", "TestEveryStatementIsForgottenWithThoseWhoMadeIt"},
	},
	{
		"an ended nonce is kept while copies of it count", "lua/shared_state.lua",
		"if due > now then", "if due > now + 8000 then",
		[]string{"TestEveryStatementLeavesEndedRequestsEnded"},
	},
	{
		"the usual release passes nothing to the dead", "lua/release.lua",
		"local heard = to and tonumber(ends) > now and", "local heard = to and",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"the usual release finds no hold that is dead", "lua/release.lua",
		" .. owner and tonumber(deadline) > now\n", " .. owner\n",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a released nonce is not the usual case while a copy may arrive", "lua/release.lua",
		"and until_ms == 0 and", "and",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"the usual release tells of a shorter lease", "lua/release.lua",
		" and not (told and tonumber(ends) < tonumber(told))", "",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"who is let in leaves the queue", "lua/acquire.lua",
		"if request.waiter and KEYS[2] then", "if false then",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a block begins after the last token", "lua/shared_read.lua",
		"math.max(last, high - size) + 1", "math.max(last, high - size)",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"newcomers stay behind those whom a call left over", "lua/acquire.lua",
		"if usual and not fields[4] and (not fields[3] or fields[3] == '0') then", "if usual and not fields[4] then",
		[]string{"TestEveryStatementLeftOverKeepsNewcomersBehind"},
	},
	{
		"who reads waits while somebody writes", "lua/acquire.lua",
		"not (request.mode == 'r' and state.owner or", "not (",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
}
