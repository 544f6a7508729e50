package relock_test

// outageRules are those without which an outage looks like contention, or is
// never told.
var outageRules = []mutation{
	{
		"a full disk passes", "internal/transport/outcome.go",
		`"NOREPLICAS", "MISCONF",`, `"NOREPLICAS",`,
		[]string{"TestAFullDiskIsWaitedOut"},
	},
}
