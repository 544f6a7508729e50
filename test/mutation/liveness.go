package mutation

// Liveness are those of docs/protocol.md without which a lock is idle, a
// place is lost, or a call takes too long (F12 to F17 of docs/faults.md), each taken
// out in one place.
var Liveness = []Rule{
	{
		"an acquire can leave out the queue's key", "internal/room Request.Unanswered",
		"q.HashOnly = hashOnly", "q.HashOnly = false",
		[]string{"TestF12FreeLockIsAcquiredWhileItsSlotMigrates", "TestF12WaiterTakesTheLockThatIsReleasedWhileItsSlotMigrates"},
	},
	{
		"a release can leave out the queue's key", ". releasing.try",
		"if transport.TryAgain(err) && len(r.call.Keys) > 1 {", "if false {",
		[]string{"TestF12HolderReleasesWhileItsSlotMigrates"},
	},
	{
		"a renewal declares one key", ". acquisition.statementCall",
		"if st.Several {", "if true {",
		[]string{"TestF12HolderRenewsAndReentersWhileItsSlotMigrates"},
	},
	{
		"the queue's key is left out for once", "internal/room Request.Answered",
		"e.HashOnly = e.HashOnly && said.Code != QueueKey", "_ = e",
		[]string{"TestF12WaiterQueuesOnceTheSlotHasMigrated"},
	},
	{
		"a release without the queue's key answers for an empty queue only", "lua/release.lua",
		"if not KEYS[2] and state.crowd then", "if false then",
		[]string{"TestF12QueueIsServedWhileItsSlotMigrates"},
	},
	{
		"named owners ask redis first", "internal/room Room.Want",
		"flow := w.flow()", "flow := map[bool]Flow{false: w.flow()}[r.claimed]",
		[]string{"TestF13aNamedOwnerDoesNotStandBehindAnonymousWaitersOfItsProcess"},
	},
	{
		"a grant wakes the owner's other requests", "lua/shared_settle.lua",
		"tell(waiter.client, 'look ' .. nonce)", "",
		[]string{"TestF13bGrantToAnOwnerServesAllItsRequests"},
	},
	{
		"a place goes to the next in line", "internal/room Acquisition.GiveUp",
		"case e.queued && a.hasClaim:", "case false:",
		[]string{"TestF13dCancelledFrontHandsItsPlaceOn"},
	},
	{
		"a place goes to the next in line", "internal/room Acquisition.leaveRoom",
		"place = a.Entry.Place", "place = PlaceNew",
		[]string{"TestF13dPlaceIsKeptByANextInLineOfOtherTerms", "TestF13dProcessOfShortTriesGetsToTheHead"},
	},
	{
		"the head hears of an earlier end", "lua/shared_settle.lua",
		"if deadline and deadline < waiter.told then", "if false then",
		[]string{"TestF14WaiterIsToldOfAHolderWithAShorterLease"},
	},
	{
		"force settles", "lua/force.lua",
		"finish(unsettled()", "finish(false",
		[]string{"TestF14WaiterIsToldOfAShorterLeaseAfterAForceUnlock"},
	},
	{
		"a release that leaves the lock held settles", "lua/release.lua",
		"finish(unsettled() or", "finish(unsettled() and not writer() or",
		[]string{"TestF14WaiterIsToldWhenTheLongerSessionOfAnOwnerEnds"},
	},
	{
		"a waiter looks when the holder's lease is over", "internal/room Entry.schedule",
		"if e.checkHolder.Until(due) > 0 {", "if false {",
		[]string{"TestF14WaiterLooksWhenADeadHoldersLeaseIsOver"},
	},
	{
		"a refusal has no words of its own", "lua/permit.lua",
		"message and not passes[code]", "message and string.find(message, 'NOPERM', 1, true)",
		[]string{"TestCommandThatTheServerLacksIsNamedAtTheFirstCall"},
	},
	{
		"what passes is no refusal", "lua/permit.lua",
		"passes = { WRONGTYPE = true, OOM = true, MISCONF = true, READONLY = true, NOREPLICAS = true }", "passes = {}",
		[]string{"TestFirstCallToAServerThatDoesNotWriteIsNoMatterOfPermissions"},
	},
	{
		"a server is asked for its cluster where nobody hears", "lua/where.lua",
		"if not subscribed.err and subscribed[2] > 0 then", "if not subscribed.err and type(redis.pcall('CLUSTER', 'MYID')) == 'table' and subscribed[2] > 0 then",
		[]string{"TestServerThatIsNotClusteredIsAskedForNothingItLacks"},
	},
	{
		"a waiter that is not counted is told to look", "lua/shared_settle.lua",
		"tell(waiter.client, 'look ' .. nonce)\n    return", "return",
		[]string{"TestF14WaitersThatNobodyCountsHoldSoonAndOneAtATime"},
	},
	{
		"releases are sent again to a new server", ". Client.linked",
		"if !first {", "if first && !first {",
		[]string{"TestF16ReleaseThatAFailoverLostIsSentAgain"},
	},
	{
		"a client that remembers asks who serves", "internal/replay Journal.Add",
		"if len(j.released) == 0 {", "if false {",
		[]string{"TestF16ReleaseIsSentAgainByAClientThatHearsTheOldServer", "TestReleasedLockDoesNotComeBackAfterAFailover"},
	},
	{
		"a server without the inbox is another one", "internal/replay Journal.answeredWhere",
		"moved := where == wire.WhereElsewhere &&", "moved := false &&",
		[]string{"TestF16ReleaseIsSentAgainByAClientThatHearsTheOldServer", "TestReleasedLockDoesNotComeBackAfterAFailover"},
	},
	{
		"an inbox that stays elsewhere is told once", "internal/replay Journal.answeredWhere",
		"where == wire.WhereElsewhere && !j.elsewhere", "where == wire.WhereElsewhere",
		[]string{"TestF16InboxThatIsElsewhereByDesignIsLeftThere"},
	},
	{
		"a lock of another server is released there", "internal/replay Journal.sendAgain",
		"n.Epoch == epoch && n.Server == server", "n.Epoch == epoch",
		[]string{"TestReleasedLockDoesNotComeBackAfterAFailover"},
	},
	{
		"a repeat that fails is repeated", "internal/replay Journal.sendBatch",
		"ok = false; continue", "",
		[]string{"TestF16ReleaseIsSentAgainUntilItIsAnswered"},
	},
	{
		"a repeat names the time of late copies", "internal/replay Release.Call",
		"Owner: r.Owner}, r.Doubt, AnyLease", "Owner: r.Owner}, 0, AnyLease",
		[]string{"TestF16ReleaseSentAgainRefusesALateCopyOfItsAcquire"},
	},
	{
		"who remembers nothing asks nothing", "internal/replay Journal.round",
		"if len(j.released) == 0 {", "if false {",
		[]string{"TestJournalAsksAndRemembersForALeaseOnly"},
	},
	{
		"a release that is sent again in vain is told", "internal/replay Journal.sendBatch",
		"if err != nil { j.Log", "if err != nil && more { j.Log",
		[]string{"TestJournalRepeatsWhatGoesUnanswered"},
	},
	{
		"an inbox that is elsewhere is told", "internal/replay Journal.answeredWhere",
		`j.Log.Warn("the inbox is not on the server that runs the scripts, connecting again")`, "",
		[]string{"TestJournalHasAnInboxThatIsElsewhereConnectAgainOnce"},
	},
	{
		"a message of a loss ends no wait", "internal/room Acquisition.Revoke",
		"a.Entry.revoked = why", "a.Entry.Fail(why, at)",
		[]string{"TestMessagesOfALossLeaveWhoWaitsInTheQueue"},
	},
	{
		"a message that an ancestor has ended is heeded", ". Client.deliver",
		"a.Revoke(errAncestor, &at)", "",
		[]string{"TestABranchIsNotGrantedWhatItsAncestorHasEndedMeanwhile"},
	},
	{
		"the hook hears of what is renewed together", ". watchdog.renewed",
		"hooks = append(hooks, newestHook(w.c.cfg.hooks.Renewed, st, nil))", "",
		[]string{"TestTheHookHearsOfEachLockThatIsRenewedTogether"},
	},
	{
		"a message that is not understood is told", ". Client.deliver",
		`c.cfg.log.Warn("message not understood", slog.Any("err", err))`, "",
		[]string{"TestAMessageThatIsNotUnderstoodIsLogged"},
	},
	{
		"a server that refuses a command of many is sent none again", ". watchdog.renewTogether",
		"w.c.oneKeyEach.Store(true)", "",
		[]string{"TestWhoRefusesToRenewManyIsAskedForEach"},
	},
	{
		"fewer than eight are renewed one by one", ". round.send",
		"len(all) < minTogether", "len(all) < 2",
		[]string{"TestEightAndMoreAreRenewedTogether"},
	},
	{
		"eight are renewed together", ". round.send",
		"len(all) < minTogether", "len(all) <= minTogether",
		[]string{"TestEightAndMoreAreRenewedTogether"},
	},
	{
		"servers are asked every two seconds and no more often", "internal/replay Journal.round",
		"next := now.Add(watchEvery)", "next := now.Add(watchEvery / 4)",
		[]string{"TestF16ClientAsksWhileItRemembers"},
	},
	{
		"a nested lease lasts as long as it was asked for", "internal/room Acquisition.LongestLease",
		"return max(a.Terms.TTL, time.Duration(a.Session.longest)*time.Millisecond)", "return a.Terms.TTL",
		[]string{"TestF16ReleaseOfANestedLongerLeaseIsSentAgain", "TestF16ReleaseIsTriedUntilTheLongestLeaseEnds"},
	},
	{
		"an answer older than the release releases nothing", ". Client.disown",
		"if !asked.IsZero() && !asked.Reached(n.Answered) {", "if false {",
		[]string{"TestAnswerOlderThanTheReleaseReleasesNothingAgain"},
	},
	{
		"what was released meanwhile is not renewed", "internal/room Session.Renew",
		"if s.Over || s.Away() {", "if false {",
		[]string{"TestRenewalOfWhatIsReleasedMeanwhileIsNotSent"},
	},
	{
		"a ghost is released", "internal/room Request.apply",
		"if said.Ghost != \"\" {", "if false {",
		[]string{"TestF16HolderThatCameBackIsReleasedWhenItsProcessSeesIt"},
	},
	{
		"releases are sent again for a lease only", "internal/replay Journal.repeats",
		"!j.Busy(n.Nonce) && !now.Reached(n.Until)", "!j.Busy(n.Nonce) && !now.IsZero()",
		[]string{"TestF16ReleaseIsNotSentAgainAfterItsLease"},
	},
	{
		"a call drops a bounded number of entries", "lua/shared_state.lua",
		"local budget = 250", "local budget = 200000",
		[]string{"TestF17DeadEntriesAheadGoABoundedNumberPerCall", "TestDeadEntriesStopTheServerForNoLongerThanAStep"},
	},
	{
		"who goes on for a heartbeat sweeps", "lua/release.lua",
		"if ended.owner == '' and KEYS[2] then", "if false then",
		[]string{"TestF17DeadEntriesBehindTheHeadGoThoughTheHolderStays"},
	},
	{
		"heartbeats sweep", "lua/acquire.lua",
		"and KEYS[2] then\n  sweep()", "and KEYS[2] then",
		[]string{"TestF17DeadEntriesBehindTheHeadGoThoughTheHolderStays"},
	},
	{
		"hold begins with PEXPIRE", "lua/hold.lua",
		"touch(ttl, ARGV[2] - ttl)", "state.keep = ARGV[2] - ttl",
		[]string{"TestF17LocksWorkOnWhenRedisIsOutOfMemory"},
	},
	{
		"acquire begins with PEXPIRE", "lua/acquire.lua",
		"if touch(longest_ttl, keep) then", "state.keep = keep\nif false then",
		[]string{"TestF17LocksWorkOnWhenRedisIsOutOfMemory"},
	},
	{
		"release begins with PEXPIRE", "lua/release.lua",
		"local fresh = touch(lease, keep)\n", "state.keep = keep\nlocal fresh = false\n",
		[]string{"TestF17NonceIsEndedWhenRedisIsOutOfMemory"},
	},
	{
		"a sharded channel is of the lock's slot", "internal/key ShardInbox",
		`return Inbox(prefix, "{"+tag+"}"+client)`, `return Inbox(prefix, "{"+tag+"x}"+client)`,
		[]string{"TestShardedWaiterIsWokenByMessage"},
	},
	{
		"a sharded channel that was taken away is subscribed anew", "internal/inbox sharedConn.unsubscribed",
		"last := c.remove(f); f.end(errUnsubscribed)", "last := false",
		[]string{"TestShardedGrantThatWasMissedIsFoundAfterTheNewSubscription"},
	},
	{
		"a sharded channel is up only where its server serves it", "internal/inbox channelFeed.Receive",
		"!acknowledged || f.s.cfg.Serves == nil", "true || !acknowledged",
		[]string{"TestShardIsNotUpOnAServerThatServesItNoMore"},
	},
	{
		"a sharded channel that a server does not serve casts no doubt on the connection", "internal/inbox channelFeed.Receive",
		"f.end(err)", "_ = err",
		[]string{"TestShardIsNotUpOnAServerThatServesItNoMore"},
	},
	{
		"a sharded channel without an echo gets another connection", "internal/listener Listeners.Check",
		"l.Suspect()", "_ = 0",
		[]string{"TestShardedWaiterHearsAgainAfter"},
	},
	{
		"a sharded waiter is subscribed", ". waiting.ask, waiting.awaitMessages",
		"w.listen()", "_ = 0",
		[]string{"TestShardedWaiterIsWokenByMessage"},
	},
	{
		"who stands in line is subscribed", ". waiting.sleep",
		"w.listen()", "_ = 0",
		[]string{"TestShardedChannelIsSubscribedWhileSomebodyWaits"},
	},
	{
		"who hears on a sharded channel is asked there", "lua/shared_queue.lua",
		"'SHARDNUMSUB'", "'NUMSUB'",
		[]string{"TestShardedWaiterIsWokenByMessage"},
	},
	{
		"a handle counts the holds that are lost on it", "internal/room Hold.markLost",
		"h.Handle.more().lost++", "h.Handle.more().lost += 0",
		[]string{"TestALossIsNoticedAmongTheHoldsOfAHandle"},
	},
	{
		"what a room has judged ends with the first trust", "internal/room Room.Judge",
		"!r.nextEnd.IsZero() && !at.Now.Reached(r.nextEnd)", "!r.nextEnd.IsZero()",
		[]string{"TestALossIsNoticedAmongTheHoldsOfAHandle"},
	},
	{
		"a command passes the client's hooks where it has any", "internal/transport hooks.detect",
		"h.absent.Store(strings.HasSuffix(frame.Function, sender))", "h.absent.Store(strings.HasSuffix(sender, sender))",
		[]string{"TestWhoIsAloneRunsTheCommandItself"},
	},
	{
		"no command is made for hooks that are not there", "internal/transport hooks.detect",
		"h.absent.Store(strings.HasSuffix(frame.Function, sender))", "_ = strings.HasSuffix(frame.Function, sender)",
		[]string{"TestALockAndUnlockAllocateLittle"},
	},
	{
		"a hand-off reads no more of the queue than it needs", "lua/release.lua",
		"'LIMIT', 0, 2 + #served)", "'LIMIT', 0, 100000)",
		[]string{"TestScriptsCostTheSameAmongTenThousandWaiters"},
	},
	{
		"a SCAN that is not answered has the connections asked", "internal/transport Transport.Scan",
		"t.probe(at.Addr, at.rdb, pattern)", "_ = 0",
		[]string{"TestF18LocksAreListedThoughConnectionsAreDead"},
	},
	{
		"silence on one connection is asked of all", "internal/transport Transport.concluded",
		"t.probe(name, at, c.Keys[0])", "_ = 0",
		[]string{"TestF18DeadConnectionsAreUsedUpAtOnce", "TestF18WaiterWithDeadConnectionsIsServed"},
	},
	{
		"a named owner's calls ask as one", "internal/room Room.Want",
		`case w.Owner == "" && !r.Plain,`, `case w.Owner != "" || !r.Plain,`,
		[]string{"TestAnOwnersCallsOfAProcessWaitAndHoldAsOne"},
	},
	{
		"who stands behind an owner's call is counted at its grant", "internal/room Room.admit",
		"s.reserve(); r.give(line", "r.give(line",
		[]string{"TestAnOwnersCallsAreServedInTheTurnOfTheFirst"},
	},
	{
		"a look is a step", "lua/shared_settle.lua",
		"    budget = budget - 1\n    from = after", "    from = after",
		[]string{"TestAnOwnersManyClientsAreToldInSteps"},
	},
	{
		"looks that are left over are kept", "lua/shared_settle.lua",
		"state.looks = string.sub(state.looks, from)", "state.looks = ''",
		[]string{"TestAnOwnersManyClientsAreToldInSteps"},
	},
	{
		"an ended nonce is kept for a minute at most", "lua/release.lua",
		"math.min(math.abs(tonumber(ARGV[3])), now + 60000)", "math.abs(tonumber(ARGV[3]))",
		[]string{"TestEndedNoncesAreForgottenWhileTheLockIsUsed"},
	},
	{
		"use forgets ended nonces", "lua/shared_settle.lua",
		"if state.due > 0 and state.due <= now then", "if false then",
		[]string{"TestEndedNoncesAreForgottenWhileTheLockIsUsed"},
	},
	{
		"readers are read in pages", "lua/info.lua",
		"if left > size then", "if false then",
		[]string{"TestManyReadersAreReadInPages"},
	},
}
