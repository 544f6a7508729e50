package mutation

// unseenRules are those of servers that do not see who is subscribed.
var unseenRules = []Rule{
	{
		"a client that is not seen vouches for its subscription", "sharded.go",
		"case wire.Sight(c.sight.Load()) != wire.Seen && e.Up():", "case false:",
		[]string{"TestFairLockIsGrantedInOrderBehindAProxy", "TestF14WaitersThatNobodyCountsHoldInTheirOrder", "TestSignalsWakeInOrderWhereNobodyIsCounted"},
	},
	{
		"a client that was told that it is not seen goes on vouching", "pubsub_wait.go",
		"c.sight.Store(int32(m.Sight))", "c.sight.Store(int32(wire.Seen))",
		[]string{"TestF14WaitersThatNobodyCountsHoldInTheirOrder"},
	},
	{
		"an echo that says nothing of it is no sight", "pubsub_wait.go",
		"if m.Sight != wire.Unknown {\n\t\t\tc.sight.Store(int32(m.Sight))", "if true {\n\t\t\tc.sight.Store(int32(max(m.Sight, wire.Seen)))",
		[]string{"TestFairLockIsGrantedInOrderBehindAProxy"},
	},
	{
		"a client vouches anew for each connection", "pubsub_wait.go",
		"c.sight.Store(int32(wire.Unknown))", "",
		[]string{"TestF14WaitersThatNobodyCountsHoldSoonAndOneAtATime"},
	},
	{
		"where a subscriber is not seen, everybody counts as one that hears", "lua/shared_queue.lua",
		"tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0) <= now\n", "true\n",
		[]string{"TestFairLockIsGrantedInOrderBehindAProxy", "TestF14WaitersThatNobodyCountsHoldInTheirOrder", "TestScriptsDoWhatTheModelSays"},
	},
	{
		"what is noted of subscribers ends", "lua/shared_queue.lua",
		"tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0) <= now\n", "tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0) == 0\n",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"what is noted of subscribers is not cut short", "lua/shared_queue.lua",
		"'unseen', math.max(until_ms, tonumber(redis.call('HGET', KEYS[1], 'unseen') or 0))", "'unseen', until_ms",
		[]string{"TestWhoWaitsForLongIsTakenForOneThatHearsAfterWhoWaitsBriefly"},
	},
	{
		"who waits on a condition vouches for its subscription", "lua/await.lua",
		"if ARGV[8] then", "if false then",
		[]string{"TestSignalsWakeInOrderWhereNobodyIsCounted"},
	},
}
