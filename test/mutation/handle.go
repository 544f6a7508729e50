package mutation

// handleRules are those by which a grant comes to the call that asked for it, and to
// nobody else.
var handleRules = []Rule{
	{
		"a loss is told on a goroutine of its own", ". keeper.end",
		"k.c.tellApart(losses...)", "runAll(losses)",
		[]string{
			"TestALostHookMayTakeTheLockForTheOwnerOfADowngrade", "TestALostHookMayTakeTheLockForItsOwner", "TestALostHookOfAPartDelaysNoLossOfAQuorum",
			"TestAReleaseThatFindsItsLossWaitsForNoHook", "TestALostHookOfAWaiterKeepsNoOtherWaiting", "TestALostHookOfAnOuterHoldStopsNoRenewal",
		},
	},
	{
		"a release of a quorum counts one whose hook ends its goroutine", "internal/quorum Majority.release",
		"defer func() { results <- err }()", "defer func() { if err == nil { results <- err } }()",
		[]string{"TestAReleaseWhoseHookEndsItsGoroutineReturns"},
	},
	{
		"an unconfirmed release is no end of a context", ". Client.unconfirmed",
		`return fmt.Errorf("%w: %v", base, err)`, `return fmt.Errorf("%w: %w", base, err)`,
		[]string{"TestAnUnconfirmedReleaseIsNoEndOfAContext"},
	},
	{
		"a context tells the loss though its hold was released since", ". QuorumHold.endCause",
		"cmp.Or(context.Cause(h.majority.End()), err)", "err",
		[]string{"TestALostQuorumIsTheCauseOfItsContextsThoughItWasReleased"},
	},
	{
		"the end of the queueing is not that of the caller's context", "internal/quorum Majority.queue",
		"err != nil && silent != nil && ctx.Err() == nil", "false",
		[]string{"TestAQuorumCallWhosePrimaryDiesIsNotCancelled"},
	},
	{
		"what a majority gives back is waited for beside the call", "internal/quorum Lock.spawn",
		"for i := range l.Primaries {", "for i := range 1 {",
		[]string{"TestAQuorumCallEndsWithItsContextThoughTheFirstClientIsClosed"},
	},
	{
		"an answer to a renewal of what is gone is no failure", "internal/room Statement.Unrenewed",
		"s.Over || st.stale()", "s.Over",
		[]string{"TestRenewalThatIsAnsweredAfterAWaitLosesNothing"},
	},
	{
		"no call begins where a reply is owed for long", "internal/transport streamSource.tryJoin, stream.leave",
		"s.silent($x)", "false",
		[]string{"TestNoCallBeginsWhereAReplyIsOwedForLong"},
	},
	{
		"a stream that is being closed is waited for", "internal/transport stream.close",
		"s.source.t.spawn($x)", "go $x()",
		[]string{"TestWaitWaitsForAStreamThatHasEndedBefore"},
	},
	{
		"a lost hold comes back though its owner waits again", "internal/room Session.Return",
		"|| s.Away() && !h.Lost", "|| s.Away()",
		[]string{"TestAHoldThatIsLostAtTheEndOfAWaitComesBackThoughItsOwnerWaitsAgain"},
	},
	{
		"a wait returns no hold while its owner waits again", "internal/room Session.Return",
		"|| s.Away() && !h.Lost", "",
		[]string{"TestAWaitReturnsNoHoldWhileItsOwnerWaitsAgain"},
	},
	{
		"a Detach below its own hold's context ends with the lease", ". Hold.outlasting",
		"until = time.Now().Add(h.hold.Terms.TTL)", "until = time.Now().Add(24 * time.Hour)",
		[]string{"TestADetachUnderItsHoldsContextEndsWithTheLease"},
	},
	{
		"a grant for an occupied handle is given back", ". Lock.putOnHandle",
		"if bar != room.NoBar {", "for bar == room.Occupied { at = k.look(); freed := l.holds.WhenFreed(make(chan struct{})).(chan struct{}); bar, by = h.hold.Put(want, &at); k.end(&at); if bar == room.Occupied { <-freed } }; if bar != room.NoBar {",
		[]string{"TestGrantForAnOccupiedHandleGoesToTheNext"},
	},
	{
		"a hold that is lost before its call returns is no result", "internal/room Hold.Put",
		"h.Lost || h.Released", "h.Released",
		[]string{"TestALossThatComesBeforeTheCallHasItsHoldIsNotTold"},
	},
	{
		"a hold whose hook does not return is given back", ". Lock.putOnHandle",
		"if !kept {", "if !kept && err != nil {",
		[]string{"TestPanicOfTheAcquiredHookGivesTheHoldBack", "TestPanicOfTheAcquiredHookLeavesTheOuterHold"},
	},
	{
		"a hold is given back once", "internal/room Hold.GiveBack",
		"!s.Over && !h.Released && !h.Lost", "!s.Over && !h.Lost",
		[]string{"TestPanicOfAHookThatHasUnlockedEndsNoOtherHold"},
	},
	{
		"a hook that panics keeps back no other", ". runAll",
		"defer runAll(todo[1:]); todo[0]()", "todo[0](); runAll(todo[1:])",
		[]string{"TestALostHookThatEndsItsGoroutineKeepsNothingBack"},
	},
	{
		"contexts end before any hook is called", ". keeper.endUntold",
		"for _, cancel := range cancels { cancel() }", "losses = append(cancels, losses...)",
		[]string{"TestLostHookThatDoesNotReturnKeepsNoContextOpen"},
	},
	{
		"a hold has a reason of its own", ". keeper.endUntold",
		"lostFor(e.Hold.Why())", "lostFor(e.Hold.Session.Why())",
		[]string{"TestALossBesideAnotherHoldIsToldWithItsReason"},
	},
	{
		"the watchdog calls no hook", ". watchdog.runDue",
		"c.tellApart(losses...)", "runAll(losses)",
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
		"nobody joins an anonymous grant", "lua/shared_sessions.lua",
		"return not request.named and (alone and alone.owner", "return false and (alone and alone.owner",
		[]string{"TestNameThatRelockMadeEntersNothingInTheScript"},
	},
	{
		"a name that relock made names nobody", "lua/shared_record.lua",
		"return string.sub(owner, 1, 1) ~= '~'", "return true",
		[]string{"TestNameThatRelockMadeEntersNothingInTheScript"},
	},
	{
		"an unlock returns what comes of the release that ends its session", ". acquisition.tellFewer",
		"return a.awaitRelease(ctx)", "return a.loss()",
		[]string{
			"TestTwoUnlocksAreUnconfirmedWhileRedisIsSilent", "TestTwoUnlocksAreConfirmedByOneRelease", "TestTwoUnlocksAfterALossAreBothLost",
			"TestTwoUnlocksAreUnconfirmedByARefusedRelease", "TestTwoUnlocksAreUnconfirmedWhenTheClientCloses",
		},
	},
	{
		"what comes of a release is told though nobody waits for it", ". releasing.release",
		"r.makeKnown(r.result(err))", "",
		[]string{"TestUnlocksAreToldOfAReleaseThatNobodyWaitsFor"},
	},
	{
		"what comes of a handover is told to the unlocks beside it", ". detaching.send",
		"d.makeKnown(err)", "",
		[]string{"TestUnlockBesideADetachReturnsWhatComesOfIt"},
	},
	{
		"what undoes a handover is told to the unlocks beside it", ". detaching.undo",
		"d.makeKnown(d.result(err))", "",
		[]string{"TestUnlockBesideADetachReturnsWhatComesOfIt"},
	},
	{
		"a hold is on its handle once its call returns, and not before", "internal/room Session.Return",
		"h.place != away", "h.place == onHandle",
		[]string{"TestAHoldIsNotUnlockedBeforeItsCallReturns"},
	},
	{
		"an end takes the hold off its handle", "internal/room Hold.end",
		"l.remove(h, at)", "",
		[]string{"TestEveryLostHoldNeedsItsUnlock"},
	},
	{
		"an end takes a hold whose owner waits off its handle", "internal/room Hold.end",
		"l.away.remove(h)", "",
		[]string{"TestAWaitWhoseHoldsAreAllUnlockedIsLostAndTheLockIsFree"},
	},
	{
		"a lost hold keeps what guards its handle", ". keeper.endUntold",
		"k.c.registry.use(k)", "",
		[]string{"TestBranchOfAnOwnerThatHasLostTheLockIsToldSo"},
	},
	{
		"a lost hold that has ended keeps nothing", ". keeper.endUntold",
		"k.c.registry.leave(k)", "",
		[]string{"TestALostHoldKeepsTheRoomOfItsLockUntilItIsUnlocked"},
	},
	{
		"a handle that is granted the lock again has lost its older hold", "internal/room Hold.loseOlder",
		"other.Session.Lose(ErrRegranted, at)", "",
		[]string{"TestAHandleHasNoSecondHoldBeforeTheFirstIsUnlocked", "TestUnlockOfALostHoldLeavesTheNextHoldOfItsHandle"},
	},
	{
		"a grant with a smaller token than its handle has is the older one", "internal/room Hold.loseOlder",
		"h.Session.Lose(ErrRegranted, at)", "other.Session.Lose(ErrRegranted, at)",
		[]string{"TestTheGrantWithTheSmallerTokenIsTheLostOne"},
	},
	{
		"a lost hold that has ended holds up its owner no more", "internal/room Hold.end",
		"r.owingUnlock.remove(h)", "",
		[]string{"TestExplorationOfRoomsFindsNothing"},
	},
	{
		"an Unlock ends a lost hold first", "internal/room Handle.Next",
		"most = 3", "",
		[]string{"TestUnlockEndsALostHoldBeforeALiveOne"},
	},
	{
		"an Unlock during a wait leaves the hold of an Acquire", "internal/room Handle.nextAway",
		"if h.Unlock {", "if h != nil {",
		[]string{"TestUnlockDuringAWaitOfItsOwnerLeavesTheHoldOfAnAcquire"},
	},
	{
		"a hold that ends before those on other handles is looked at in time", "internal/room Handle.add",
		"r.nextEnd = clock.Min(r.nextEnd, h.Until())", "",
		[]string{"TestAReaderWithAShorterLeaseThanTheOthersIsNotTrustedAfterAPause"},
	},
	{
		"a branch's name has the mark behind its owner's", "internal/room Descends",
		"ancestor+BranchMark", "ancestor",
		[]string{"TestAnOwnerWithALongerNameIsNoBranch"},
	},
	{
		"of several grants an Unlock ends the oldest", "internal/room Handle.Next",
		"order = l.holds.all()", "order = l.holds.backward()",
		[]string{"TestUnlockOfAnOldReaderOrPermitLeavesALaterOneOfItsHandle"},
	},
	{
		"of several grants the Unlock of a Multi ends the oldest", ". NewMulti",
		"!slices.ContainsFunc(locks, func(l *Lock) bool { return !l.read })", "false",
		[]string{"TestUnlockOfAnOldReaderOrPermitLeavesALaterOneOfItsHandle"},
	},
	{
		"a wait that is granted the lock again leaves an older hold of its handle lost", "internal/room Session.Return",
		"h.loseOlder(at)", "",
		[]string{"TestWaitThatIsGrantedTheLockAgainLeavesAHoldOfItsHandleLost"},
	},
	{
		"a function that is nil is refused before the lock is taken", ". during",
		"if fn == nil { return errNoFunction", "if false { return errNoFunction",
		[]string{"TestDoOfNoFunctionIsRefusedAndLeavesNothing"},
	},
	{
		"a hand-over under a context of its own hold is not ended by it", ". Hold.detach",
		"request, release := h.outlasting(ctx)", "request, release := ctx, func() {}",
		[]string{"TestDetachWorksUnderTheContextOfItsOwnHold"},
	},
	{
		"a hand-over under a context of its own hold ends with the parent of that", ". Hold.outlasting",
		"free := context.AfterFunc(own.Parent, end)", "free := context.AfterFunc(context.Background(), end)",
		[]string{"TestDetachUnderTheContextOfItsOwnHoldHeedsWhatElseEndsThat"},
	},
	{
		"a Do whose hold was handed over has nothing to release", ". Hold.releaseUnlessDetached",
		"h.extras != nil && h.detached", "false",
		[]string{"TestDetachWorksUnderTheContextOfItsOwnHold"},
	},
	{
		"a lost hold that is to be handed over leaves its handle", ". Hold.detach",
		"if !h.hold.Released && h.hold.Lost {", "if false {",
		[]string{"TestDetachOfALostHoldFreesItsHandle"},
	},
	{
		"a loss that the release of several finds ends their contexts", ". MultiHold.endAll",
		"_ = h.Err()", "",
		[]string{"TestLossThatTheReleaseOfAMultiFindsIsTheCauseOfItsContexts"},
	},
	{
		"the loss of a hold of which nobody was told is not told", "internal/room Hold.markLost",
		"h.place == unplaced", "false",
		[]string{"TestALossThatComesBeforeTheCallHasItsHoldKeepsNothing"},
	},
	{
		"a loss is not told before its hold was", ". keeper.endUntold",
		"if h.reported ||", "if true ||",
		[]string{"TestALossDuringTheAcquiredHookIsToldAfterIt"},
	},
	{
		"a loss that came before its hold was told is told after it", ". Hold.acquiredHook",
		"if lost {", "if lost && hook == nil {",
		[]string{"TestALossDuringTheAcquiredHookIsToldAfterIt"},
	},
	{
		"a grant that waits on a condition is not the older one", "internal/room Hold.Put",
		"if h.Session.Absent() {", "if h.loseOlder(at); h.Session.Absent() {",
		[]string{"TestASlowNestedCallLeavesAWaitOfItsOwner"},
	},
	{
		"a wait hears that the hold whose handle is occupied has ended", "internal/room Hold.end",
		"l.wake(at)", "",
		[]string{"TestAWaitDoesNotWaitForTheHandleOfAHoldThatHasEnded"},
	},
	{
		"an Unlock of the wrong side says which call ends the hold", ". orOther",
		"other.HoldCount() > 0", "false",
		[]string{"TestUnlockingTheOtherSideSaysWhichCallEndsTheHold"},
	},
	{
		"an Unlock while its owner waits names no other call", ". orOther",
		"errors.Is(err, errNoHold)", "errors.Is(err, ErrNotHeld)",
		[]string{"TestUnlockingASideWhoseOwnerWaitsNamesNoOtherCall"},
	},
	{
		"a lost wait waits for the Unlock of another owner", "internal/room Handle.mixes",
		"case other.Lost, other.Unlock && h.Unlock:", "case other.Lost && !h.Lost:",
		[]string{"TestAWaitThatWasRefusedReturnsOnceAnotherOwnerHasUnlockedItsHandle", "TestALostWaitReturnsOnceAnotherOwnerHasUnlockedItsHandle"},
	},
	{
		"a lost wait waits for no Unlock of a lost hold", "internal/room Handle.mixes",
		"other.Lost && h.Lost:", "other.Lost && false:",
		[]string{"TestALostWaitReturnsOnceTheHoldBesideItIsLost"},
	},
	{
		"a lost wait hears that the hold beside it is lost", "internal/room Hold.markLost",
		"h.Handle.wake(at)", "",
		[]string{"TestALostWaitReturnsOnceTheHoldBesideItIsLost"},
	},
	{
		"a branch locks by no handle to which its flow returns", "internal/room Handle.confusable",
		"differs && other.Token == h.Token || ", "",
		[]string{"TestABranchLocksByNoHandleToWhichItsFlowReturns", "TestABranchLocksByNoHandleWhoseFlowIsAboutToBeRefusedItsWait"},
	},
	{
		"an answer that comes during Close releases no hold that Close has lost", ". Client.disown",
		"n == nil && c.refusing.Load()", "false",
		[]string{"TestAnAnswerDuringCloseReleasesNoHoldThatCloseHasLost"},
	},
	{
		"a wait whose last hold has ended says so", ". awaiting.rejoin",
		"case ended:", "case ended && false:",
		[]string{"TestAWaitWhoseOnlyHoldEndsBesideAnOccupiedHandleIsLost"},
	},
	{
		"a wait whose lock was passed on says so", ". awaiting.rejoin",
		"|| !w.a.Named() && w.by.hold.Released", "",
		[]string{"TestAWaitWhoseLockWasPassedOnBesideAnOccupiedHandleIsLost"},
	},
	{
		"a loss that is to be unlocked first has its reason", ". Lock.barred",
		"why != nil", "false && why != nil",
		[]string{"TestSignalAfterCloseSaysThatTheClientIsClosed"},
	},
	{
		"nobody locks by a handle whose owner waits and may unlock", "internal/room Handle.confusable",
		"other.unlockable()", "false",
		[]string{"TestAnUnlockDuringAWaitOfItsOwnerEndsNoHoldOfAnotherOwner"},
	},
	{
		"an unlock during the wait of its owner ends no hold of Acquire", "internal/room Handle.Next",
		"gone.unlockable()", "false",
		[]string{"TestAnUnlockDuringAWaitOfItsOwnerEndsNoHoldOfAnotherOwner"},
	},
	{
		"a handle by which one hold waits is for every owner", "internal/room Hold.unlockable",
		"return false", "return h.Unlock",
		[]string{"TestAHandleOfOneHoldThatWaitsIsForEveryOwner"},
	},
	{
		"a hold that its call has not returned has no unlock to come", "internal/room Hold.unlockable",
		"other != h && other.place == away", "other != h",
		[]string{"TestASlowNestedCallLeavesAWaitOfItsOwner"},
	},
}
