package mutation

// familyRules are those of what is composed of locks.
var familyRules = []Rule{
	{
		"a context's hold is found by its name", "holdcontext.go",
		"if c.hold.Name() == name {", "if c.hold != nil {",
		[]string{"TestContextKnowsTheHoldsItDescendsFrom"},
	},
	{
		"a context knows its outer holds", "holdcontext.go",
		"			return c.hold, true\n		}\n", "			return c.hold, true\n		}\n		break\n",
		[]string{"TestContextKnowsTheHoldsItDescendsFrom"},
	},
	{
		"of several holds of a name the innermost is meant", "holdcontext.go",
		"			return c.hold, true\n		}\n	}\n	return nil, false", "			defer func() { h, ok = c.hold, true }()\n		}\n	}\n	return nil, false",
		[]string{"TestContextKnowsTheInnermostHoldOfAName"},
	},
}
