package mutation

// adapterRules are those of the modules for OpenTelemetry, cron and gocron.
var adapterRules = []Rule{
	{
		"otel: a downgraded hold ends where it was counted", "otelrelock modes.count",
		"by < 0 && n[side] <= 0 && n[1-side] > 0", "false",
		[]string{"TestDowngradedHoldIsHeldNoLongerThanItLasts", "TestModesAreForgottenWithTheirHolds"},
	},
	{
		"otel: the outcome of a wait is not the cause of its context", "otelrelock ofWait",
		"ending.Is(err, relock.ErrNotAcquired)", "errors.Is(err, relock.ErrNotAcquired)",
		[]string{"TestOutcomeOfAWaitIsNotTheCauseOfItsContext"},
	},
	{
		"otel: an outage is told before the end of the context", "otelrelock ofWait",
		"ending.Is(err, relock.ErrUnavailable) &&", "ending.Is(err, relock.ErrUnavailable) && !ending.Is(err, context.DeadlineExceeded) &&",
		[]string{"TestAnOutageIsToldAsAnErrorHoweverItsCallEnds"},
	},
	{
		"otel: an outage is told though its call was cancelled", "otelrelock ofWait",
		"e.Waited > calm ||", "",
		[]string{"TestAnOutageIsToldAsAnErrorHoweverItsCallEnds"},
	},
	{
		"otel: a call that is cancelled early is no outage", "otelrelock ofWait",
		"e.Waited > calm ||", "e.Waited > 0 ||",
		[]string{"TestACallThatIsCancelledEarlyIsNoOutage"},
	},
	{
		"otel: an outage of another call is none of this one", "otelrelock ofWait",
		"ending.Is(err, relock.ErrUnavailable)", "errors.Is(err, relock.ErrUnavailable)",
		[]string{"TestACallThatIsCancelledEarlyIsNoOutage"},
	},
	{
		"otel: a loss that a release finds is counted", "otelrelock measures.hooks",
		"if isLoss(e) {", "if false {",
		[]string{"TestLossIsCountedOnceWhoeverFindsIt"},
	},
	{
		"otel: a loss has its reason", "otelrelock reason",
		"return loss.Of(err)", "return loss.Other",
		[]string{"TestLossesAreCountedByTheirReason"},
	},
	{
		"otel: losses are told as 0 before the first", "otelrelock measures.of",
		"if r != loss.Closed {", "if r == loss.Closed {",
		[]string{"TestLossesAreToldAsNoneBeforeTheFirst"},
	},
	{
		"otel: names are told up to what differs", "otelrelock collapsed.tell",
		`name = lock[:at] + "*"`, "_ = at",
		[]string{"TestNamesAreCollapsed"},
	},
	{
		"otel: after 200 names all are others", "otelrelock collapsed.tell",
		"len(c.known) >= mostNames", "false",
		[]string{"TestNamesAreCollapsed"},
	},
	{
		"otel: a call that gives up begins no trace", "otelrelock spans.asked",
		"|| !trace.SpanFromContext(ctx).IsRecording()", "",
		[]string{"TestCallsWithoutASpanHaveNone"},
	},
	{
		"otel: a hold begins no trace", "otelrelock spans.acquired",
		"parent.IsRecording()", "true",
		[]string{"TestCallsWithoutASpanHaveNone"},
	},
	{
		"otel: a nested hold without a span takes none of its owner's", "otelrelock spans.acquired",
		"if o.parent == nil && !several {", "if o.parent == nil {",
		[]string{"TestAHoldWithoutASpanEndsNoSpanOfItsOwner"},
	},
	{
		"otel: an older hold without a span takes none of a newer one", "otelrelock spans.take",
		"at.token < e.Token", "true",
		[]string{"TestAnOlderHoldWithoutASpanEndsNoSpanOfANewerOne"},
	},
	{
		"otel: a short hold has no span", "otelrelock spans.ended",
		"|| e.Err == nil && e.Held < s.from", "",
		[]string{"TestSpansAreOfWhatLasts"},
	},
	{
		"otel: a hold's span is below its own call", "otelrelock spans.take",
		"at.token == e.Token", "true",
		[]string{"TestHoldsOfTwoTokensHaveTheSpansOfTheirOwnCalls"},
	},
	{
		"cron: a name rests after a short job", "contrib/cron Once",
		"every / 10 * 9", "every / 1000",
		[]string{"TestAJobRunsOnceThoughClocksDiffer"},
	},
	{
		"cron: a name rests for less than the interval", "contrib/cron Once",
		"every / 10 * 9", "every * 2",
		[]string{"TestAJobRunsOnceThoughClocksDiffer", "TestAnIntervalOfAnyLengthIsTaken"},
	},
	{
		"cron: an interval may be of any length", "contrib/cron Once",
		".Truncate(time.Millisecond)", "",
		[]string{"TestAnIntervalOfAnyLengthIsTaken"},
	},
	{
		"a key that cannot be read is no outage", "relockweb site.readList",
		"unread = unread || info.Name == \"\"", "unread = true",
		[]string{"TestAKeyThatCannotBeReadIsNoOutage"},
	},
	{
		"a step of the scan that failed is made again", ". scan.server",
		"err == nil { from = next }", "true { from = next }",
		[]string{"TestLocksGoesOnWhereAStepHasFailed"},
	},
	{
		"a command that was started has run, however it ended", "cmd/relock job.once",
		"|| !j.started", "|| !j.started || status == exitNotFound || status == exitNotExecutable",
		[]string{"TestRunEveryOfACommandThatEndsAsIfItWereNotFoundHasRun"},
	},
	{
		"relocktest: a lock is not free while somebody waits on a condition of it", "relocktest Server.AssertFree",
		"|| info.CondWaiters > 0", "",
		[]string{"TestWhatIsNotSoFailsTheTest"},
	},
	{
		"cron: no run enters another's lock", "contrib/cron Once",
		"relock.WithNewOwner(context.Background())", "context.Background()",
		[]string{"TestAJobOfAnOwnerIsRefused"},
	},
	{
		"gocron: no scheduler enters another's lock", "contrib/gocron locker.Lock",
		"relock.WithNewOwner(ctx)", "ctx",
		[]string{"TestALockerOfAnOwnerIsRefused"},
	},
	{
		"cron: the second does not wait", "contrib/cron Once",
		"TryDo(relock.WithNewOwner(context.Background()), 0,", "TryDo(relock.WithNewOwner(context.Background()), 2*every,",
		[]string{"TestAJobRunsOnceThoughClocksDiffer"},
	},
	{
		"cron: a failure is told as an error", "contrib/cron Once",
		"case err != nil:", "case err != nil && ran:",
		[]string{"TestWhatGoesWrongIsLogged"},
	},
	{
		"cron: a skipped run is told", "contrib/cron Once",
		"case !ran:", "case false:",
		[]string{"TestAJobRunsOnceThoughClocksDiffer"},
	},
	{
		"cron: a job that goes on after a loss is skipped", "contrib/cron Once",
		"!ran && errors.Is(err, relock.ErrLost)", "false",
		[]string{"TestAJobThatGoesOnAfterALossIsSkipped"},
	},
	{
		"cron: no logger means silence", "contrib/cron Once",
		"logger = cron.DiscardLogger", "_ = logger",
		[]string{"TestWithoutALoggerNothingIsSaid"},
	},
	{
		"gocron: a name rests after a short job", "contrib/gocron Locker",
		"every / 10 * 9", "every / 1000",
		[]string{"TestAShortJobRunsOnceThoughSchedulersAreShifted"},
	},
	{
		"gocron: an interval may be of any length", "contrib/gocron Locker",
		".Truncate(time.Millisecond)", "",
		[]string{"TestALockerTakesAnIntervalOfAnyLength"},
	},
	{
		"gocron: a Locker has its own interval", "contrib/gocron Locker",
		"slices.Clip(opts)", "slices.Grow(opts, 0)",
		[]string{"TestLockersOfOneListOfOptionsHaveTheirOwnIntervals"},
	},
	{
		"gocron: the second scheduler does not wait", "contrib/gocron locker.Lock",
		"TryAcquire(relock.WithNewOwner(ctx), 0)", "TryAcquire(relock.WithNewOwner(ctx), time.Minute)",
		[]string{"TestWhoComesSecondIsTold"},
	},
	{
		"gocron: an outage is told as one", "contrib/gocron locker.Lock",
		"return nil, err", "return nil, relock.ErrNotAcquired",
		[]string{"TestWhoComesSecondIsTold"},
	},
	{
		"gocron: a lock is unlocked though the scheduler has ended", "contrib/gocron held.Unlock",
		"context.Context) error {", "ctx context.Context) error { if ctx.Err() != nil { return ctx.Err() };",
		[]string{"TestWhoComesSecondIsTold"},
	},
	{
		"gocron: a process that does not lead runs no job", "contrib/gocron elector.IsLeader",
		"case !e.election.IsLeader():", "case false:",
		[]string{"TestWhoDoesNotLeadIsTold", "TestOneProcessRunsTheJobsAndAnotherTakesOver"},
	},
	{
		"gocron: a scheduler that has ended runs no job", "contrib/gocron elector.IsLeader",
		"case ctx.Err() != nil:", "case false:",
		[]string{"TestWhoDoesNotLeadIsTold"},
	},
	{
		"gocron: a process leads until its term ends", "contrib/gocron Lead",
		"<-ctx.Done()", "",
		[]string{"TestOneProcessRunsTheJobsAndAnotherTakesOver"},
	},
	{
		"otel: a name is told up to a #", "otelrelock collapsed.tell",
		`"/:#{0123456789"`, `"/:{0123456789"`,
		[]string{"TestNamesAreCollapsed"},
	},
	{
		"otel: a name is told up to any digit", "otelrelock collapsed.tell",
		`"/:#{0123456789"`, `"/:#{012345678"`,
		[]string{"TestNamesAreCollapsed"},
	},
	{
		"otel: further names are other", "otelrelock collapsed.tell",
		`"other"`, `"others"`,
		[]string{"TestNamesAreCollapsed"},
	},
	{
		"otel: what lasts a millisecond has a span", "otelrelock New",
		"from: time.Millisecond", "from: 100 * time.Millisecond",
		[]string{"TestSpansAreOfWhatLasts"},
	},
	{
		"otel: a span has the whole name", "otelrelock about",
		`attribute.String("relock.lock.name", e.Name)`, `attribute.String("relock.lock.name", new(collapsed).tell(e.Name))`,
		[]string{"TestSpansAreOfTheCallAndItsHold"},
	},
	{
		"otel: a hold that replicas did not have is lost for that", "internal/room expired.Unwrap",
		"[]error{loss.Replicas, ErrExpired, e.why}", "[]error{ErrExpired, e.why}",
		[]string{"TestALossForWantOfReplicasIsCountedAsOne"},
	},
	{
		"otel: a branch is lost for its ancestor", ". errAncestor",
		"loss.Ancestor", "loss.Other",
		[]string{"TestLossesAreCountedByTheirReason"},
	},
	{
		"otel: calls are counted as such", "otelrelock newMeasures",
		`metric.WithUnit("{call}")`, `metric.WithUnit("{wait}")`,
		[]string{"TestMetricsHaveTheirUnits"},
	},
	{
		"otel: the global tracers are the default", "otelrelock New",
		"tracers: otel.GetTracerProvider()", "tracers: trace.NewNoopTracerProvider()",
		[]string{"TestWithoutProvidersTheGlobalOnesAreTold"},
	},
	{
		"otel: an instrument that is refused is an error", "otelrelock newMeasures",
		"errors.Join(errs[:]...)", "errors.Join(errs[:0]...)",
		[]string{"TestAnInstrumentThatIsRefusedIsAnError"},
	},
	{
		"relocktest: a lost hold of a Fake is held", "relocktest Fake.Held",
		"return f.held", "return f.held && !f.lost",
		[]string{"TestALostHoldOfAFakeIsHeldUntilItsUnlock"},
	},
	{
		"relocktest: a Fake says that there was a hold to lose", "relocktest Fake.Lose",
		"return f.held", "return false",
		[]string{"TestALostHoldOfAFakeIsHeldUntilItsUnlock"},
	},
	{
		"relocktest: a call that waits does not fail as later ones do", "relocktest Fake.take",
		"if err := ending.Passed(ctx); err != nil {",
		"err := ending.Passed(ctx); if err == nil { err = f.enter(ctx) }; if err != nil {",
		[]string{"TestFailOfAFakeIsForCallsThatBegin"},
	},
	{
		"relocktest: an Unlock does not fail as calls do", "relocktest Fake.Unlock",
		"if !f.held {", "if f.fails != nil { return f.fails }; if !f.held {",
		[]string{"TestFailOfAFakeIsForCallsThatBegin"},
	},
	{
		"relocktest: somebody else waits for a Fake too", "relocktest Fake.Hold",
		"<-f.place()", "select { case <-f.place(): default: }",
		[]string{"TestAHoldOfAFakeIsTheOnlyOne"},
	},
	{
		"relocktest: a Fake is released once", "relocktest Fake.Hold",
		"sync.OnceFunc(func() { f.place() <- struct{}{} })", "func() { f.place() <- struct{}{} }",
		[]string{"TestAHoldOfAFakeIsTheOnlyOne"},
	},
	{
		"relocktest: exactly so many wait", "relocktest Server.AssertWaiting",
		"info.Waiters != n {", "info.Waiters < n {",
		[]string{"TestWhatIsNotSoFailsTheTest"},
	},
	{
		"relocktest: a release after a loss is none", "relocktest Server.Hold",
		"!errors.Is(err, relock.ErrLost) &&", "",
		[]string{"TestAReleaseAfterALossDoesNothing"},
	},
	{
		"relocktest: a loss of nobody ends the test", "relocktest Server.Lose",
		"case !removed: s.t.Fatalf(", "case !removed: s.t.Errorf(",
		[]string{"TestWhatEndsATestAndWhatLetsItGoOn"},
	},
	{
		"relocktest: a test goes on after an assertion", "relocktest Server.AssertHeld",
		"s.t.Errorf(", "s.t.Fatalf(",
		[]string{"TestWhatEndsATestAndWhatLetsItGoOn"},
	},
	{
		"relocktest: a bad option ends the test", "relocktest Server.open",
		"s.t.Fatalf(", "s.t.Errorf(",
		[]string{"TestWhatEndsATestAndWhatLetsItGoOn"},
	},
	{
		"relocktest: an assertion of what cannot be read ends the test", "relocktest Server.info",
		`s.t.Fatalf("relocktest: %v", err)`, "continue",
		[]string{"TestWhatEndsATestAndWhatLetsItGoOn"},
	},
	{
		"fence: what only begins with a digit is no token", "fence NewScript",
		"compare + source", `strings.ReplaceAll(compare, "'^[1-9]%d*$'", "'^%d'") + source`,
		[]string{"TestRedisRefusesWhatIsNoToken"},
	},
	{
		"fence: MySQL takes names of 512 bytes", "fence Dialect.Schema",
		"if d == MySQL { return $sql }",
		"if d == MySQL { return `CREATE TABLE IF NOT EXISTS relock_fences (resource VARBINARY(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB` }",
		[]string{"TestAnOlderTokenIsRefusedAndNamed/MariaDB"},
	},
	{
		"fence: a dialect is called as its database", "fence Dialect.String",
		`return "SQLite"`, `return "sqlite"`,
		[]string{"TestADialectIsCalledAsItsDatabase"},
	},
	{
		"gocron: a term ends with its cause", "contrib/gocron Lead",
		"return context.Cause(ctx)", "return ctx.Err()",
		[]string{"TestLeadReturnsTheCauseOfItsEnd"},
	},
	{
		"gocron: a leader whose scheduler has ended runs no job", "contrib/gocron elector.IsLeader",
		"case ctx.Err() != nil:", "case ctx.Err() != nil && !e.election.IsLeader():",
		[]string{"TestLeadReturnsTheCauseOfItsEnd"},
	},
}
