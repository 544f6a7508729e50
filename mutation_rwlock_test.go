package relock_test

// rwlockRules are those of read/write locks, of the downgrade, and of closing.
var rwlockRules = []mutation{
	{
		"readers do not pass a queued writer", "lua/acquire.lua",
		"if state.queued == 0 and not (", "if (request.mode == 'r' or state.queued == 0) and not (",
		[]string{"TestTCK_W20_ReadTryLockDoesNotBarge"},
	},
	{
		"readers block a writer", "lua/shared_readers.lua",
		"return state.shared and readers_until() or nil", "return nil",
		[]string{"TestTCK_W12_WriteTryLockWhenReadLocked"},
	},
	{
		"the queue is served from its head", "lua/shared_queue.lua",
		"('ZRANGEBYSCORE', KEYS[2], '(0', '+inf', 'LIMIT', 0, 2)", "('ZREVRANGEBYSCORE', KEYS[2], '+inf', '(0', 'LIMIT', 0, 2)",
		[]string{"TestTCK_W19_ReaderWriterReaderFairFifo"},
	},
	{
		"a downgrade settles", "lua/downgrade.lua",
		"if state.queued > 0 then", "if false then",
		[]string{"TestDowngradeLetsReadersJoinAndNoWriterBetween"},
	},
	{
		"a reader ends by its own deadline", "lua/shared_readers.lua",
		"if deadline > now then", "if deadline > 0 then",
		[]string{"TestNameOfDeadReadersCanBeAnotherKind"},
	},
	{
		"an owner that reads cannot write", "lua/acquire.lua",
		"if grant.mode == 'r' and request.mode == 'w' then", "if false then",
		[]string{"TestUpgradeFailsAtOnce"},
	},
	{
		"a reader is told when the writer before it ends", "lua/acquire.lua",
		"if request.mode == 'r' and not state.owner then", "if false then",
		[]string{"TestReadersPassADeadWriterWhenItsEntryEnds"},
	},
	{
		"the one-key form is not for shared locks", "lua/acquire.lua",
		"(state.queued > 0 or state.shared or kind == 'rw' or kind == 'fair rw')", "state.queued > 0",
		[]string{"TestOneKeyFormSeesReaders"},
	},
	{
		"the release of the last write is a downgrade", "lua/release.lua",
		"elseif not any_writes(grant) then", "elseif false then",
		[]string{"TestWriteUnlockInOneProcessDowngradesTheOwnersOther"},
	},
	{
		"what one call leaves over is settled", "pubsub_wait.go",
		"if reply.more {", "if false {",
		[]string{"TestReadersBeyondOneCallAreLetInAtOnce"},
	},
	{
		"the handle decides who has a hold", "rwlock.go",
		"if !rw.w.take(h) {", "if rw.w.take(h); false {",
		[]string{"TestEveryCallOnAHandleTakesAHoldOfItsOwn"},
	},
	{
		"read holds of a handle are of one owner", "rwlock.go",
		"err = rw.r.adopt(h)", "rw.r.put(h)",
		[]string{"TestDowngradeBesideAnotherOwnersReadHoldIsRefused"},
	},
	{
		"Close leaves the queue", "locker.go",
		"if !again {", "if false && again {",
		[]string{"TestCloseLeavesTheQueue"},
	},
}
