package mutation

// serverRules are those for servers that refuse what others allow.
var serverRules = []Rule{
	{
		"a client on sharded channels needs no publish", "lua/permit.lua",
		"if ARGV[1] ~= '' then\n  note('pubsub|numsub'", "if true then\n  note('pubsub|numsub'",
		[]string{"TestShardedPermissionsAreEnoughAndEachIsNamed"},
	},
	{
		"a client on sharded channels says that it needs no publish", "internal/access Checker.ask",
		`if l.Sharded() { inbox = ""`, `if false { inbox = ""`,
		[]string{"TestShardedPermissionsAreEnoughAndEachIsNamed"},
	},
	{
		"the option is named that a server needs", "lua/permit.lua",
		"type(redis.pcall('SPUBLISH', ARGV[2], 'echo')) == 'number' then", "false then",
		[]string{"TestFirstErrorNamesTheRestriction"},
	},
	{
		"no option is named that does not help", "lua/permit.lua",
		"if #refused > before and type(redis.pcall('SPUBLISH', ARGV[2], 'echo')) == 'number' then", "if #refused > before then",
		[]string{"TestFirstErrorNamesTheRestriction"},
	},
	{
		"an option is named only where nothing else is refused", "internal/access Checker.ask",
		"lacks.Sharded != \"\" && len(lacks.Refused) == 1:", "lacks.Sharded != \"\":",
		[]string{"TestFirstErrorNamesTheRestriction"},
	},
	{
		"a database that may be refused is named", "internal/access Checker.needs",
		"if c.cfg.Database != 0 {", "if false {",
		[]string{"TestFirstErrorNamesTheRestriction"},
	},
	{
		"an endpoint for reading is named", ". requestError.Error",
		"if transport.ReadOnly(e.err) {", "if false {",
		[]string{"TestFirstErrorNamesTheRestriction"},
	},
	{
		"a server that may take TLS only is named", "internal/transport Transport.hinted",
		"case t.plain && !ending.In(err)", "case false && !ending.In(err)",
		[]string{"TestFirstErrorNamesTheRestriction"},
	},
	{
		"a client with TLS is not told of TLS", "internal/transport Transport.hinted",
		"case t.plain && !ending.In(err)", "case !ending.In(err)",
		[]string{"TestEveryKindOfFirstCallSuggestsTLS"},
	},
	{
		"a server that has answered is not taken for one of TLS only", "internal/transport Transport.hinted",
		"if t.everAnswered.Load() {", "if false {",
		[]string{"TestServerThatHasAnsweredIsNotTakenForOneOfTLS"},
	},
	{
		"the doctor publishes outside the slot, as locks do", "cmd/relock doctor.echo",
		"d.at.prefix+\":doctor:\"+uuid.NewString(), plainEcho", "key, plainEcho",
		[]string{"TestDoctorNamesWhatAHosterRefuses"},
	},
	{
		"the doctor looks for TLS", "cmd/relock doctor.unreachable",
		"hungUp(failed) && takesTLS(ctx, o):", "false:",
		[]string{"TestDoctorNamesAServerThatTakesTLSOnly"},
	},
	{
		"the doctor looks for an endpoint for reading", "cmd/relock checkup.writes",
		"if redis.IsReadOnlyError(err) && !c.replica {", "if false {",
		[]string{"TestDoctorNamesWhatAHosterRefuses"},
	},
	{
		"the doctor knows that locks need a permission for CLUSTER", "cmd/relock checkup.commands",
		`command.name == "CLUSTER" && redis.IsPermissionError(err)`, "false",
		[]string{"TestDoctorDoesNotCallACommandUnneededThatLocksNeed"},
	},
	{
		"a command uses sharded channels where it is told to", "cmd/relock server.open",
		"if s.sharded {", "if false {",
		[]string{"TestCommandsWorkOnShardedChannels"},
	},
	{
		"a server that takes no writes is not fit for locks", "lua/permit.lua",
		"return #refused == 0 and stopped or refused", "return refused",
		[]string{"TestCheckSeesWhatChangesLater"},
	},
	{
		"a check asks each time", "internal/access Checker.Probe",
		"c.ask(ctx, limit, hash, l, false)", "error(nil)",
		[]string{"TestCheckCostsTwoScriptsAtFirstAndLaterOne"},
	},
	{
		"a check waits for its echo", "internal/listener Listeners.HearEcho",
		"late := time.NewTimer(echoGrace)", "if l.Up() { return nil }; late := time.NewTimer(echoGrace)",
		[]string{"TestCheckFailsIfTheInboxHearsNothing"},
	},
	{
		"an echo of another channel is no proof", "internal/listener Listeners.HearEcho",
		"if !l.Heard().Before(sent.Time()) {", "if !l.Heard().Before(sent.Time()) || true {",
		[]string{"TestAnEchoIsHeardOnItsOwnLinkOrTheLinkIsGivenUp"},
	},
	{
		"a link that hears no echo is made anew", "internal/listener Listeners.HearEcho",
		"l.Suspect()", "",
		[]string{"TestCheckMendsALinkThatHearsNothing"},
	},
	{
		"what a server lacks is no outage", "internal/access refusal.RedisError",
		"func (refusal) RedisError() {}", "func (refusal) redisError() {}",
		[]string{"TestARefusalIsNoOutage", "TestCheckNamesEveryMissingPermission"},
	},
	{
		"a check ends after three tries", ". Client.check",
		"tries < 3", "tries > 0",
		[]string{"TestCheckTriesThreeTimes"},
	},
	{
		"a check asks for WAIT where replicas are wanted", ". Client.check",
		"err == nil && c.cfg.terms.Replicas.N > 0", "err == nil",
		[]string{"TestCheckAsksForTheFirstLock"},
	},
	{
		"a check of a client that ends is refused", ". Client.check",
		"case c.tracker.Draining():", "case false:",
		[]string{"TestCheckOfAClientThatEndsIsErrClosed"},
	},
	{
		"a check ends with its context", ". Client.check",
		"case ctx.Err() != nil:", "case false:",
		[]string{"TestCheckEndsWithItsContext"},
	},
}
