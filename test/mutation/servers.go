package mutation

// serverRules are those for servers that refuse what others allow.
var serverRules = []Rule{
	{
		"a client on sharded channels needs no publish", "lua/permit.lua",
		"if ARGV[1] ~= '' then\n  try('pubsub|numsub'", "if true then\n  try('pubsub|numsub'",
		[]string{"TestShardedPermissionsAreEnoughAndEachIsNamed"},
	},
	{
		"a client on sharded channels says that it needs no publish", "internal/access Checker.Run",
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
		"an option is named only where nothing else is refused", "internal/access Checker.Run",
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
		"a server that has answered is not taken for one of TLS only", "internal/transport Transport.hinted",
		"if t.met.Load() {", "if false {",
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
		"a command uses sharded channels where it is told to", "cmd/relock server.connect",
		"if s.sharded {", "if false {",
		[]string{"TestCommandsWorkOnShardedChannels"},
	},
}
