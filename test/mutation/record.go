package mutation

// recordRules are those of how a lock is written down: what says that anything is
// unusual, what is left out, and how one session becomes one of several.
var recordRules = []Rule{
	{
		"crowd says that several hold", "lua/shared_settle.lua",
		"(state.several or state.ended or", "(state.ended or",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"crowd says that nonces have ended", "lua/shared_settle.lua",
		"(state.several or state.ended or", "(state.several or",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"crowd says that somebody is to be told", "lua/shared_settle.lua",
		" or state.looks ~= '' or state.conds or state.branches) and ' +'", " or state.conds or state.branches) and ' +'",
		[]string{"TestAnOwnersManyClientsAreToldInSteps"},
	},
	{
		"who died is forgotten though the queue has expired", "lua/shared_settle.lua",
		"      sweep_expired()", "      state.queued = 0",
		[]string{"TestWaitersThatDiedDuringALongHoldLeaveNothing"},
	},
	{
		"a crowd that died is forgotten to the last", "lua/shared_conditions.lua",
		"      if budget <= 0 then\n        return", "      if budget <= 0 then\n        state.queued = 0\n        return",
		[]string{"TestACrowdThatDiedDuringALongHoldIsForgottenStepByStep"},
	},
	{
		"a crowd that died is forgotten in steps", "lua/shared_conditions.lua",
		"        budget = budget - 1\n        drop_gone", "        drop_gone",
		[]string{"TestACrowdThatDiedDuringALongHoldIsForgottenStepByStep"},
	},
	{
		"who comes after the hash was lost is counted", "lua/shared_queue.lua",
		"  if not waiter then\n    recount()\n  end\n", "",
		[]string{"TestWhoQueuesAfterTheHashWasLostIsServed"},
	},
	{
		"crowd says how many wait", "lua/shared_settle.lua",
		"(state.queued > 0 or more ~= '')", "(more ~= '')",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"crowd goes when nothing is unusual", "lua/shared_settle.lua",
		"redis.call('HDEL', KEYS[1], 'crowd', 'unseen')", "local _ = crowd",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"crowd counts who queues behind one session", "lua/acquire.lua",
		"'crowd', text(queued + 1))", "'crowd', text(queued))",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"crowd counts who is left behind the heir", "lua/release.lua",
		"'token', last, queued > 0 and 'crowd' or 'token', queued > 0 and text(queued) or last)", "'token', last)",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"crowd goes with the last that waits", "lua/release.lua",
		"gone[#gone + 1], gone[#gone + 2] = 'crowd', 'unseen'", "gone[#gone + 1] = 'unseen'",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"the usual grant is of the kind in use", "lua/acquire.lua",
		" and (not fields[4] or fields[4] == ARGV[1]) then", " then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"the usual grant comes in time", "lua/acquire.lua",
		"if left > 0 and left <= 60000000 then", "if true then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"the usual grant goes on from the counter", "lua/acquire.lua",
		"    elseif token - fields[3] > 0 then", "    else",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"the usual grant has a block of its own", "lua/acquire.lua",
		"        block = token - fields[3]\n", "        block = ARGV[7]\n",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a grant after the counter was lost has one token", "lua/acquire.lua",
		"      return { token, 1 }\n", "      return token\n",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a grant asks for a lifetime first", "lua/acquire.lua",
		"      redis.call('PEXPIRE', KEYS[1], ARGV[8])\n      redis.call('HSET', KEYS[1], 'holder', ARGV[4], ARGV[5], ARGV[6] .. block", "      redis.call('HSET', KEYS[1], 'holder', ARGV[4], ARGV[5], ARGV[6] .. block",
		[]string{"TestEveryStatementWorksWhenRedisIsOutOfMemory"},
	},
	{
		"who queues as usual comes in time", "lua/acquire.lua",
		"\n  and not_after > micros and not_after <= micros + 60000000 then", " then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"who queues as usual has nothing in the queue", "lua/acquire.lua",
		"and not own[1] then", "then",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"who queues as usual has no name", "lua/acquire.lua",
		"and not is_named(owner) and not own", "and not own",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"who queues as usual finds a lease that runs", "lua/acquire.lua",
		"if ends > now and", "if",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"who queues as usual has no ended nonce", "lua/acquire.lua",
		"tonumber(fields[2] or 0)\n", "tonumber(string.match(fields[2] or '0', '^%d+'))\n",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"the usual release of one alone sees who waits", "lua/release.lua",
		"if alone and not fields[2] then", "if alone then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a usual hand-off is to one that writes", "lua/release.lua",
		"usual = writes == '1' and not is_named", "usual = not is_named",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a usual hand-off is to one without a name", "lua/release.lua",
		" and not is_named(owner) and tonumber", " and tonumber",
		[]string{"TestEveryStatementLeavesALockAsIsPromised"},
	},
	{
		"a usual hand-off is heard", "lua/release.lua",
		"and heard[2] > 0 then", "then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a usual hand-off gives the rest of the entry's lease", "lua/release.lua",
		"'until', deadline,", "'until', now + 30000,",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a usual hand-off keeps what several have", "lua/release.lua",
		"tonumber(fields[2])\n", "tonumber(string.match(fields[2] or '0', '^%d+'))\n",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a deadline that is left out is the token and the lease", "lua/shared_record.lua",
		"math.floor(token / 1000) + ttl", "now + ttl",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a usual hold knows the deadline that is left out", "lua/hold.lua",
		"math.floor(record[4] / 1000) + ttl", "now + ttl",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a usual release takes the deadline with it", "lua/release.lua",
		"'HDEL', KEYS[1], 'holder', 'until', ARGV[2])", "'HDEL', KEYS[1], 'holder', ARGV[2])",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a holder takes its deadline with it", "lua/shared_sessions.lua",
		"'holder', 'until', 'o:'", "'holder', 'o:'",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a usual statement is of the session that holds", "lua/hold.lua",
		"if record[1] ~= identity then", "if not record[1] then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a statement for writing leaves a session that reads", "lua/hold.lua",
		" or wrote == '0' and writes ~= '0'", "",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a statement for one of several names the queue", "lua/hold.lua",
		" and string.find(crowd, '+', 1, true) and -5 or 0", " and 0 or 0",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"what gives up holds waits for no replica", "internal/room Session.statement",
		"if said.Lease > 0 {", "if true {",
		[]string{"TestReplicasAreNotNeededToUnlock"},
	},
	{
		"counts are stored under a prefix", "internal/wire Encoder.identity",
		`whole[len(whole)-len("o:")-len(owner):]`, "whole[len(whole)-len(owner):]",
		[]string{"TestF11OwnersDoNotCollideWithFields"},
	},
	{
		"tokens of a free lock come from the past", "lua/acquire.lua",
		"  local left = ARGV[2] - token\n", "  token = string.format('%d', token + ARGV[7])\n  local left = ARGV[2] - token\n",
		[]string{"TestF10TokensOfLocalHoldsComeFromThePast"},
	},
}
