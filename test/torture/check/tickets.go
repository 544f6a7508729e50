package check

// handedOver says of each ticket until when it had its hold: until somebody began to
// resume it. All holds that are handed from one to the next, and the tickets between,
// have one owner in the history, and so one token; no other is let in between.
func (s *story) handedOver() {
	tickets := map[int64]*call{}
	for _, c := range s.calls {
		if c.ticket() {
			tickets[c.id] = c
		}
	}
	for _, c := range s.calls {
		t := tickets[c.resumes]
		if t == nil {
			continue
		}
		t.releasing = earlier(t.releasing, c.began)
		if c.acquired != 0 {
			t.released, t.confirmed = earlier(t.released, c.acquired), true
		}
	}
}

// tickets finds those that were resumed twice, or under another token.
func (k *checker) tickets(s *story) {
	tickets, first := map[int64]*call{}, map[int64]*call{}
	for _, c := range s.calls {
		if c.ticket() && c.acquired != 0 {
			k.report.Tickets++
			tickets[c.id] = c
		}
	}
	for _, c := range s.calls {
		if c.resumes == 0 || c.acquired == 0 {
			continue
		}
		k.report.Resumed++
		if t := tickets[c.resumes]; t != nil && t.token != c.token {
			k.violation(s, TicketBroken, t.acquired, c.acquired, "%s resumed a ticket for token %d", c, t.token)
		}
		other := first[c.resumes]
		if other == nil {
			first[c.resumes] = c
			continue
		}
		if !s.struck(min(c.began, other.began), max(c.acquired, other.acquired)) {
			k.violation(s, TicketBroken, other.began, c.acquired, "%s and %s resumed one ticket", other, c)
		}
	}
}
