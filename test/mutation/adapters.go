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
		"otel: a loss that a release finds is counted", "otelrelock measures.hooks",
		"if foundLost(e) {", "if false {",
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
}
