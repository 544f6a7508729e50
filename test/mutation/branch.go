package mutation

// branchRules are those of child owners: what a branch of a flow may hold beside whom, and for how long.
var branchRules = []Rule{
	{
		"branches of one flow exclude each other", "lua/shared_settle.lua",
		"local joins = by.owner == request.owner or by.below == 0", "local joins = true",
		[]string{"TestBranchesOfOneFlowExcludeEachOther", "TestBranchUsesThePermitsOfItsAncestor", "TestBranchesOfAWorkflowNeverMeet", "TestExplorationFindsNothing"},
	},
	{
		"a branch that reads waits for one that writes", "lua/shared_settle.lua",
		"request.mode == 'r' and by.writers == 0 or", "request.mode == 'r' or",
		[]string{"TestBranchReadsAndWritesByTheRuleOfItsFlow"},
	},
	{
		"a branch enters what an ancestor holds", "lua/shared_record.lua",
		"local at = is_named(owner) and string.find(owner, '~.', 1, true)", "local at = nil",
		[]string{"TestBranchEntersWhatItsAncestorsHold"},
	},
	{
		"a branch is refused to write where an ancestor reads", "lua/acquire.lua",
		"local refused = not KEYS[2] or by.mode == 'r' and request.mode == 'w'", "local refused = not KEYS[2]",
		[]string{"TestBranchDoesNotWriteWhereAnAncestorReads"},
	},
	{
		"a branch waits behind those that came before", "lua/acquire.lua",
		"not behind and fits(request)", "fits(request)",
		[]string{"TestBranchReadsAndWritesByTheRuleOfItsFlow"},
	},
	{
		"a branch that leaves lets the next one in", "lua/shared_sessions.lua",
		"parts[1] and state.branches and lineage(owner) or {}", "{}",
		[]string{"TestBranchesWaitInOrderOfArrivalAheadOfStrangers", "TestScriptsDoWhatTheModelSays", "TestABranchThatWaitsHearsThatItsAncestorOnlyReads"},
	},
	{
		"a branch that waits enters once its ancestor holds", "lua/shared_sessions.lua",
		"state.stirred[s.owner] = state.branches and true or nil", "",
		[]string{"TestBranchThatWaitsEntersOnceItsAncestorHolds"},
	},
	{
		"a branch has nothing when the hold that it entered has ended", "lua/shared_sessions.lua",
		"parts[i].sessions <= 0 or s.writes > 0", "s.writes > 0",
		[]string{"TestBranchDoesNotWriteWhereAnAncestorReads"},
	},
	{
		"a branch that writes has nothing when its ancestor only reads", "lua/shared_sessions.lua",
		" or s.writes > 0 and parts[i].writing <= 0", "",
		[]string{"TestDowngradeEndsTheBranchesThatWrite"},
	},
	{
		"what an ended branch had is in the way until its client knows", "lua/shared_settle.lua",
		"      tell(session.client, 'ended ' .. session.nonce)\n", "      tell(session.client, 'ended ' .. session.nonce)\n      drop(session)\n",
		[]string{"TestBranchLosesItsHoldWithAnAncestorThatIsCutOff"},
	},
	{
		"a branch is told that the hold it entered has ended", "lua/shared_settle.lua",
		"      tell(session.client, 'ended ' .. session.nonce)\n", "",
		[]string{"TestBranchLosesItsHoldWhenAnAncestorUnlocks"},
	},
	{
		"a branch has the token of the hold that it entered", "internal/wire Token",
		"room.Root(owner)", "room.Root(owner)+owner",
		[]string{"TestBranchEntersWhatItsAncestorsHold"},
	},
	{
		"a branch of an owner that has lost the lock is told so", "internal/room Room.Bars",
		"Lineage(w.Owner)", "[]string{w.Owner}",
		[]string{"TestBranchOfAnOwnerThatHasLostTheLockIsToldSo"},
	},
	{
		"nobody is a branch by accident", ". checkOwner",
		"!areBranches(below)", "!areBranches(below) && false",
		[]string{"TestChildOwnerIsMadeOfAnOwnerOnly"},
	},
	{
		"the condition of a lock that a branch has entered gives nothing up", "lua/await.lua",
		"grant_at(session.owner, session.low)", "shared_grant('')",
		[]string{"TestConditionRefusesABranchThatHasEntered"},
	},
	{
		"branches that one script cannot let in come with the next", "lua/shared_state.lua",
		"state.stirred[owner] = true", "",
		[]string{"TestManyBranchesThatReadAreLetInTogether"},
	},
	{
		"which branches are left to the next script is noted", "lua/shared_sessions.lua",
		"elseif branches ~= state.branches then", "elseif false then",
		[]string{"TestManyBranchesThatReadAreLetInTogether"},
	},
	{
		"a ticket of a branch ends with its ancestor", "lua/shared_settle.lua",
		"if session.client == '-' then", "if false then",
		[]string{"TestATicketOfABranchEndsWithItsAncestor", "TestScriptsDoWhatTheModelSays"},
	},
	{
		"the sessions inside a hold are counted", "lua/shared_sessions.lua",
		"math.max(part.below + sessions, 0)", "math.max(part.below + sessions, 0) + 1",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"an owner waits for what is left of its ended hold", "lua/shared_settle.lua",
		"if request.named and remains(request.owner) then", "if false then",
		[]string{"TestAnOwnerWaitsForWhatIsLeftOfItsEndedHold", "TestScriptsDoWhatTheModelSays"},
	},
	{
		"who is to hear of an ended hold is noted for the next script", "lua/shared_sessions.lua",
		"state.ousts and '2' or '1'", "'1'",
		[]string{"TestABranchIsToldThoughAStatementFindsItsAncestorDead", "TestATicketOfABranchGoesThoughAStatementFindsItsAncestorDead"},
	},
	{
		"a branch behind one that leaves the queue is let in", "lua/shared_queue.lua",
		"      state.stirred[names[i]] = state.branches and true or nil -- those behind it may be let in\n", "",
		[]string{"TestABranchBehindOneThatLeavesTheQueueIsLetIn"},
	},
	{
		"a branch whose write has ended is refused to write again", "lua/shared_sessions.lua",
		"s.writes > 0 and not is_orphan(s) and 'w'", "s.writes > 0 and 'w'",
		[]string{"TestABranchWhoseWriteHasEndedIsRefusedToWriteAgain"},
	},
	{
		"a branch that is signalled enters at once", "lua/signal.lua",
		"finish(branches_changed())", "finish()",
		[]string{"TestABranchThatItsAncestorSignalsEntersAtOnce"},
	},
	{
		"a branch that hears of a grant too late says that it leaves", "internal/room Entry.Fail",
		"at.do(Effect{Do: Release, Of: e.Acquisition})", "at.do(Effect{Do: Forget, Of: e.Acquisition})",
		[]string{"TestABranchThatHearsOfItsGrantTooLateSaysThatItLeaves"},
	},
	{
		"a branch locks by no handle of its flow", "internal/room Hold.Put",
		"h.Handle.confusable(h)", "false",
		[]string{"TestUnlockOfAnOwnerEndsNoHoldOfItsBranch", "TestLossOfABranchIsNotToldToItsFlow"},
	},
	{
		"several locks are tried no longer than the wait", ". Multi.try",
		"default: return nil, fmt.Errorf(\"relock: %w\", over())", "",
		[]string{"TestAMultiTriesNothingOnceItsWaitIsOver"},
	},
	{
		"a list of which nothing could be taken is left", "lua/shared_settle.lua",
		"waits and moved and budget <= 0 or nil", "waits and budget <= 0 or nil",
		[]string{"TestBranchesOfABranchAreLetInThoughTheRootHolds"},
	},
	{
		"a flow locks by no handle of a branch that is inside", "internal/room Handle.confusable",
		"other.Session.Name != h.Session.Name", "Descends(h.Session.Name, other.Session.Name)",
		[]string{"TestAFlowLocksByNoHandleByWhichItsBranchIsInside"},
	},
	{
		"a flow locks by no handle by which its branch waits on a condition", "internal/room Handle.confusable",
		"|| Descends(other.Session.Name, h.Session.Name)", "",
		[]string{"TestAFlowLocksByNoHandleByWhichItsBranchWaitsOnACondition"},
	},
	{
		"owners of several lines are kept apart", "lua/shared_sessions.lua",
		"branches .. '\\255' .. owner", "branches .. '\\n' .. owner",
		[]string{"TestManyBranchesThatReadAreLetInTogether"},
	},
	{
		"a late copy ends no rest", "lua/acquire.lua",
		" and request.op > state.rest_op then", " then",
		[]string{"TestScriptsDoWhatTheModelSays"},
	},
	{
		"a branch that another branch would wait for is found further out", ". waitsForItself",
		"enters && l.kind == wire.KindSemaphore", "enters",
		[]string{"TestACallUnderAHoldOfAnotherBranchIsADeadlock"},
	},
	{
		"who enters again waits for nobody", ". waitsForItself",
		"return nil", "continue",
		[]string{"TestAnOwnerThatReadsReadsAgainUnderAHoldOfAnother"},
	},
	{
		"a hold of another client is no deadlock", ". waitsForItself",
		"h.lock.c != l.c ||", "",
		[]string{"TestWhatIsNoDeadlock"},
	},
	{
		"who nests too deep is told so", ". checkOwner",
		"branch && len(id) > maxOwner", "false",
		[]string{"TestChildOwnerIsMadeOfAnOwnerOnly"},
	},
	{
		"a deadlock names the holder", ". Lock.deadlock",
		"h.acquisition().Named()", "false",
		[]string{"TestCallUnderItsOwnHoldIsADeadlock"},
	},
}
