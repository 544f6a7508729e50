package check

import (
	"slices"
	"time"
)

// notAfter is how long after it was sent a request may still be granted.
const notAfter = 10 * time.Second

// ghosts are the calls of named owners that made no hold that anybody knows of.
// Such a call may have joined its owner's grant all the same, and keep that alive.
func (s *story) ghosts() map[string][]*call {
	all := map[string][]*call{}
	for _, c := range s.calls {
		if c.acquired == 0 && c.owner != "" {
			all[c.owner] = append(all[c.owner], c)
		}
	}
	return all
}

// keeps says that one of the calls may have had a lease in Redis between two times.
func keeps(ghosts []*call, from, to int64) bool {
	return slices.ContainsFunc(ghosts, func(g *call) bool {
		over := g.over()
		return g.began <= to && (over == never || over+int64(notAfter)+int64(g.ttl) >= from)
	})
}
