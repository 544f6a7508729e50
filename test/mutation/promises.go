package mutation

// promiseRules are of sentences in the documentation that no other table holds.
var promiseRules = []Rule{
	{
		"a wait for another handle of the client is hinted at", ". waiting.explain",
		`if w.hint == "" && w.wasTaken &&`, `if w.hint == "?" &&`,
		[]string{"TestACallThatWaitsForAnotherHandleOfItsClientIsToldOfOwners"},
	},
	{
		"a ticket is told from a holder", ". holderOf",
		"Detached: h.Client == wire.NoClient", "Detached: false",
		[]string{"TestInfoTellsATicketFromAHolder", "TestATicketIsShownAsOne"},
	},
	{
		"an error says nothing twice", "internal/ending joined.Error",
		"strings.Contains(says, text):", "text == \"\":",
		[]string{"TestAFunctionThatReturnsTheLossIsToldOfItOnce"},
	},
	{
		"what is lost is told as lost, not as not held", ". lockError",
		"errors.Is(err, ErrLost) && strings.HasPrefix(says, ErrLost.Error())", `strings.HasPrefix(says, "?")`,
		[]string{"TestALossSaysWhyInTheErrorTheHookAndTheLog"},
	},
	{
		"a signal whose waiter's client ends is passed on", "lua/shared_conditions.lua",
		"    drop_waiter(nonce, waiter)\n    owe(nonce)\n", "    drop_waiter(nonce, waiter)\n",
		[]string{"TestSignalOfAWaiterWhoseClientClosesGoesToTheNext"},
	},
	{
		"scripts say the channel of the client's prefix", ". New",
		`c.wire = wire.NewEncoder(c.id, key.Inbox(cfg.prefix, ""),`, `c.wire = wire.NewEncoder(c.id, key.Inbox("relock", ""),`,
		[]string{"TestWaitersUnderAnyPrefixAreWokenByMessage"},
	},
	{
		"redisson: the end of a wait for a taken lock is no outage", "redisson waiting.failed",
		"w.taken && w.ctx.Err() != nil && !decided(err) && !transport.Hopeless(err)", "w.taken && ending.Is(err, w.ctx.Err())",
		[]string{"TestTheEndOfAWaitForATakenLockIsNoOutage"},
	},
	{
		"a retry that its context ends returns the error before that", "internal/transport TryEvery",
		"return before", "return err",
		[]string{"TestAProbeThatItsContextEndsSaysWhyRedisDidNotAnswer"},
	},
	{
		"a program that ends does not say that it goes on trying", "cmd/relock unreleased.Error",
		`untrue, ""`, `untrue, untrue`,
		[]string{"TestAProgramThatEndsDoesNotSayThatItGoesOnTrying"},
	},
	{
		"labels hold up no Info for longer than a second in all", "internal/label Book.read",
		"context.WithTimeout(ctx, readWithin)", "context.WithTimeout(ctx, 10*readWithin)",
		[]string{"TestLabelsWhoseScriptIsNotKnownHoldUpNoInfo"},
	},
	{
		"Detach tells a loss before the end of a context", ". Hold.detach",
		"cmp.Or(h.state(), refused)", "cmp.Or(refused, h.state())",
		[]string{"TestDetachUnderTheContextOfALostHoldEndsIt"},
	},
	{
		"Detach asks the clock", ". Hold.detach",
		"h.hold.Session.Check(&at)", "",
		[]string{"TestDetachRightAfterASuspensionIsLost"},
	},
	{
		"a panic of a hook is not swallowed", ". runAll",
		"defer runAll(todo[1:])", "defer runAll(todo[1:]); defer func() { _ = recover() }()",
		[]string{"TestPanicOfAHookWithoutACallerEndsTheProcess"},
	},
	{
		"a newcomer waits though the queue was not read to its end", "lua/acquire.lua",
		"  if state.queued == 0 and fits(request) then", "  if (state.queued == 0 or budget <= 0) and fits(request) then",
		[]string{"TestTryLockDoesNotOvertakeALiveWaiterBehindManyDead"},
	},
	{
		"WaitFor waits no longer than it was told", ". Cond.wait",
		"context.WithTimeout(ctx, *limit)", "context.WithTimeout(ctx, (*limit+100*time.Millisecond-1)/(100*time.Millisecond)*(100*time.Millisecond))",
		[]string{"TestWaitForEndsAtItsInstant"},
	},
	{
		"a token's digits are of the whole name", "internal/wire Token",
		"[]byte(room.Root(owner)))", "[]byte(room.Root(owner[:min(16, len(owner))])))",
		[]string{"TestEveryByteOfAnOwnerIsInItsTokens"},
	},
	{
		"Do of redisson releases on a panic", "redisson Lock.Do",
		"defer func() { err = ending.Join(err, h.Release()) }(); return fn(h.Context(ctx))", "err = fn(h.Context(ctx)); return ending.Join(err, h.Release())",
		[]string{"TestDoReleasesTheLockHoweverItsFunctionEnds"},
	},
	{
		"ForceUnlock of redisson is of one side", "redisson/lua/force.lua",
		"if (redis.call('HGET', KEYS[1], 'mode') or '') ~= ARGV[4] then", "if false then",
		[]string{"TestForceUnlockOfOneSideLeavesTheOther"},
	},
	{
		"Info of redisson tells the lease of readers and writers", "redisson Lock.holders",
		"TTL: ttl}", "TTL: ttl}; if l.kind.rw() { h.TTL = 0 }",
		[]string{"TestInfoTellsWhatIsLeftOfEveryLease"},
	},
	{
		"Name is what was given", ". Lock.Name",
		"return key.Name(l.c.cfg.prefix, l.hash)", "name := key.Name(l.c.cfg.prefix, l.hash); if len(name) > 2 && name[0] == '{' { return name[1:] }; return name",
		[]string{"TestNameIsWhatWasGiven"},
	},
	{
		"options of a quorum's lock are of every primary", ". Quorum.NewLock",
		"of := c.NewLock(name, slices.Concat(opts,", "mine := opts; if l.first != nil { mine = nil }; of := c.NewLock(name, slices.Concat(mine,",
		[]string{"TestOptionsOfAQuorumLockHoldOnEveryPrimary"},
	},
	{
		"Info counts who waits for the lock only", "lua/info.lua",
		"'ZCOUNT', KEYS[2], '(' .. text(-apart)", "'ZCOUNT', KEYS[2], '(' .. text(-far)",
		[]string{"TestInfoCountsWhoWaitsForTheLockOnly"},
	},
	{
		"Defaults keep a MaxHold", ". Defaults",
		"c.terms = t; return nil", "t.MaxHold = 0; c.terms = t; return nil",
		[]string{"TestEveryLockOptionWorksPerLockAndPerClient"},
	},
	{
		"Once takes intervals of a leap year", ". forOnce",
		"between(\"Once's interval\", every, time.Millisecond, maxRest)", "between(\"Once's interval\", every, time.Millisecond, maxRest-24*time.Hour)",
		[]string{"TestDurationsHaveTheBoundsThatAreDocumented"},
	},
	{
		"a lease is of 100 ms at least", ". minTTL",
		"minTTL = 100 * time.Millisecond", "minTTL = 99 * time.Millisecond",
		[]string{"TestDurationsHaveTheBoundsThatAreDocumented"},
	},
	{
		"a ReleaseTimeout is of an hour at most", ". ReleaseTimeout",
		`between("release timeout", d, time.Millisecond, time.Hour)`, `between("release timeout", d, time.Millisecond, 2*time.Hour)`,
		[]string{"TestDurationsHaveTheBoundsThatAreDocumented"},
	},
	{
		"a ticket's time is of a millisecond at least", ". Hold.detach",
		`between("a ticket's time", keep, time.Millisecond, maxTTL)`, `between("a ticket's time", keep, time.Second, maxTTL)`,
		[]string{"TestDurationsHaveTheBoundsThatAreDocumented"},
	},
	{
		"locks are kept under the client's prefix", ". Client.newLock",
		"hash: key.Hash(c.cfg.prefix, name)", `hash: key.Hash("relock", name)`,
		[]string{"TestClientsOfOtherPrefixesSeeNothingOfALock"},
	},
	{
		"Locks looks under the client's prefix", ". scan.server",
		"pattern := s.match.Hashes(s.c.cfg.prefix)", `pattern := s.match.Hashes("relock")`,
		[]string{"TestClientsOfOtherPrefixesSeeNothingOfALock"},
	},
	{
		"Observe goes on until Shutdown has returned", ". Election.Observe",
		"leader, err := e.Leader(ctx)", "leader, err := e.Leader(ctx); if e.usable() == nil && e.lock.c.tracker.Draining() { leader, err = Holder{}, ErrClosed }",
		[]string{"TestElectionIsObservedUntilItsClientHasEnded"},
	},
	{
		"hooks of a call without a hold say that it wants to read", ". waiting.event",
		"Read: w.lock.read && w.lock.kind != wire.KindSemaphore", "Read: false",
		[]string{"TestWaitingAndGaveUpHooksSayWhetherTheCallWantsToRead"},
	},
	{
		"TryRLock of redisson waits no longer than it was told", "redisson RWLock.TryRLock",
		"TryLock(ctx, wait)", "TryLock(ctx, 2*wait)",
		[]string{"TestTryRLockWaitsForAsLongAsItWasTold"},
	},
	{
		"Defaults of redisson are of its read/write locks too", "redisson Client.newLock",
		"l.terms, l.err = c.cfg.terms.with(opts)", "defaults := c.cfg.terms; if k.rw() { defaults.fair, defaults.fenced = false, false }; l.terms, l.err = defaults.with(opts)",
		[]string{"TestReadWriteLocksRefuseTheFairAndFencedOfDefaults"},
	},
	{
		"the end of a write hold of redisson wakes all readers of a client", "redisson/lua/write_release.lua",
		"redis.call(ARGV[3], ARGV[4], '1')", "redis.call(ARGV[3], ARGV[4], '0')",
		[]string{"TestAWriterThatUnlocksLetsEveryWaitingReaderIn"},
	},
	{
		"what redisson was refused to release is not renewed", "redisson session.tellFewer",
		"s.inBackground(limit, func(ctx context.Context, left func()) { s.clear(ctx, call); left(); s.sweep(ctx) })",
		"_ = limit; s.c.spawn(3*h.terms.ttl, func(ctx context.Context) { s.clear(ctx, call); s.sweep(ctx); for ending.Pause(ctx, nil, h.terms.ttl/3) { _, _ = s.c.transport.Do(ctx, time.Second, s.renewCall(h.terms.ttl)) } })",
		[]string{"TestAnUnlockThatRedisRefusesIsEndedByTheLease"},
	},
	{
		"a Locker whose context was cancelled panics", ". syncLocker.Lock",
		"err != nil", "err != nil && !errors.Is(err, context.Canceled)",
		[]string{"TestSyncLockerPanicsWhenItsContextIsCancelled"},
	},
	{
		"a holder is found by its token alone", ". forceHolder",
		`case h.Owner == "" || h.Token == 0,`, "case h.Token == 0,",
		[]string{"TestForceUnlockHolderFindsOwnersWhateverTheirDigitsAre"},
	},
	{
		"a holder is found by its owner alone", ". forceHolder",
		`case h.Owner == "" || h.Token == 0,`, `case h.Owner == "",`,
		[]string{"TestForceUnlockHolderFindsOwnersWhateverTheirDigitsAre"},
	},
	{
		"a branch and its parent are two owners", ". ownerFor",
		"&& l.terms.owner != id", "&& l.terms.owner != id && !room.Descends(l.terms.owner, id)",
		[]string{"TestABranchAndItsParentAreAMismatch"},
	},
	{
		"an unlock during a wait ends the contexts of the hold", ". Hold.end",
		"cancel()", "_ = cancel",
		[]string{"TestAnUnlockDuringAWaitOfItsOwnerEndsTheContextsOfTheHold"},
	},
	{
		"a kept grant is passed on no further than its tokens go", "internal/room Session.canPass",
		"&& s.left > 0", "",
		[]string{"TestCallsThatFollowEachOtherEndWithTheTokensOfAKeptGrant"},
	},
	{
		"Check fails while the server cannot persist", "lua/permit.lua",
		"local stops = { MISCONF = true, ", "local stops = { ",
		[]string{"TestCheckFailsWhileTheServerCannotPersist"},
	},
	{
		"a bad option of redisson is one of the reading side too", "redisson Client.newLock",
		"case k == reading && l.err == nil:", "case k == reading:",
		[]string{"TestEveryCallOfABadSharedReadWriteLockSaysSo"},
	},
	{
		"redisson: a lock that is granted again loses the nested holds too", "redisson Lock.loseOlder",
		"h.s.lose(errRegranted)", "h.lose(errRegranted)",
		[]string{"TestASharedLockThatIsGrantedAgainLosesTheNestedHoldsToo"},
	},
	{
		"redisson: a FairWait is of a day at most", "redisson FairWait",
		"24*time.Hour", "48*time.Hour",
		[]string{"TestDurationsOfRedissonHaveTheBoundsThatAreDocumented"},
	},
	{
		"otel: an unconfirmed release has an error type", "otelrelock ofHold",
		`return "unconfirmed", "unconfirmed"`, `return "unconfirmed", ""`,
		[]string{"TestFailuresHaveAnErrorType"},
	},
	{
		"fence: the error of a source can be told", "fence Script.Run",
		`fmt.Errorf("fence: %q: %w", fence, err)`, `fmt.Errorf("fence: %q: %v", fence, err)`,
		[]string{"TestAScriptThatFailsLeavesWhatItWroteAndItsToken"},
	},
	{
		"a function that is nil is refused though the lock is taken", ". tryDuring",
		"if fn == nil { return false, errNoFunction }; h, err := try(ctx, wait); if err != nil { return tryResult(err) }",
		"h, err := try(ctx, wait); if err != nil { return tryResult(err) }; if fn == nil { return false, ending.Join(errNoFunction, h.releaseUnlessDetached()) }",
		[]string{"TestTryDoOfNoFunctionIsRefusedThoughTheLockIsTaken"},
	},
	{
		"the token of a quorum's handle is that of a lost hold too", ". QuorumLock.Token",
		"return l.newest().Token()", "if h := l.newest(); h != nil && h.Err() == nil { return h.Token() }; return 0",
		[]string{"TestTokenOfAQuorumLockIsThatOfALostHoldToo"},
	},
	{
		"hooks tell of each hold for how long it lasted", ". Hold.releasedHook",
		"ev.Held = now.Sub(h.hold.Acquired)", "ev.Held = now.Sub(h.hold.Acquired); if s := h.hold.Session; s.Live() > 0 { ev.Held = now.Sub(s.Newest().Acquired) }",
		[]string{"TestHeldOfAHookIsOfTheHoldAndNotOfItsGrant"},
	},
	{
		"an ended nonce is kept for as long as its copies count", "lua/release.lua",
		"now + 60000)", "now + 6000)",
		[]string{"TestF08LateCopyOfARequestThatWasGivenUpGrantsNothingThoughTheLockIsUsed"},
	},
	{
		"nobody goes on behind a call on other terms", "internal/room Room.passToRun",
		"s.run.behind = nil", "",
		[]string{"TestARunPassesNobodyByWhereTheTermsChange"},
	},
	{
		"a client that is not used connects nowhere", ". New",
		"c.newLabelsAndAccess(); return c, nil", "c.newLabelsAndAccess(); if !cfg.sharded { c.listeners.Inbox().Start() }; return c, nil",
		[]string{"TestNewDoesNoIO"},
	},
	{
		"a force is confirmed by its form alone", "relockweb chosen",
		`r.PostFormValue("confirm")`, `r.FormValue("confirm")`,
		[]string{"TestForceIsConfirmedByTheFormAlone"},
	},
	{
		"a page renews itself however short its Refresh", "relockweb site.page",
		"int((s.every + time.Second - 1) / time.Second)", "int(s.every / time.Second)",
		[]string{"TestPageRenewsItselfWhateverItsRefresh"},
	},
	{
		"fence: a Dialect that was never set is none of them", "fence Dialect.advance",
		"case PostgreSQL, SQLite:", "case PostgreSQL, SQLite, 0:",
		[]string{"TestAnUnknownDialectChecksNothingAndSaysSo"},
	},
	{
		"fence: a schema is one statement without a semicolon", "fence Dialect.Schema",
		`"CREATE TABLE IF NOT EXISTS relock_fences (resource TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL)"`,
		`"CREATE TABLE IF NOT EXISTS relock_fences (resource TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL);"`,
		[]string{"TestSchemaIsOneStatementWithoutASemicolon"},
	},
	{
		"a downgrade is bounded by its context alone", ". RWLock.Downgrade",
		"for { h := w.newest()", "ctx, cancel := context.WithTimeout(ctx, w.c.cfg.releaseTimeout); defer cancel(); for { h := w.newest()",
		[]string{"TestDowngradeAsksForAsLongAsItsContextLasts"},
	},
	{
		"Do of redisson tells of a release that is not confirmed", "redisson Lock.Do",
		"err = ending.Join(err, h.Release())", "end := h.Release(); if err == nil && errors.Is(end, relock.ErrUnconfirmed) { end = nil }; err = ending.Join(err, end)",
		[]string{"TestDoSaysThatItsReleaseIsNotConfirmedThoughItsFunctionSucceeded"},
	},
	{
		"named owners of a forced holder's process stay in the queue", "lua/force.lua",
		" or waiter.mode ~= 'w' or waiter.named then", " or waiter.mode ~= 'w' then",
		[]string{"TestForceUnlockHolderLeavesANamedWaiterOfItsProcessInTheQueue"},
	},
	{
		"a sharded channel ends with its last waiter though it was not subscribed", "internal/inbox Shards.leave",
		"if b.users == 0 && !s.closed {", "if b.users == 0 && !s.closed && b.Up() {",
		[]string{"TestShardedChannelThatCannotBeSubscribedIsGivenUpWithItsWaiter"},
	},
	{
		"Locks tells that the servers are not known", ". scan.run",
		"for i := 0;", "if len(servers) == 0 && over(s.ctx, s.c) == nil { err = nil }; for i := 0;",
		[]string{"TestLocksOfAClusterWhoseServersAreUnknownEndsWithTheError"},
	},
	{
		"what is handed over is not lost", ". Hold.detach",
		"cancel := h.cancelAll(ErrNotHeld)", "cancel := h.lose(ErrNotHeld)",
		[]string{"TestWhoResumesHoldsUnderTheSameToken"},
	},
	{
		"redisson: a waiting call returns the error of its context", "redisson waiting.sleep",
		"case <-w.ctx.Done(): return ending.Of(w.ctx)", "case <-w.ctx.Done(): return context.Cause(w.ctx)",
		[]string{"TestACallThatWaitsReturnsTheErrorOfItsContextWhateverTheCause"},
	},
	{
		"a message on a sharded channel goes nowhere else", "lua/shared_inbox.lua",
		"sharded and redis.pcall('SPUBLISH', name, message) or", "sharded and redis.pcall('SPUBLISH', name, message) == 1 or",
		[]string{"TestShardedMessagesAreNeverPlainOnes"},
	},
	{
		"redisson: Info tells the kind of its handle", "redisson Lock.Info",
		"info.Kind = l.kind.String()", `info.Kind = l.kind.String(); if slices.Contains(raw[2:], any("mode")) { info.Kind = writing.String() }`,
		[]string{"TestInfoTellsTheKindOfItsHandle"},
	},
	{
		"a page of the queue is not the last for its dead", "lua/waiters.lua",
		"  end\nend\nreturn reply\n", "  end\nend\nif #reply < 2 + 4 * size then\n  reply[2] = 0\nend\nreturn reply\n",
		[]string{"TestALongQueueIsReadBeyondItsDead"},
	},
	{
		"relocktest: a fault of one client is of no other", "relocktest Server.linksOf",
		"len(clients) == 0", "len(clients) == 0 || n.client == nil",
		[]string{"TestAPartitionOfOneClientLeavesTheOthers"},
	},
	{
		"relocktest: Unlock of a Fake ends no hold of another", "relocktest Fake.Unlock",
		"if !f.held {", "if !f.held && len(f.place()) > 0 {",
		[]string{"TestUnlockOfAFakeEndsNoHoldOfAnother"},
	},
	{
		"redisson: a client that hides its kind publishes plainly", "redisson Client.hear",
		"case cluster:", "case func() bool { _, alone := c.rdb.(*redis.Client); return !alone }():",
		[]string{"TestUnlocksOfAHiddenClientArePublishedPlainly"},
	},
	{
		"the contexts of a hold end as it is handed over", ". Hold.detach",
		"cancel(); if err = d.send(request); err != nil {", "if err = d.send(request); err != nil { cancel()",
		[]string{"TestDetachEndsTheContextsOfItsHold"},
	},
	{
		"a loss that its unlock finds is told to the hook", ". Hold.end",
		"if err != nil && err != errAbsent { k.end(at); return err }", "if err != nil && err != errAbsent { _ = k.endUntold(at); return err }",
		[]string{"TestALossThatItsUnlockFindsIsToldToTheHookAndTheLog"},
	},
	{
		"what is no loss is logged as a warning", ". watchdog.pollBatch",
		"c.cfg.log.Warn", "c.cfg.log.Error",
		[]string{"TestWhatFailsInAnOutageIsLoggedEverLessOftenAndByItsName"},
	},
	{
		"TryRLock waits no longer than it was told", ". RWLock.TryRLock",
		"TryLock(ctx, wait)", "TryLock(ctx, 2*wait)",
		[]string{"TestTryLockOfEitherSideWaitsForAsLongAsItWasTold"},
	},
	{
		"TryLock for writing waits no longer than it was told", ". RWLock.TryLock",
		"TryLock(ctx, wait)", "TryLock(ctx, 2*wait)",
		[]string{"TestTryLockOfEitherSideWaitsForAsLongAsItWasTold"},
	},
	{
		"a ticket keeps the MaxHold of its hold", ". ticket.lock",
		"MaxHold: t.MaxHold,", "",
		[]string{"TestTheMaxHoldOfATicketBeginsAgain"},
	},
	{
		"who resumes a hold asks the replicas of its ticket", ". ticket.lock",
		"room.Replicas{N: t.Replicas, Timeout: t.Within}", "room.Replicas{Timeout: t.Within}",
		[]string{"TestATicketOfReplicasThatDoNotAcknowledgeIsReleased"},
	},
	{
		"an election tells of a release that is not confirmed", ". Election.serve",
		"lost, err = errors.Is(end, ErrLost), ending.Join(err, end)", "lost = errors.Is(end, ErrLost)",
		[]string{"TestElectionSaysThatTheEndOfItsTermIsNotConfirmed"},
	},
	{
		"an election of a name of another kind ends", ". Election.Run",
		"case !ending.Is(err, ErrReplicas):", "case !ending.Is(err, ErrReplicas) && !ending.Is(err, ErrKind):",
		[]string{"TestElectionThatCannotBeIsRefused"},
	},
	{
		"an observer asks every second at least", ". Election.Observe",
		"min(e.lock.terms.TTL/3, time.Second)", "max(e.lock.terms.TTL/3, time.Second)",
		[]string{"TestElectionIsObservedAsOftenAsItsTTLAllows"},
	},
	{
		"an observer asks every third of a short TTL", ". Election.Observe",
		"min(e.lock.terms.TTL/3, time.Second)", "time.Second",
		[]string{"TestElectionIsObservedAsOftenAsItsTTLAllows"},
	},
	{
		"an error of a leader comes without a holder", ". Election.Leader",
		"if err != nil { return Holder{}, err }", "if err != nil { return Holder{TTL: e.lock.terms.TTL}, err }",
		[]string{"TestElectionIsObserved"},
	},
	{
		"a WaitFor of no time gives up the lock", ". Cond.WaitFor",
		"return c.wait(ctx, &d)", "if d <= 0 { return false, c.bad() }; return c.wait(ctx, &d)",
		[]string{"TestWaitForEndsAtItsInstant"},
	},
	{
		"Unlock of a quorum's lock leaves the holds of Acquire", ". QuorumLock.acquire",
		"l.register.Add(h, m.unlock)", "l.register.Add(h, true)",
		[]string{"TestQuorumUnlocksOncePerSuccess"},
	},
	{
		"the last Trace counts", ". Trace",
		"c.hooks = h", "c.hooks = c.hooks.Join(h)",
		[]string{"TestOfSeveralTracesTheLastCounts"},
	},
	{
		"several Defaults add up", ". Defaults",
		"c.terms.with(opts)", "terms{Terms: room.Terms{TTL: defaultTTL}}.with(opts)",
		[]string{"TestDefaultsAreWhatHandlesDoNotSay"},
	},
	{
		"a hold is as old as its last wait", "internal/room Session.wake",
		"h.Token, h.Acquired = token, at.Now", "h.Token = token",
		[]string{"TestHeldOfAHookBeginsAgainAfterAWait"},
	},
	{
		"renewals are told with the newest hold", "internal/room Session.Newest",
		"return s.holds.last()", "return s.holds.first",
		[]string{"TestHooksOfARenewalGetTheNewestHold"},
	},
	{
		"several locks are trusted as long as the first to end", ". MultiHold.TrustedUntil",
		"return quorum.Trust(len(untils), untils)", "return untils[len(untils)-1]",
		[]string{"TestMultiIsLostWithTheFirstThatIsLost"},
	},
	{
		"several locks of which one excludes have every owner", ". NewMulti",
		"!slices.ContainsFunc(locks, func(l *Lock) bool { return !l.read })", "slices.ContainsFunc(locks, func(l *Lock) bool { return l.read })",
		[]string{"TestAMultiOfOneLockAndSemaphoresIsOfEveryOwner"},
	},
	{
		"a client that shuts down begins no wait", ". awaiting.beginWait",
		"if k.c.tracker.Draining() {", "if false {",
		[]string{"TestAWaitOfAClientThatShutsDownGivesUpNothing"},
	},
	{
		"a semaphore has as many permits as is said", ". permitsFor",
		"permits > math.MaxInt32", "permits >= math.MaxInt32",
		[]string{"TestASemaphoreHasUpToTwoToTheThirtyFirstLessOnePermits"},
	},
	{
		"replicas have a quarter of the TTL", ". ackShare",
		"4", "2",
		[]string{"TestReplicasHaveTheBoundsThatAreDocumented"},
	},
	{
		"sixteen replicas can be asked", ". Replicas",
		"n > maxReplicas", "n >= maxReplicas",
		[]string{"TestReplicasHaveTheBoundsThatAreDocumented"},
	},
	{
		"replicas can be given a millisecond", ". Replicas",
		"timeout, time.Millisecond, maxAckTime", "timeout, 10*time.Millisecond, maxAckTime",
		[]string{"TestReplicasHaveTheBoundsThatAreDocumented"},
	},
	{
		"a quorum looks for clients of one server ever again", ". seldom",
		"return count&(count-1) == 0", "return count <= 2",
		[]string{"TestQuorumLooksForClientsOfOneServerSeldomAndEverAgain"},
	},
	{
		"nobody who waits is nil", ". Lock.Waiters",
		"var all []Waiter", "all := []Waiter{}",
		[]string{"TestInfoOfANameNobodyUses"},
	},
	{
		"nobody on a condition is nil", ". Cond.Waiters",
		`for from := "";`, `all = []Waiter{}; for from := "";`,
		[]string{"TestInfoOfANameNobodyUses"},
	},
	{
		"a read is tried three times", ". tries",
		"n < 3", "n < 2",
		[]string{"TestWhatIsReadIsAskedForThreeTimes"},
	},
	{
		"a log says that there was a ticket", ". Ticket.LogValue",
		`"a ticket"`, `""`,
		[]string{"TestATicketIsNotLogged"},
	},
	{
		"a rest is forced by the clock of redis", ". forceHolders",
		"if there.Resting > 0 {", "if now = time.Now().UnixMilli(); there.Resting > 0 {",
		[]string{"TestForceUnlockEndsARestByTheClockOfRedis"},
	},
	{
		"what cuts a forced unlock short can be told", ". forceHolders",
		"case err != nil: return ended, err", `case err != nil: return ended, fmt.Errorf("%d of %d grants have ended: %v", len(ended.Holders), len(there.Holders), err)`,
		[]string{"TestForceUnlockThatIsCutShortHalfwayHasTheErrorsOfInfo"},
	},
	{
		"a Multi asks again however often it loses what it has", ". Multi.acquire",
		"if !ending.Pause(", "if try == 3 || !ending.Pause(",
		[]string{"TestMultiAsksAgainHoweverOftenItLosesWhatItHas"},
	},
	{
		"an attempt waits until all that calls have left is removed", "internal/leaving Book.Await",
		"case <-done:", "case <-done: return",
		[]string{"TestAnAttemptWaitsUntilAllEndedCallsHaveLeft"},
	},
	{
		"relocktest: a call of a Fake that has ended is not unlocked", "relocktest Fake.take",
		"f.place() <- struct{}{}", "f.mu.Lock(); f.held = true; f.mu.Unlock(); f.place() <- struct{}{}",
		[]string{"TestUnlockOfAFakeAfterACallThatHasEndedEndsNoHoldOfAnother"},
	},
	{
		"otel: a name that was told is no other one later", "otelrelock collapsed.tell",
		"c.mu.RUnlock()", `full := len(c.known) >= mostNames; c.mu.RUnlock(); if full { return "other" }`,
		[]string{"TestANameThatWasToldIsToldBesideTwoHundred"},
	},
	{
		"replicas answer sooner than a Cluster's client stops reading", "internal/transport New",
		"t.many, t.plain, t.ReadTimeout = c, c.Options().TLSConfig == nil, c.Options().ReadTimeout", "t.many, t.plain = c, c.Options().TLSConfig == nil",
		[]string{"TestReplicasThatTakeAsLongAsAUsualReadAreRefused"},
	},
	{
		"a context knows the holds outside one of another kind", ". FromContext",
		"if held, is := c.Hold.(*Hold); is && held.Name() == name {", "held, is := c.Hold.(*Hold); if !is { return nil, false }; if held.Name() == name {",
		[]string{"TestContextKnowsTheHoldsOutsideOneOfAQuorum"},
	},
	{
		"relocktest: a partition closes no connection", "relocktest Server.Partition",
		"s.befall((*redistest.Link).Hole, clients)", "s.befall(func(l *redistest.Link) func() { l.Cut()(); return l.Hole() }, clients)",
		[]string{"TestAPartitionClosesNoConnection"},
	},
	{
		"a Multi gives back what another owner is refused", ". Multi.lock",
		"h.giveBack(ctx)", "",
		[]string{"TestAMultiOfSemaphoresGivesBackWhatAnotherOwnerIsRefused"},
	},
	{
		"a loss that came before its hold was told is an ErrLost", ". Hold.acquiredHook",
		"lostFor(h.hold.Why())", "h.hold.Why()",
		[]string{"TestALossDuringTheAcquiredHookIsToldAfterIt"},
	},
	{
		"contenders queue at the first primary that answers", "internal/quorum Majority.first",
		"if m.hold != nil || m.answered {", "if m.hold != nil || true {",
		[]string{"TestWhereTheFirstPrimaryIsSilentCallsQueueAtTheNext"},
	},
	{
		"who has waited before queues at its own kind only", "lua/acquire.lua",
		"fields[1] ~= ARGV[4] and fields[4] == ARGV[1] and", "fields[1] ~= ARGV[4] and",
		[]string{"TestANameInUseInAnotherLayoutIsRefusedToWhoHasWaitedBefore"},
	},
	{
		"gocron: a name rests for no longer than nine tenths", "contrib/gocron Locker",
		"every / 10 * 9", "every",
		[]string{"TestALockerTakesAnIntervalOfAnyLength"},
	},
	{
		"an election drops no nil option", ". Client.NewElection",
		"slices.Concat(opts, []LockOption{Fair(), oneToken})...", "slices.DeleteFunc(slices.Concat(opts, []LockOption{Fair(), oneToken}), func(o LockOption) bool { return o == nil })...",
		[]string{"TestElectionThatCannotBeIsRefused"},
	},
	{
		"half of the primaries are no majority that has answered", "internal/quorum Majority.tally",
		"case answered >= need:", "case 2*answered >= n:",
		[]string{"TestAQuorumOfWhichHalfAnswerTellsAnOutage"},
	},
	{
		"relocktest: a lock is free once nobody waits for it", "relocktest Server.AssertFree",
		"func(i relock.Info) bool { return len(i.Holders) == 0 && i.Waiters == 0 && i.CondWaiters == 0 }",
		"func(i relock.Info) bool { return len(i.Holders) == 0 }",
		[]string{"TestAssertFreeInRealTimeWaitsForWhoWaits"},
	},
	{
		"relocktest: AssertFree waits in real time", "relocktest Server.AssertFree",
		"func(i relock.Info) bool { return len(i.Holders) == 0 && i.Waiters == 0 && i.CondWaiters == 0 }",
		"func(relock.Info) bool { return true }",
		[]string{"TestAnAssertionInRealTimeWaitsAndGivesUp"},
	},
	{
		"a nested call of a semaphore is judged by its own permits", ". waitsForItself",
		"used+p.Weight > p.Of", "used+p.Weight > min(p.Of, grants[0].Terms.Permits.Of)",
		[]string{"TestANestedCallOfASemaphoreIsJudgedByItsOwnPermits"},
	},
	{
		"readers and writers that wait share their heartbeats", ". watchdog.poll",
		"for batch := range slices.Chunk(waiters, maxPolled) { w.pollBatch(ctx, k, batch) }",
		"for _, read := range []bool{false, true} { mode := slices.DeleteFunc(slices.Clone(waiters), func(q room.Request) bool { return q.Read != read }); for batch := range slices.Chunk(mode, maxPolled) { w.pollBatch(ctx, k, batch) } }",
		[]string{"TestReadersAndWritersThatWaitShareTheirHeartbeats"},
	},
	{
		"a branch is told on the channel of its client", "lua/shared_settle.lua",
		"tell(session.client, 'ended ' .. session.nonce)", "redis.pcall('PUBLISH', inbox_prefix .. session.client, 'ended ' .. session.nonce)",
		[]string{"TestShardedBranchIsToldOfTheEndOfItsAncestorByNoPlainMessage"},
	},
	{
		"a renewal that is refused is no loss", ". watchdog.unrenewed",
		"fails := st.Unrenewed(short, &soon, &at)",
		"if transport.Classify(err) == transport.Refused { st.Session.Lose(err, &at); k.end(&at); continue }; fails := st.Unrenewed(short, &soon, &at)",
		[]string{"TestARenewalThatRedisRefusesIsTriedAgain"},
	},
	{
		"relocktest: Lock of a Fake waits however long", "relocktest Fake.Lock",
		"select { case <-f.place(): return f.take(ctx); case <-ctx.Done(): return ending.Of(ctx) }",
		"for { if got, err := f.TryLock(ctx, time.Minute); got || err != nil { return err } }",
		[]string{"TestLockOfAFakeWaitsUntilTheLockIsFree"},
	},
	{
		"a lock that may be kept has the lease of any other", ". wireRequest",
		"TTL: a.Terms.TTL, Rest: rest", "TTL: a.Terms.TTL + a.Terms.Sticky, Rest: rest",
		[]string{"TestAKeptLockOfADeadProcessIsFreeAfterItsLease"},
	},
	{
		"a grant of few tokens that may be kept is shown as one", "internal/wire DecodeInfo",
		"room.Keepable(low, high)", "high-low+1 >= 10_000 && room.Keepable(low, high)",
		[]string{"TestAKeptLockOfFewTokensIsShownAsSticky"},
	},
	{
		"every loss that an unlock finds is told", ". Hold.end",
		"if err != nil && err != errAbsent { k.end(at); return err }",
		"if err != nil && err != errAbsent { if losses := k.endUntold(at); len(losses) > 0 { k.c.tellApart(losses[0]) }; return err }",
		[]string{"TestAnUnlockThatFindsTheLossOfTwoHoldsTellsOfBoth"},
	},
	{
		"a try ends at once where too few replicas have the grant", ". waiting.restart",
		"case !ending.Is(err, errGone): return false, err",
		"case ending.Is(err, ErrReplicas) && w.falseIfTaken && ending.Pause(w.ctx, w.keeper.c.draining, transport.Backoff(1)): return true, nil; case !ending.Is(err, errGone): return false, err",
		[]string{"TestReplicasTooFewEndATryAtOnce"},
	},
	{
		"fence: a script uses no key but its fence and its keys", "fence NewScript",
		"compare + source", `"redis.call('GET', KEYS[1] .. ARGV[1])\n" + compare + source`,
		[]string{"TestAScriptRunsInAClusterIfItsKeysHaveOneHashTag"},
	},
	{
		"a grant with any number of holds lets the name rest", ". acquisition.journalEntry",
		"a.Session.Used <= 0", "a.Session.Used != 1",
		[]string{"TestANameRestsAlsoAfterALocalReentry"},
	},
}
