package mutation

// handleRules are those by which a grant comes to the call that asked for it, and to
// nobody else.
var handleRules = []Rule{
	{
		"a grant for an occupied handle is given back", "obtain.go",
		"case freed != nil:\n\t\t\treturn errOccupied", "case freed != nil:\n\t\t\tfor {\n\t\t\t\tif freed, _ = l.attach(w, h); freed == nil {\n\t\t\t\t\tbreak\n\t\t\t\t}\n\t\t\t\t<-freed\n\t\t\t}",
		[]string{"TestGrantForAnOccupiedHandleGoesToTheNext", "TestHoldThatWasLostBehindItsHandleIsNotReturned"},
	},
	{
		"a hold that is lost before its call returns is no result", "obtain.go",
		"if h != nil && h.judge() != nil {", "if false {",
		[]string{"TestHoldThatIsLostBeforeItsCallReturnsIsNoResult"},
	},
	{
		"a hold whose hook does not return is given back", "obtain.go",
		"if !kept {", "if !kept && err != nil {",
		[]string{"TestPanicOfTheAcquiredHookGivesTheHoldBack", "TestPanicOfTheAcquiredHookLeavesTheOuterHold"},
	},
	{
		"a hold is given back once", "internal/room/hold.go",
		"!s.over && !h.released && !h.lost\n", "!s.over && !h.lost\n",
		[]string{"TestPanicOfAHookThatHasUnlockedEndsNoOtherHold"},
	},
	{
		"a hook that panics keeps back no other", "keeper.go",
		"defer runAll(todo[1:])\n\ttodo[0]()", "todo[0]()\n\trunAll(todo[1:])",
		[]string{"TestPanicOfTheLostHookKeepsNothingBack"},
	},
	{
		"a hook that panics keeps no turn", "statement.go",
		"defer func() { <-a.turn.place }() // also where a hook does not return",
		"defer func() {\n\t\t\tif r := recover(); r != nil {\n\t\t\t\tpanic(r)\n\t\t\t}\n\t\t\t<-a.turn.place\n\t\t}()",
		[]string{"TestPanicOfTheLostHookInAStatementStopsNoOther"},
	},
	{
		"the watchdog calls no hook", "watchdog.go",
		"c.tellApart(todo...)", "runAll(todo)",
		[]string{"TestLostHookThatDoesNotReturnStopsNoRenewal"},
	},
	{
		"answers are noted before hooks are called", "renew.go",
		"tells = append(tells, c.renewedHook(st))", "runAll([]func(){c.renewedHook(st)})",
		[]string{"TestRenewedHookThatBlocksLosesNoOtherLock"},
	},
	{
		"a local re-entry has its replicas", "internal/room/terms.go",
		"t.Replicas.N >= nested.Replicas.N", "true",
		[]string{"TestLocalReentryAsksRedisForItsReplicas"},
	},
	{
		"the name of an anonymous hold is no owner", "context.go",
		"if id[0] == room.MadeMark {", "if false {",
		[]string{"TestNameThatRelockMadeIsEnteredByNobody"},
	},
	{
		"nobody joins an anonymous grant", "lua/acquire.lua",
		"local grant = request.named and grant_of(request.owner)", "local grant = grant_of(request.owner)",
		[]string{"TestNameThatRelockMadeEntersNothingInTheScript"},
	},
	{
		"a name that relock made names nobody", "lua/shared_record.lua",
		"return string.sub(owner, 1, 1) ~= '~'", "return true",
		[]string{"TestNameThatRelockMadeEntersNothingInTheScript"},
	},
	{
		"an unlock returns what comes of the release that ends its session", "reentry.go",
		"return a.verdict(ctx)", "return a.fate()",
		[]string{
			"TestTwoUnlocksAreUnconfirmedWhileRedisIsSilent", "TestTwoUnlocksAreConfirmedByOneRelease", "TestTwoUnlocksAfterALossAreBothLost",
			"TestTwoUnlocksAreUnconfirmedByARefusedRelease", "TestTwoUnlocksAreUnconfirmedWhenTheClientCloses",
		},
	},
	{
		"what comes of a release is told though nobody waits for it", "release.go",
		"\t\t\tr.settle(r.verdict(err))\n", "",
		[]string{"TestUnlocksAreToldOfAReleaseThatNobodyWaitsFor"},
	},
	{
		"what comes of a handover is told to the unlocks beside it", "handover.go",
		"\t\td.settle(err)\n", "",
		[]string{"TestUnlockBesideADetachReturnsWhatComesOfIt"},
	},
	{
		"what undoes a handover is told to the unlocks beside it", "handover.go",
		"\t\td.settle(d.verdict(err))\n", "",
		[]string{"TestUnlockBesideADetachReturnsWhatComesOfIt"},
	},
	{
		"a hold is on its handle once", "obtain.go",
		"freed == nil && h != nil && !h.listed {", "freed == nil && h != nil {",
		[]string{"TestAHoldThatAWaitHasPutOnItsHandleIsThereOnce"},
	},
	{
		"a handle that is granted the lock again has lost its older hold", "holds.go",
		"live && grant != token {", "false && live && grant != token {",
		[]string{"TestAHandleHasNoSecondHoldBeforeTheFirstIsUnlocked", "TestUnlockOfALostHoldLeavesTheNextHoldOfItsHandle"},
	},
	{
		"a loss that its owner's re-entry finds is told by any handle", "obtain.go",
		"err != nil && h.peek() == nil {", "false && err != nil && h.peek() == nil {",
		[]string{"TestAnOwnerIsToldOfItsLossByAnyHandle"},
	},
	{
		"a lost hold that has ended holds up its owner no more", "hold.go",
		"		h.owe(-1)\n", "",
		[]string{"TestAnOwnerLocksAgainOnceItsLostHoldHasEnded"},
	},
	{
		"of several grants an Unlock ends the oldest", "holds.go",
		"order = l.holds.eldest()", "order = l.holds.all()",
		[]string{"TestUnlockOfAnOldReaderOrPermitLeavesALaterOneOfItsHandle"},
	},
	{
		"of several grants the Unlock of a Multi ends the oldest", "multi.go",
		"!slices.ContainsFunc(locks, func(l *Lock) bool { return !l.read })", "false",
		[]string{"TestUnlockOfAnOldReaderOrPermitLeavesALaterOneOfItsHandle"},
	},
	{
		"a wait that is granted the lock again leaves an older hold of its handle lost", "cond.go",
		"rival := l.rival(h)", "rival := (*Hold)(nil)",
		[]string{"TestWaitThatIsGrantedTheLockAgainLeavesAHoldOfItsHandleLost"},
	},
	{
		"a hold that an Unlock has taken before its call returns is not put back", "obtain.go",
		"freed == nil && h != nil && !h.listed {", "freed == nil && h != nil && h.in.Load() == nil {",
		[]string{"TestAHoldThatIsUnlockedBeforeItsCallReturnsLeavesItsHandle"},
	},
	{
		"who ends a hold looks once more for it on its handle", "hold.go",
		"\tk.end(&at)\n\th.stayOff()\n\trunAll(cancel)", "\tk.end(&at)\n\trunAll(cancel)",
		[]string{"TestAHoldThatIsReleasedAsAWaitReturnsLeavesItsHandle"},
	},
	{
		"who ends a lost hold looks once more for it on its handle", "hold.go",
		"\t\tdefer h.stayOff()\n", "",
		[]string{"TestALostHoldThatIsReleasedAsAWaitReturnsLeavesItsHandle"},
	},
	{
		"a function that is nil is refused before the lock is taken", "reentrant.go",
		"	if fn == nil {\n		return errNoFunction\n", "	if false {\n		return errNoFunction\n",
		[]string{"TestDoOfNoFunctionIsRefusedAndLeavesNothing"},
	},
	{
		"a hand-over under a context of its own hold is not ended by it", "handover.go",
		"request, release := h.outlasting(ctx)", "request, release := ctx, func() {}",
		[]string{"TestDetachWorksUnderTheContextOfItsOwnHold"},
	},
	{
		"a hand-over under a context of its own hold ends with the parent of that", "handover.go",
		"free := context.AfterFunc(own.parent, end)", "free := context.AfterFunc(context.Background(), end)",
		[]string{"TestDetachUnderTheContextOfItsOwnHoldHeedsWhatElseEndsThat"},
	},
	{
		"a Do whose hold was handed over has nothing to release", "cond.go",
		"errors.Is(err, ErrNotHeld) && h.handedOver()", "errors.Is(err, ErrLost) && h.handedOver()",
		[]string{"TestDetachWorksUnderTheContextOfItsOwnHold"},
	},
	{
		"a lost hold that is to be handed over leaves its handle", "handover.go",
		"if !h.hold.Released() && h.hold.Lost() {", "if false {",
		[]string{"TestDetachOfALostHoldFreesItsHandle"},
	},
	{
		"a loss that the release of several finds ends their contexts", "cond.go",
		"\t_ = h.Err()\n", "",
		[]string{"TestLossThatTheReleaseOfAMultiFindsIsTheCauseOfItsContexts"},
	},
	{
		"the loss of a hold of which nobody was told is not told", "keeper.go",
		"if !h.told && k.c.cfg.hooks.Acquired != nil {", "if false {",
		[]string{"TestTheLossOfAHoldThatNoCallHadIsNotTold", "TestALossThatComesBeforeTheCallHasItsHoldIsToldAfterThat"},
	},
	{
		"a loss that came before its hold is told of after it", "trace.go",
		"\tif lost {", "\tif lost && hook == nil {",
		[]string{"TestALossThatComesBeforeTheCallHasItsHoldIsToldAfterThat"},
	},
}
