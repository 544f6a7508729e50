package check

import (
	"slices"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// What a script may take of a server that others use as well, and what their
// answers may be late by.
const (
	scriptsWithin = 10 * time.Millisecond
	pingsWithin   = 10 * time.Millisecond
)

// alone is how much longer than that a script must have taken for one to be
// enough: less, and it may have been the hypervisor, who tells nobody.
const alone = 5

// tempo judges how long scripts kept a server from all others.
func (k *checker) tempo() {
	var long []history.Event
	for _, e := range k.scripts {
		took := time.Duration(e.By) - k.busy(e.T, e.Until)
		if k.serverFault(e.On, e.T, e.Until) || k.stepped(e.On, e.T, e.Until) {
			continue
		}
		if took > k.report.LongestScript {
			k.report.LongestScript, k.report.LongestScriptName = took, e.Err
		}
		if took > scriptsWithin {
			e.By = int64(took)
			long = append(long, e)
		}
	}
	k.report.LongScripts = len(long)
	for _, e := range long {
		if len(long) > 1 || time.Duration(e.By) > alone*scriptsWithin {
			k.violation(&story{}, SlowScript, e.T, e.Until, "a call of %s kept %s for %v; the bound is %v", e.Err, e.On, time.Duration(e.By), scriptsWithin)
		}
	}
	k.pinged()
}

// busy is for how long the machine kept a server from answering whom nobody uses,
// at most, at some time in between.
func (k *checker) busy(from, to int64) (most time.Duration) {
	for _, e := range k.pings {
		if e.On == control && e.By == 0 && e.T <= to && e.Until >= from {
			most = max(most, time.Duration(e.Until-e.T))
		}
	}
	return most
}

// pinged judges the answers to another client, beside those of a server that
// nobody uses.
func (k *checker) pinged() {
	counts, late := map[bool]int64{}, map[bool][]time.Duration{}
	for _, e := range k.pings {
		control := e.On == control
		counts[control] += e.By
		if e.By == 0 && (control || !k.serverFault(e.On, e.T, e.Until)) {
			late[control] = append(late[control], time.Duration(e.Until-e.T))
		}
	}
	r := &k.report
	r.Pings = counts[false]
	r.SlowestPings, r.ControlPings = percentile(late[false], counts[false]), percentile(late[true], counts[true])
	if bound := max(pingsWithin, 4*r.ControlPings); r.SlowestPings > bound {
		k.violation(&story{}, SlowServer, 0, 0, "of 100 pings of another client, the slowest took %v; the bound is %v, and a server that nobody uses took %v",
			r.SlowestPings, bound, r.ControlPings)
	}
}

// control is where pings go to a server that nobody uses.
const control = "control"

// percentile is the 99th of so many, of which only the late ones are known; 0: it
// was none of these.
func percentile(late []time.Duration, count int64) time.Duration {
	slices.SortFunc(late, func(a, b time.Duration) int { return compare(int64(b), int64(a)) })
	if at := count / 100; count > 0 && at < int64(len(late)) {
		return late[at]
	}
	return 0
}

// serverFault says that a fault kept servers of a deployment from answering.
func (k *checker) serverFault(on string, from, to int64) bool {
	return slices.ContainsFunc(k.faults, func(f *fault) bool {
		switch f.kind {
		case history.KillServer, history.RestartEmpty, history.StopServer, history.Failover, history.Migrate:
			return f.on == on && f.t <= to && f.until+int64(time.Second) >= from
		}
		return false
	})
}

// stepped says that the clock was stepped by which the server measures its scripts.
func (k *checker) stepped(on string, from, to int64) bool {
	return slices.ContainsFunc(k.faults, func(f *fault) bool {
		return (f.kind == history.ClockForward || f.kind == history.ClockBack) && f.on == on && f.t <= to && f.until >= from
	})
}

// keptBound is how much longer than three leases a lock may be kept that no call
// has: the last requests of who gave it up arrive late.
const keptBound = 2 * time.Second

// kept finds holders in Redis that no call has the hold of. Nobody works under
// such a lock, and somebody renews it.
func (k *checker) kept(s *story) {
	if len(s.kept) == 0 {
		return
	}
	all := s.works(func(*call) bool { return true })
	bound := int64(3*s.ttl + keptBound)
	for _, e := range s.kept {
		k.report.Kept++
		works := all
		if s.semaphore() { // others hold beside it, and each grant has a token
			works = s.works(func(c *call) bool { return c.token == e.Token })
		}
		if from, to := uncovered(e.T, e.Until, works); to-from > bound {
			k.violation(s, KeptForNobody, from, to, "redis kept it for %q (token %d) for %v, in which no call had a hold; the bound is %v",
				e.Owner, e.Token, time.Duration(to-from), time.Duration(bound))
		}
	}
}

// works are the times in which calls may have had holds.
func (s *story) works(of func(*call) bool) (works []reign) {
	for _, c := range s.calls {
		switch {
		case !of(c):
		case c.together && c.acquired == 0:
			works = append(works, reign{from: c.began, to: min(c.over(), c.began+int64(time.Hour)) + int64(c.ttl)})
		case c.acquired != 0 && c.confirmed:
			works = append(works, reign{from: c.granted(), to: c.left()})
		case c.acquired != 0:
			works = append(works, reign{from: c.granted(), to: c.end() + int64(c.ttl)})
		}
	}
	return join(works)
}

// granted is when the call may have been granted the lock at the earliest, as far
// as kept is concerned: its answer was not long under way.
func (c *call) granted() int64 {
	if c.together {
		return c.began
	}
	return max(c.began, c.acquired-int64(time.Second))
}

// lostBound is how long ago a hold may have been lost when its call returns it:
// the machine may come between.
const lostBound = 100 * time.Millisecond

// returnedLost finds calls that returned a hold which was no longer one.
func (k *checker) returnedLost(s *story) {
	for _, c := range s.calls {
		if c.stale <= lostBound {
			continue
		}
		from := c.acquired - int64(c.stale)
		stopped := slices.ContainsFunc(between(k.byWorker[c.worker], k.longest, from, c.acquired), func(f *fault) bool {
			return f.kind == history.StopWorker || f.kind == history.Stall
		})
		if !stopped {
			k.violation(s, ReturnedLost, from, c.acquired, "%s was given a hold that had been lost for %v", c, c.stale)
		}
	}
}
