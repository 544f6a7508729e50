package mutation

// rwlockRules are those of read/write locks, of the downgrade, and of closing.
var rwlockRules = []Rule{
	{
		"readers do not pass a queued writer", "lua/acquire.lua",
		"if state.queued == 0 and fits(request) then", "if (request.mode == 'r' or state.queued == 0) and fits(request) then",
		[]string{"TestTCK_W20_ReadTryLockDoesNotBarge"},
	},
	{
		"readers block a writer", "lua/shared_sessions.lua",
		"if alone and alone.deadline > now then\n    return alone.deadline", "if alone and alone.writes > 0 and alone.deadline > now then\n    return alone.deadline",
		[]string{"TestTCK_W12_WriteTryLockWhenReadLocked"},
	},
	{
		"the queue is served from its head", "lua/shared_queue.lua",
		"('ZRANGEBYSCORE', KEYS[2], '(0', '+inf', 'LIMIT', 0, 2)", "('ZREVRANGEBYSCORE', KEYS[2], '+inf', '(0', 'LIMIT', 0, 2)",
		[]string{"TestTCK_W19_ReaderWriterReaderFairFifo"},
	},
	{
		"a downgrade settles", "lua/downgrade.lua",
		"finish(unsettled())", "finish(false)",
		[]string{"TestDowngradeLetsReadersJoinAndNoWriterBetween"},
	},
	{
		"a reader ends by its own deadline", "lua/shared_sessions.lua",
		"  if deadline > now then\n    return first[1]", "  if deadline > 0 then\n    return first[1]",
		[]string{"TestDeadGrantIsJoinedByNobodyThoughALongLeaseOfItWasUnlocked", "TestScriptsDoWhatTheModelSays"},
	},
	{
		"an owner that reads cannot write", "lua/acquire.lua",
		"if grant and grant.mode == 'r' and request.mode == 'w' then", "if false then",
		[]string{"TestUpgradeFailsAtOnce"},
	},
	{
		"a reader is told when the writer before it ends", "lua/acquire.lua",
		"if request.mode ~= 'w' and not writer() then", "if false then",
		[]string{"TestReadersPassADeadWriterWhenItsEntryEnds"},
	},
	{
		"a request without the queue's key is not for several sessions", "lua/acquire.lua",
		"if not KEYS[2] and state.crowd then", "if false then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"the release of the last write is a downgrade", "lua/shared_sessions.lua",
		"if state.exclusive == owner and grant.writing == 0 then", "if false then",
		[]string{"TestWriteUnlockInOneProcessDowngradesTheOwnersOther"},
	},
	{
		"what one call leaves over is settled", ". waiting.sendOnce",
		"if w.said.More {", "if false {",
		[]string{"TestReadersBeyondOneCallAreLetInAtOnce"},
	},
	{
		"the handle decides who has a hold", ". Hold.downgradeHere",
		"return errHoldTaken", "return nil",
		[]string{"TestEveryCallOnAHandleTakesAHoldOfItsOwn"},
	},
	{
		"read holds of a handle are of one owner", "internal/room Hold.Downgrade",
		"bar != NoBar", "false && bar != NoBar",
		[]string{"TestDowngradeBesideAnotherOwnersReadHoldIsRefused"},
	},
	{
		"Close leaves the queue", ". Client.Close",
		"c.tracker.Await(grace, false)", "_ = grace",
		[]string{"TestCloseLeavesTheQueue"},
	},
	{
		"a second Close cuts nothing short", ". Client.Close",
		"<-c.ended", "c.tracker.Close(); c.tracker.Cancel()",
		[]string{"TestTwoCallsOfCloseLeaveTheQueue"},
	},
}
