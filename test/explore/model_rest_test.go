package explore_test

// rest has the name rest after a grant that begins: so long from now, or until the next
// multiple of that. What was written is kept until the next grant.
func (m *modelLock) rest(nonce string, op int64, said string) {
	if said == "" {
		m.rests = 0
		return
	}
	length := number(said[1:])
	m.rests, m.rester, m.restOp = m.now+length, nonce, op
	if said[0] == '%' {
		m.rests -= m.now % length
	}
}

// joined has the name rest whatever becomes of the call that was granted it: another has joined the grant.
func (m *modelLock) joined() {
	if m.rests > 0 {
		m.rester, m.restOp = "-", 0
	}
}

// resting is for how long nobody can hold, though nobody does.
func (m *modelLock) resting() int64 {
	if m.leased() > 0 {
		return 0
	}
	return max(m.rests-m.now, 0)
}

// rests says whether names of the run's kind of lock can rest.
func (r *modelRun) rests() bool { return r.kind() == "plain" || r.kind() == "fair" }
