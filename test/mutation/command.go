package mutation

// operatorRules are those of the command: what it says, how it ends, and what it leaves behind.
var operatorRules = []Rule{
	{
		"a full disk is a failure", "cmd/relock/main.go",
		"if status != 0 || t.unsaid == nil {", "if true {",
		[]string{"TestAFullDiskIsAFailure"},
	},
	{
		"a reader that has gone is none", "cmd/relock/main.go",
		" && !errors.Is(err, syscall.EPIPE)", "",
		[]string{"TestWhoHasGoneChangesNoExitStatus"},
	},
	{
		"a failure by somebody's hold says whose", "cmd/relock/output.go",
		"if taken, is := errors.AsType[takenError](err); is {", "if taken, is := errors.AsType[takenError](err); is && false {",
		[]string{"TestAWaitThatEndsSaysWhoHolds"},
	},
	{
		"a wait that ends asks who holds", "cmd/relock/run.go",
		"return hold, j.taken(ctx, lock, err)", "return hold, err",
		[]string{"TestAWaitThatEndsSaysWhoHolds"},
	},
	{
		"a name may begin with a dash", "cmd/relock/flags.go",
		"missing := min(names-len(words), len(args)-1)", "missing := 0",
		[]string{"TestANameMayBeginWithADash"},
	},
	{
		"a second dash dash may stand before the command", "cmd/relock/flags.go",
		"if missing > 0 && len(command) > 0", "if false && len(command) > 0",
		[]string{"TestANameMayBeginWithADash"},
	},
	{
		"an interval of nothing is refused", "cmd/relock/flags.go",
		"err != nil || *p > 0 {", "err != nil || *p >= 0 {",
		[]string{"TestAValueOfNothingIsRefused"},
	},
	{
		"a number lies within its bounds", "cmd/relock/flags.go",
		"*n.n < n.least || *n.n > n.most", "false",
		[]string{"TestAValueOfNothingIsRefused"},
	},
	{
		"help is there before the command too", "cmd/relock/flags.go",
		"\tif errors.Is(err, flag.ErrHelp) {\n\t\treturn []string{\"help\"}, nil\n\t}\n", "",
		[]string{"TestHelpAndVersionAreThereInEveryForm"},
	},
	{
		"a run that is skipped says so", "cmd/relock/every.go",
		"\t\tj.sayWhy(ctx, l)\n", "",
		[]string{"TestASkippedRunSaysWhy"},
	},
	{
		"a run that is skipped ends as it is told", "cmd/relock/every.go",
		"return j.unrun, nil", "return 0, nil",
		[]string{"TestASkippedRunSaysWhy"},
	},
	{
		"what others leave behind is reaped", "cmd/relock/supervise.go",
		"\t\twho = -1\n", "\t\t_ = who\n",
		[]string{"TestOrphansOfAContainerAreReaped"},
	},
	{
		"zombies of others hold up no end", "cmd/relock/supervise.go",
		" && (!closely || !onlyZombies(c.pid))", "",
		[]string{"TestZombiesHoldUpNoEndAfterALoss"},
	},
	{
		"the whole group is killed", "cmd/relock/supervise.go",
		"\t\t\tkill = nil\n\t\t\t_ = syscall.Kill(-c.pid, syscall.SIGKILL)\n\t\tcase ws", "\t\t\tkill = nil\n\t\t\t_ = syscall.Kill(c.pid, syscall.SIGKILL)\n\t\tcase ws",
		[]string{"TestTheWholeGroupIsKilledAfterTheGrace"},
	},
	{
		"a signal ends the last wait for a silent Redis", "cmd/relock/connect.go",
		"\t\tcase <-time.After(hasty):\n", "\t\tcase <-time.After(time.Hour):\n",
		[]string{"TestSignalEndsTheLastWaitForASilentRedis"},
	},
	{
		"TLS is named where it is missing", "cmd/relock/connect.go",
		"config != nil {", "false {",
		[]string{"TestUnreachableRedisIsToldWithItsReason"},
	},
	{
		"the page is this machine's by default", "cmd/relock/serve.go",
		"\"listen\", \"127.0.0.1:7365\", \"ADDR", "\"listen\", \":7365\", \"ADDR",
		[]string{"TestTheHelpSaysTheDefaults"},
	},
	{
		"the help says the lease that there is", "cmd/relock/lock.go",
		"\"ttl\", 30*time.Second", "\"ttl\", 20*time.Second",
		[]string{"TestTheHelpSaysTheDefaults"},
	},
	{
		"the help says the grace that there is", "cmd/relock/run.go",
		"\"grace\", 10*time.Second", "\"grace\", 5*time.Second",
		[]string{"TestTheHelpSaysTheDefaults"},
	},
	{
		"the prefix is taken from the environment", "cmd/relock/connect.go",
		"cmp.Or(lookup(env, \"RELOCK_PREFIX\"), \"relock\")", "\"relock\"",
		[]string{"TestPrefixIsTakenFromTheEnvironment"},
	},
	{
		"each host that is named is served", "cmd/relock/serve.go",
		"v.hosts = append(v.hosts, strings.ToLower(name))", "v.hosts = []string{strings.ToLower(name)}",
		[]string{"TestServeAnswersForEachHostThatIsNamed"},
	},
	{
		"quiet is silent after a signal", "cmd/relock/main.go",
		" || status >= exitSignal", "",
		[]string{"TestQuietIsSilentAfterASignal"},
	},
	{
		"a port in use is no wrong argument", "cmd/relock/serve.go",
		"errors.Is(err, syscall.EADDRINUSE) || ", "",
		[]string{"TestAPortInUseIsNoWrongArgument"},
	},
	{
		"a wait says that Redis does not answer", "cmd/relock/lock.go",
		"} else if ctx.Err() == nil {", "} else if false {",
		[]string{"TestAWaitSaysThatRedisDoesNotAnswer"},
	},
	{
		"nothing is said twice", "cmd/relock/connect.go",
		"\t\tlines = slices.DeleteFunc(", "\t\t_ = slices.DeleteFunc(slices.Clone(lines), func(string) bool { return true })\n\t\t_ = slices.DeleteFunc(",
		[]string{"TestAComplaintIsOneLine"},
	},
}
