package check

type holdID struct {
	worker int
	id     int64
}

// fenced judges the store, by its own order of decisions, and by it the tokens:
// whoever is certainly valid must not be refused.
func (k *checker) fenced(s *story) {
	holds := map[holdID]*call{}
	if len(s.effects) > 0 {
		for _, c := range s.calls {
			holds[holdID{c.worker, c.id}] = c
		}
	}
	var newest effect // the accepted write with the largest token
	for _, e := range s.effects {
		c := holds[holdID{e.worker, e.id}]
		switch {
		case c == nil:
			k.violation(s, Malformed, e.t, e.t, "an effect of worker %d with id %d, which has no call", e.worker, e.id)
		case c.acquired != 0 && c.token != e.token:
			k.violation(s, Malformed, e.t, e.t, "an effect with token %d of %s", e.token, c)
		}
		k.report.Effects++
		if e.err == "" {
			k.accepted(s, e, newest)
			if !e.read && e.token >= newest.token {
				newest = e
			}
			continue
		}
		k.refused(s, e, newest, c, holds[holdID{newest.worker, newest.id}])
	}
}

func (k *checker) accepted(s *story, e, newest effect) {
	switch {
	case e.token < newest.token:
		k.violation(s, StaleEffect, newest.t, e.t, "the store took a write with token %d of worker %d after one with %d of worker %d",
			e.token, e.worker, newest.token, newest.worker)
	case e.token == newest.token && !e.read && !e.sameGrant(newest):
		k.violation(s, TokenRepeated, newest.t, e.t, "workers %d and %d wrote with one token, %d", newest.worker, e.worker, e.token)
	}
}

func (e effect) sameGrant(d effect) bool {
	if e.owner != "" || d.owner != "" {
		return e.owner == d.owner
	}
	return e.worker == d.worker && e.id == d.id
}

// refused judges a refusal of a hold's write for another hold's newest.
func (k *checker) refused(s *story, e, newest effect, c, other *call) {
	switch {
	case e.err == "twice" && c != nil && c.parted != nil && s.parted[c.token]:
		return // the token that its wait began with has been seen: unwaited
	case e.err != "stale":
		k.violation(s, TokenRepeated, newest.t, e.t, "the store refused token %d of worker %d: %s", e.token, e.worker, e.err)
		return
	case e.token >= newest.token:
		k.violation(s, FreshRefused, newest.t, e.t, "the store refused token %d, but had taken none that is larger (%d)", e.token, newest.token)
		return
	}
	k.report.Stale++
	if c != nil && other != nil && s.mayFall(other, c) {
		return
	}
	if c != nil && c.certain() && c.acquired <= e.t && e.t < c.end() && s.excuse(e.t, e.t, c.ttl) == nil {
		k.violation(s, HolderRefused, c.acquired, e.t, "%s was valid, and its write was refused for token %d of worker %d", c, newest.token, newest.worker)
	}
}
