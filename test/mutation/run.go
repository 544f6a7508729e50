package mutation

// runRules are those of a fair lock that is passed on within a process.
var runRules = []Rule{
	{
		"run: a grant of a fair lock names who is next and of the same client", "lua/release.lua",
		"entries[4] == fair and high > low and following and run_of(client, entries[2]) or ''", "''",
		[]string{"TestFairPassesOnToThoseOfItsProcessWhoAreNext"},
	},
	{
		"run: the general way names them too", "lua/shared_settle.lua",
		"packed and run_of(waiter.client, packed) or ''", "''",
		[]string{"TestAFairLockThatIsFreedByForcePassesOnToThoseOfItsProcessWhoAreNext"},
	},
	{
		"run: another client's call is passed by by nobody", "lua/shared_run.lua",
		"of ~= client or ", "",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"run: who has had the lock leaves the queue with the release", "internal/room Session.Served",
		"return s.run.served", "return nil",
		[]string{"TestFairPassesOnToThoseOfItsProcessWhoAreNext", "TestACallThatHasLeftARunIsPassedBy"},
	},
	{
		"run: who has had the lock is not granted it by the release", "lua/release.lua",
		"not skip[nonce] and nonce or nil", "nonce",
		[]string{"TestFairPassesOnToThoseOfItsProcessWhoAreNext", "TestScriptsDoWhatTheModelSays"},
	},
	{
		"run: a late release ends what the next was granted since", "lua/release.lua",
		"  if later then\n    drop(later)\n  elseif", "  if",
		[]string{"TestALateReleaseEndsWhatItsRunWasGrantedSince"},
	},
	{
		"run: who was served leaves where the client closes", "internal/room Session.Close",
		"s.dismiss(at)", "",
		[]string{"TestARunWhoseClientClosesLeavesNobodyInTheQueue"},
	},
	{
		"run: who was served leaves where the hold is handed over", "internal/room Hold.Detach",
		"s.dismiss(at)", "",
		[]string{"TestARunThatIsCutShortLeavesNobodyBehind"},
	},
	{
		"run: who was served leaves where the holder waits on a condition", "internal/room Session.BeginWait",
		"s.dismiss(at)", "",
		[]string{"TestARunGoesOnWhereItsHolderWaitsOnACondition"},
	},
	{
		"run: it is passed on to calls on the same terms", "internal/room Room.passToRun",
		"|| *a.Terms != *s.Terms", "",
		[]string{"TestARunEndsWhereTheTermsChange"},
	},
	{
		"run: it is not passed on to a call in doubt", "internal/room Room.passToRun",
		"|| a.doubt != 0", "",
		[]string{"TestACallInDoubtIsGivenTheLockByRedis"},
	},
	{
		"run: who has left is passed by", "internal/room Room.passToRun",
		"case a.Over:", "",
		[]string{"TestACallThatHasLeftARunIsPassedBy"},
	},
	{
		"run: what a call was given that left goes to the next", "internal/room Acquisition.GiveUp",
		"e.Given = nil; given.GiveUp(at)", "_ = given",
		[]string{"TestACallThatLeavesAsItIsGivenTheLockGivesItToTheNext"},
	},
	{
		"run: a Quorum's primaries pass nothing on", ". oneToken",
		"t.OneToken = true", "",
		[]string{"TestQuorumPassesNothingOnWithinAProcess"},
	},
	{
		"run: ForceUnlock gives the lock to nobody who has had it", "lua/force.lua",
		"alone.block > 1", "false",
		[]string{"TestForceUnlockInARunGivesTheLockToTheNextProcess"},
	},
	{
		"run: the terms of an Election have grants of their own", ". Client.NewElection",
		", oneToken}", "}",
		[]string{"TestTermsOfOneProcessAreToldApart"},
	},
	{
		"condition: a wait gives up the hold that it was called by", ". awaiting.beginWait",
		"w.by == nil || !w.by.hold.Released", "true",
		[]string{"TestAWaitGivesUpNoOtherCallsHold"},
	},
}
