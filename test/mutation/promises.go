package mutation

// promiseRules are of sentences in the documentation that no other table holds.
var promiseRules = []Rule{
	{
		"a signal whose waiter's client ends is passed on", "lua/shared_conditions.lua",
		"    drop_waiter(nonce, waiter)\n    owe(nonce)\n", "    drop_waiter(nonce, waiter)\n",
		[]string{"TestSignalOfAWaiterWhoseClientClosesGoesToTheNext"},
	},
	{
		"scripts say the channel of the client's prefix", "locker.go",
		"c.wire = wire.NewEncoder(c.id, c.inboxPrefix,", `c.wire = wire.NewEncoder(c.id, key.Inbox("relock", ""),`,
		[]string{"TestWaitersUnderAnyPrefixAreWokenByMessage"},
	},
	{
		"Detach asks the clock", "handover.go",
		"	h.hold.Session.Check(&at)\n", "",
		[]string{"TestDetachRightAfterASuspensionIsLost"},
	},
	{
		"a panic of a hook is not swallowed", "keeper.go",
		"	defer runAll(todo[1:])\n", "	defer runAll(todo[1:])\n	defer func() { _ = recover() }()\n",
		[]string{"TestPanicOfAHookWithoutACallerEndsTheProcess"},
	},
	{
		"a newcomer waits though the queue was not read to its end", "lua/acquire.lua",
		"  if state.queued == 0 and fits(request) then", "  if (state.queued == 0 or budget <= 0) and fits(request) then",
		[]string{"TestTryLockDoesNotOvertakeALiveWaiterBehindManyDead"},
	},
	{
		"labels of all scripts are waited for at once", "internal/label/label.go",
		"	for i, result := range b.cfg.Transport.DoAll(ctx, readWithin, calls) {",
		"	results := []transport.Result{}\n	for _, call := range calls {\n		results = append(results, b.cfg.Transport.DoAll(ctx, readWithin, []transport.Call{call})...)\n	}\n	for i, result := range results {",
		[]string{"TestLabelsHoldUpInfoForASecondInAll"},
	},
	{
		"WaitFor waits no longer than it was told", "condwait.go",
		"context.WithTimeout(ctx, *limit)", "context.WithTimeout(ctx, (*limit+100*time.Millisecond-1)/(100*time.Millisecond)*(100*time.Millisecond))",
		[]string{"TestWaitForEndsAtItsInstant"},
	},
	{
		"a token's digits are of the whole name", "internal/wire/token.go",
		"[]byte(owner))", "[]byte(owner[:min(16, len(owner))]))",
		[]string{"TestEveryByteOfAnOwnerIsInItsTokens"},
	},
	{
		"Do of redisson releases on a panic", "redisson/lock.go",
		"	defer func() { err = errors.Join(err, h.Release()) }()\n	return fn(h.Context(ctx))", "	err = fn(h.Context(ctx))\n	return errors.Join(err, h.Release())",
		[]string{"TestDoReleasesTheLockHoweverItsFunctionEnds"},
	},
	{
		"ForceUnlock of redisson is of one side", "redisson/lua/force.lua",
		"if (redis.call('HGET', KEYS[1], 'mode') or '') ~= ARGV[4] then", "if false then",
		[]string{"TestForceUnlockOfOneSideLeavesTheOther"},
	},
	{
		"Info of redisson tells the lease of readers and writers", "redisson/info.go",
		"TTL: ttl}", "TTL: ttl}\n		if l.kind.rw() {\n			h.TTL = 0\n		}",
		[]string{"TestInfoTellsWhatIsLeftOfEveryLease"},
	},
}
