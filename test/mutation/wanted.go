package mutation

// wantedRules are those of Hold.Wanted: who is told that others wait, when, and how often.
var wantedRules = []Rule{
	{
		"the first waiter has the holder told", "lua/acquire.lua",
		"      tell(its_client, 'wanted ' .. its_nonce)\n", "",
		[]string{"TestHolderIsWantedAsSoonAsAnotherOwnerWaits", "TestHolderIsWantedWithinARoundTrip"},
	},
	{
		"the first waiter that is not the usual one has the holders told", "lua/shared_queue.lua",
		"    tell_holders(waiter)\n", "",
		[]string{"TestHolderIsWantedAsSoonAsAnotherOwnerWaits", "TestReadersAreWantedOnlyByAWriter", "TestASignalledWaiterWantsTheLock"},
	},
	{
		"only the first waiter has the holder told", "lua/acquire.lua",
		"    if queued == 0 then\n      tell(", "    if true then\n      tell(",
		[]string{"TestSixtyFourWaitersMakeOneMessage"},
	},
	{
		"a ticket is told nothing", "lua/shared_inbox.lua",
		"if client == '-' then", "if false then",
		[]string{"TestNobodyTellsATicket"},
	},
	{
		"a branch does not want its ancestor", "lua/shared_queue.lua",
		" and string.sub(waiter.owner, 1, #s.owner + 2) ~= s.owner .. '~.'", "",
		[]string{"TestABranchWantsItsSiblingAndNotItsAncestor"},
	},
	{
		"a renewal says that others wait", "lua/hold.lua",
		"  if waiting > 0 then\n", "  if false then\n",
		[]string{"TestALostMessageIsMadeUpForByTheNextRenewal", "TestALostMessageIsMadeUpForByARenewalOfMany"},
	},
	{
		"a grant says that others still wait", "lua/shared_settle.lua",
		"(wanted and ' +' or '')", "''",
		[]string{"TestTheNextHolderIsWantedAtOnceIfOthersStillWait"},
	},
	{
		"the usual grant says that others still wait", "lua/release.lua",
		"and ' +' or ''", "and '' or ''",
		[]string{"TestTheNextHolderIsWantedAtOnceIfOthersStillWait"},
	},
	{
		"an answer says that others wait", "internal/room Request.apply",
		"a.Session.handed = said.Remaining < a.Terms.TTL; a.noteWanted(said.Wanted, at)", "a.Session.handed = said.Remaining < a.Terms.TTL",
		[]string{"TestReadersAreWantedOnlyByAWriter", "TestAResumedHoldIsWantedIfSomebodyWaits"},
	},
	{
		"a call of the same client wants the lock", "internal/room Room.Want",
		"if s.hasClaim && s.flow() == flow {", "if false {",
		[]string{"TestHolderIsWantedByAnotherCallOfItsOwnClient"},
	},
	{
		"a hold is told once", "internal/room Acquisition.markWanted",
		"if !h.Wanted {", "{",
		[]string{"TestWantedIsClosedOnce"},
	},
	{
		"a later hold is wanted while others wait", "internal/room Session.Hold",
		"s.token, at.Now, s.isWanted()", "s.token, at.Now, false",
		[]string{"TestANestedHoldIsWantedWhileSomebodyWaits", "TestTheNextHolderIsWantedAtOnceIfOthersStillWait"},
	},
	{
		"a renewal says that nobody waits any more", "internal/room Acquisition.noteWanted",
		"a.wanted = wanted || a.wantedByMessage", "a.wanted = a.wanted || wanted",
		[]string{"TestANestedHoldIsWantedWhileSomebodyWaits"},
	},
	{
		"those who have had the lock do not wait for it", "internal/room Acquisition.waitedFor",
		"waiting -= len(run.served) + run.waiting()", "",
		[]string{"TestALateWaiterWantsTheLastOfARun"},
	},
	{
		"the last of a run is wanted by those behind it", "internal/room Acquisition.waitedFor",
		"a.noteWanted(waiting > 0, at)", "a.noteWanted(waiting > 0 && a.Session.run == nil, at)",
		[]string{"TestAWaiterBehindThoseOfTheHoldersClientWantsWithTheNextRenewal"},
	},
	{
		"those who have had the lock leave the queue after a renewal", "internal/room run.retire",
		"at.do(Effect{Do: Release, Of: a})", "_ = a",
		[]string{"TestALateWaiterWantsTheLastOfARun"},
	},
	{
		"only the latest grant says whether others wait", "internal/room Entry.Granted",
		"a.wantedByMessage = false", "",
		[]string{"TestAGrantThatIsNotBelievedDoesNotSayThatOthersWait"},
	},
	{
		"a hold that was woken is wanted by those behind it", "internal/room Acquisition.noteWanted",
		"a.markWanted(at)", "",
		[]string{"TestAWokenHoldIsWantedByTheCallsOfItsOwnClientBehindIt"},
	},
	{
		"a hold whose wait was refused is wanted by who has come since", "internal/room Entry.Rejoin",
		"s.markWanted(at)", "",
		[]string{"TestAHoldWhoseWaitIsRefusedIsWantedByWhoCameMeanwhile"},
	},
	{
		"a holder listens on its sharded channel", ". Hold.whenWanted",
		"x.stopListening, leave = leave, nil", "",
		[]string{"TestAShardedHolderListensFromItsFirstWantedToItsEnd"},
	},
	{
		"a holder that has ended listens no longer", ". Hold.cancelAll",
		"if stopListening != nil { stopListening() }", "_ = stopListening",
		[]string{"TestAShardedHolderListensFromItsFirstWantedToItsEnd"},
	},
	{
		"one attempt wants nothing", ". waiting.attempt",
		"err = w.request(a, room.PlaceNone, asked)", "err = w.request(a, room.PlaceNew, asked)",
		[]string{"TestTryLockWithoutAWaitWantsNothing"},
	},
	{
		"a command has time to set its trap", "cmd/relock child.watch",
		"ready = time.After(unready)", "ready = time.After(0)",
		[]string{"TestCommandThatBeginsWhileOthersWaitIsNotSignalledAtOnce"},
	},
	{
		"a command that is stopped stays stopped while others wait", "cmd/relock child.watch",
		"_ = syscall.Kill(-c.pid, syscall.Signal(c.yield))", "c.signal(syscall.Signal(c.yield))",
		[]string{"TestASignalToYieldLeavesAStoppedCommandStopped"},
	},
	{
		"at most 128 holders get a message", "lua/shared_queue.lua",
		"'LIMIT', 0, most_wanted)", "'LIMIT', 0, 1000)",
		[]string{"TestAtMost128HoldersGetAMessage"},
	},
}
