package mutation

// stickyRules are those of a grant that its client keeps between holds.
var stickyRules = []Rule{
	{
		"a kept grant is not used when its time is over", "internal/room kept.take",
		" || at.Now.Reached(k.until)", "",
		[]string{"TestAKeptLockIsNotTrustedAfterAPause"},
	},
	{
		"a kept grant is given back in time", "internal/room kept.fired",
		"case k.unused && at.Now.Reached(k.until):", "case false:",
		[]string{"TestAKeptLockIsFreeWhenItsTimeIsOver"},
	},
	{
		"a kept grant is given back when it is wanted", "internal/room Acquisition.markWanted",
		"a.Room.GiveBackKept(at)", "",
		[]string{"TestAKeptLockGoesToWhoWaits", "TestTwoProcessesAlternateWithAStickyLock"},
	},
	{
		"each hold of a kept grant has a token of its own", "internal/room kept.keep",
		"s.reserveNext()", "s.left--; s.reserve()",
		[]string{"TestAKeptLockIsTakenAgainWithoutACommand"},
	},
	{
		"a kept grant has no more holds than tokens", "internal/room kept.keep",
		"s.left == 0 || ", "",
		[]string{"TestAKeptGrantEndsWithItsTokens"},
	},
	{
		"a named owner's hold is not kept", "internal/room Entry.Block",
		"case !e.passable(): return 1; case e.Terms.Sticky > 0:", "case e.Terms.Sticky > 0:",
		[]string{"TestAHoldThatOthersMayEnterIsNotKept"},
	},
	{
		"a client that shuts down gives kept grants back", ". Client.Shutdown",
		"c.giveBackKept()", "",
		[]string{"TestAKeptLockEndsWithItsClient"},
	},
	{
		"a client that shuts down keeps nothing", "internal/room kept.keep",
		" || at.Draining", "",
		[]string{"TestAHoldIsNotKeptByAClientThatShutsDown"},
	},
	{
		"nothing is kept while others wait", "internal/room kept.keep",
		" || s.isWanted()", "",
		[]string{"TestAHoldThatIsWantedIsNotKept"},
	},
	{
		"another owner does not get a kept grant", "internal/room kept.take",
		"w.Owner != \"\" || *w.Terms", "*w.Terms",
		[]string{"TestAKeptLockIsGivenBackForAnotherOwnerOfItsClient"},
	},
	{
		"other terms do not get a kept grant", "internal/room kept.take",
		" || *w.Terms != *s.Terms", "",
		[]string{"TestAKeptLockIsGivenBackForAnotherOwnerOfItsClient"},
	},
	{
		"a lock that is used is renewed although it is kept now", "internal/room kept.take",
		"k.late = true", "",
		[]string{"TestAStickyLockIsRenewedWhileItIsUsed"},
	},
	{
		"a hold of a kept grant is renewed in time", "internal/room kept.schedule",
		"k.timer = clock.Min(k.until, due)", "",
		[]string{"TestAHoldOfAKeptGrantIsRenewedOnTime"},
	},
	{
		"a kept grant is not renewed", "internal/room kept.fired",
		"case k.unused, renew", "case renew",
		[]string{"TestAKeptGrantIsNotRenewed"},
	},
	{
		"a third of the lease is left at the end of a kept grant", "internal/room kept.keep",
		"s.trustEnds(s.Terms.TTL, clock.Instant{}).Add(-s.Terms.TTL / 3)", "s.trustEnds(s.Terms.TTL, clock.Instant{})",
		[]string{"TestAKeptGrantLeavesAThirdOfItsLease"},
	},
	{
		"a lock whose renewals fail is not kept", "internal/room kept.keep",
		" || s.fails > 0", "",
		[]string{"TestALockWhoseRenewalsFailIsNotKept"},
	},
	{
		"a fair lock is not kept after a run", "internal/room kept.keep",
		" || s.run != nil", "",
		[]string{"TestAFairLockIsNotKeptAfterARun"},
	},
	{
		"an Unlock releases a grant with too little lease", "internal/room kept.keep",
		" || at.Now.Reached(until)", "",
		[]string{"TestAGrantWithTooLittleLeaseIsReleasedByItsUnlock"},
	},
	{
		"another timer of a kept grant is noticed", "internal/room kept.schedule",
		"k.timer = clock.Instant{}", "",
		[]string{"TestAGrantThatIsRenewedLateIsKeptForItsTimeOnly"},
	},
	{
		"a kept grant ends as another is kept", "internal/room Entry.grant",
		"e.Room.kept.giveBack(at)", "",
		[]string{"TestAKeptGrantEndsAsAnotherIsKept"},
	},
	{
		"a sharded channel stays subscribed for a kept grant", ". registry.enter",
		"r.stopListening[k] = k.listener.Join()", "_ = k.listener",
		[]string{"TestAKeptLockGoesToWhoWaits"},
	},
	{
		"a call that returns no hold keeps nothing", "internal/room Session.finishApart",
		"switch s.finish(at) {", "if s.Room.kept.keep(s, at) { return }; switch s.finish(at) {",
		[]string{"TestACallThatReturnsNoHoldKeepsNothing"},
	},
	{
		"a sharded channel is left with the lock", ". registry.leaveLocked",
		"stop()", "",
		[]string{"TestAStickyLockLeavesItsShardedChannel"},
	},
	{
		"Sticky is a third of the TTL at most", ". terms.suitsKind",
		"case t.Sticky > t.TTL/3:", "case false:",
		[]string{"TestStickyIsRefusedWhereAGrantCannotBeKept"},
	},
	{
		"a sticky holder is not marked too soon", "relockweb grant.fading",
		"part = 4", "part = 2",
		[]string{"TestAStickyHolderIsShownAsOne"},
	},
}
