package mutation

// handleRules are those by which a grant comes to the call that asked for it, and to
// nobody else.
var handleRules = []Rule{
	{
		"a grant for an occupied handle is given back", ". Lock.putOnHandle",
		"case freed != nil: return errOccupied", "case freed != nil: for { if freed, _ = l.attach(w, h); freed == nil { break }; <-freed }",
		[]string{"TestGrantForAnOccupiedHandleGoesToTheNext", "TestHoldThatWasLostBehindItsHandleIsNotReturned"},
	},
	{
		"a hold that is lost before its call returns is no result", ". Lock.attach",
		"if h.judge() != nil {", "if false {",
		[]string{"TestHoldThatIsLostBeforeItsCallReturnsIsNoResult"},
	},
	{
		"a hold whose hook does not return is given back", ". Lock.giveBackUnless",
		"if !kept {", "if !kept && err != nil {",
		[]string{"TestPanicOfTheAcquiredHookGivesTheHoldBack", "TestPanicOfTheAcquiredHookLeavesTheOuterHold"},
	},
	{
		"a hold is given back once", "internal/room Hold.GiveBack",
		"!s.over && !h.released && !h.lost", "!s.over && !h.lost",
		[]string{"TestPanicOfAHookThatHasUnlockedEndsNoOtherHold"},
	},
	{
		"a hook that panics keeps back no other", ". runAll",
		"defer runAll(todo[1:]); todo[0]()", "todo[0](); runAll(todo[1:])",
		[]string{"TestPanicOfTheLostHookKeepsNothingBack"},
	},
	{
		"a hook that panics keeps no turn", ". acquisition.tell",
		"defer func() { <-a.turn.place }()",
		"defer func() { if r := recover(); r != nil { panic(r) }; <-a.turn.place }()",
		[]string{"TestPanicOfTheLostHookInAStatementStopsNoOther"},
	},
	{
		"contexts end before any hook is called", ". keeper.endWithoutHooks",
		"runAll(cancels)", "hooks = append(cancels, hooks...)",
		[]string{"TestLostHookThatDoesNotReturnKeepsNoContextOpen"},
	},
	{
		"a hold has a reason of its own", ". Hold.acquiredHook",
		"why := lostFor(h.hold.Why())", "why := lostFor(h.hold.Session.Why())",
		[]string{"TestALossBesideAnotherHoldIsToldWithItsReason"},
	},
	{
		"the watchdog calls no hook", ". watchdog.runDue",
		"c.hooksApart(hooks...)", "runAll(hooks)",
		[]string{"TestLostHookThatDoesNotReturnStopsNoRenewal"},
	},
	{
		"answers are noted before hooks are called", ". watchdog.renewed, watchdog.renewEach",
		"hooks = append(hooks, newestHook(w.c.cfg.hooks.Renewed, st, nil))", "runAll([]func(){newestHook(w.c.cfg.hooks.Renewed, st, nil)})",
		[]string{"TestRenewedHookThatBlocksLosesNoOtherLock"},
	},
	{
		"a local re-entry has its replicas", "internal/room outlasts",
		"outer.Replicas.N >= inner.Replicas.N", "true",
		[]string{"TestLocalReentryAsksRedisForItsReplicas"},
	},
	{
		"the name of an anonymous hold is no owner", ". checkOwner",
		"if id[0] == room.MadeMark {", "if false {",
		[]string{"TestNameThatRelockMadeIsEnteredByNobody"},
	},
	{
		"nobody joins an anonymous grant", "lua/acquire.lua",
		"local grant = request.named and nearest(request.owner)", "local grant = nearest(request.owner)",
		[]string{"TestNameThatRelockMadeEntersNothingInTheScript"},
	},
	{
		"a name that relock made names nobody", "lua/shared_record.lua",
		"return string.sub(owner, 1, 1) ~= '~'", "return true",
		[]string{"TestNameThatRelockMadeEntersNothingInTheScript"},
	},
	{
		"an unlock returns what comes of the release that ends its session", ". acquisition.lower",
		"return a.awaitRelease(ctx)", "return a.fate()",
		[]string{
			"TestTwoUnlocksAreUnconfirmedWhileRedisIsSilent", "TestTwoUnlocksAreConfirmedByOneRelease", "TestTwoUnlocksAfterALossAreBothLost",
			"TestTwoUnlocksAreUnconfirmedByARefusedRelease", "TestTwoUnlocksAreUnconfirmedWhenTheClientCloses",
		},
	},
	{
		"what comes of a release is told though nobody waits for it", ". releasing.later",
		"r.settle(r.result(err))", "",
		[]string{"TestUnlocksAreToldOfAReleaseThatNobodyWaitsFor"},
	},
	{
		"what comes of a handover is told to the unlocks beside it", ". detaching.send",
		"d.settle(err)", "",
		[]string{"TestUnlockBesideADetachReturnsWhatComesOfIt"},
	},
	{
		"what undoes a handover is told to the unlocks beside it", ". detaching.undo",
		"d.settle(d.result(err))", "",
		[]string{"TestUnlockBesideADetachReturnsWhatComesOfIt"},
	},
	{
		"a hold is on its handle once", ". Lock.attach",
		"freed == nil && !h.listed {", "freed == nil {",
		[]string{"TestAHoldThatAWaitHasPutOnItsHandleIsThereOnce"},
	},
	{
		"a handle that is granted the lock again has lost its older hold", ". Lock.rival",
		"live && grant != token {", "false && live && grant != token {",
		[]string{"TestAHandleHasNoSecondHoldBeforeTheFirstIsUnlocked", "TestUnlockOfALostHoldLeavesTheNextHoldOfItsHandle"},
	},
	{
		"a loss that its owner's re-entry finds is told by any handle", ". Lock.putOnHandle",
		"err != nil && h.peek() == nil {", "false && err != nil && h.peek() == nil {",
		[]string{"TestAnOwnerIsToldOfItsLossByAnyHandle"},
	},
	{
		"a lost hold that has ended holds up its owner no more", ". Hold.paidUnlock",
		"h.oweUnlock(-1)", "",
		[]string{"TestAnOwnerLocksAgainOnceItsLostHoldHasEnded"},
	},
	{
		"of several grants an Unlock ends the oldest", ". Lock.next",
		"order = l.holds.eldest()", "order = l.holds.all()",
		[]string{"TestUnlockOfAnOldReaderOrPermitLeavesALaterOneOfItsHandle"},
	},
	{
		"of several grants the Unlock of a Multi ends the oldest", ". NewMulti",
		"!slices.ContainsFunc(locks, func(l *Lock) bool { return !l.read })", "false",
		[]string{"TestUnlockOfAnOldReaderOrPermitLeavesALaterOneOfItsHandle"},
	},
	{
		"a wait that is granted the lock again leaves an older hold of its handle lost", ". awaiting.put",
		"rival := l.rival(h)", "rival := (*Hold)(nil)",
		[]string{"TestWaitThatIsGrantedTheLockAgainLeavesAHoldOfItsHandleLost"},
	},
	{
		"a hold that an Unlock has taken before its call returns is not put back", ". Lock.attach",
		"freed == nil && !h.listed {", "freed == nil && h.in.Load() == nil {",
		[]string{"TestAHoldThatIsUnlockedBeforeItsCallReturnsLeavesItsHandle"},
	},
	{
		"who ends a hold looks once more for it on its handle", ". Hold.end",
		"k.end(&at); h.stayOff(); runAll(cancel)", "k.end(&at); runAll(cancel)",
		[]string{"TestAHoldThatIsReleasedAsAWaitReturnsLeavesItsHandle"},
	},
	{
		"who ends a lost hold looks once more for it on its handle", ". Hold.end",
		"defer h.stayOff()", "",
		[]string{"TestALostHoldThatIsReleasedAsAWaitReturnsLeavesItsHandle"},
	},
	{
		"a function that is nil is refused before the lock is taken", ". during",
		"if fn == nil { return errNoFunction", "if false { return errNoFunction",
		[]string{"TestDoOfNoFunctionIsRefusedAndLeavesNothing"},
	},
	{
		"a hand-over under a context of its own hold is not ended by it", ". Hold.handOver",
		"request, release := h.outlasting(ctx)", "request, release := ctx, func() {}",
		[]string{"TestDetachWorksUnderTheContextOfItsOwnHold"},
	},
	{
		"a hand-over under a context of its own hold ends with the parent of that", ". Hold.outlasting",
		"free := context.AfterFunc(own.parent, end)", "free := context.AfterFunc(context.Background(), end)",
		[]string{"TestDetachUnderTheContextOfItsOwnHoldHeedsWhatElseEndsThat"},
	},
	{
		"a Do whose hold was handed over has nothing to release", ". Hold.leave",
		"errors.Is(err, ErrNotHeld) && h.handedOver()", "errors.Is(err, ErrLost) && h.handedOver()",
		[]string{"TestDetachWorksUnderTheContextOfItsOwnHold"},
	},
	{
		"a lost hold that is to be handed over leaves its handle", ". Hold.handOver",
		"if !h.hold.Released() && h.hold.Lost() {", "if false {",
		[]string{"TestDetachOfALostHoldFreesItsHandle"},
	},
	{
		"a loss that the release of several finds ends their contexts", ". MultiHold.endAll",
		"_ = h.Err()", "",
		[]string{"TestLossThatTheReleaseOfAMultiFindsIsTheCauseOfItsContexts"},
	},
	{
		"the loss of a hold of which nobody was told is not told", ". keeper.lose",
		"if !h.reported && k.c.cfg.hooks.Acquired != nil {", "if false {",
		[]string{"TestTheLossOfAHoldThatNoCallHadIsNotTold", "TestALossThatComesBeforeTheCallHasItsHoldIsToldAfterThat"},
	},
	{
		"a loss that came before its hold is told of after it", ". Hold.acquiredHook",
		"if lost {", "if lost && hook == nil {",
		[]string{"TestALossThatComesBeforeTheCallHasItsHoldIsToldAfterThat"},
	},
}
