// Package check judges what a run of the torture rig leaves behind: it reads the
// histories of all processes, and looks for what a lock must not do, and for
// whether enough happened for that to mean something.
package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Options say how a run is judged.
type Options struct {
	Minimums  *Minimums     // what must have happened; nil: MinimumsFor the run's length
	WakeSlack time.Duration // by how much a wake-up may be later than a third of the TTL; 0: 500 ms
	CutoutDir string        // where the events around violations are written; "": the run's directory
	Cutouts   int           // how many at most; 0: 20, -1: none
}

// Run checks the histories in a directory. An error means that they could not be
// read; what they show is in the report.
func Run(dir string, o Options) (Report, error) {
	in, err := readDir(dir)
	if err != nil {
		return Report{}, err
	}
	if len(in.stories) == 0 && in.events == 0 {
		return Report{}, errors.New("check: no events in " + dir)
	}
	k := judge(in, o)
	if o.Cutouts >= 0 {
		if err := k.cutouts(dir); err != nil {
			return k.report, err
		}
	}
	return k.report, nil
}

// judge checks what was read.
func judge(in *input, o Options) *checker {
	if o.WakeSlack == 0 {
		o.WakeSlack = 500 * time.Millisecond
	}
	k := newChecker(in, o)
	for _, name := range slices.Sorted(maps.Keys(in.stories)) {
		k.story(in.stories[name])
	}
	k.tempo()
	k.leaks()
	k.count()
	k.report.finish()
	return k
}

// A checker goes through the locks of one run.
type checker struct {
	*input
	opts     Options
	byWorker map[int][]*fault // of the worker and of its link
	longest  int64            // fault that befell a worker
	report   Report
}

func newChecker(in *input, o Options) *checker {
	k := &checker{input: in, opts: o, byWorker: map[int][]*fault{}, report: newReport(in)}
	sortFaults(in.faults)
	for _, f := range in.faults {
		if f.worker >= 0 {
			k.byWorker[f.worker] = append(k.byWorker[f.worker], f)
			k.longest = max(k.longest, f.until-f.t)
		}
	}
	for _, what := range in.malformed {
		k.violation(&story{}, Malformed, what.t, what.t, "%s", what.why)
	}
	return k
}

func (k *checker) story(s *story) {
	for _, f := range k.faults {
		if f.befell(s.name) {
			s.faults = append(s.faults, f)
		}
	}
	k.findGhosts(s)
	k.tickets(s)
	k.tally(s)
	k.overlaps(s)
	k.tokens(s)
	k.fenced(s)
	k.order(s)
	k.wakes(s)
	k.kept(s)
	k.returnedLost(s)
	k.items(s)
	k.signalled(s)
	k.ticks(s)
	k.circles(s)
	k.model(s)
}

// tally counts what happened to a lock.
func (k *checker) tally(s *story) {
	r := &k.report
	r.Locks++
	for _, c := range s.calls {
		if c.ticket() {
			continue
		}
		r.Calls++
		switch {
		case c.acquired != 0:
			r.Grants[c.side()]++
			r.form(s.name).Grants++
			if c.until == 0 {
				k.violation(s, Malformed, c.acquired, c.acquired, "%s does not say until when it is trusted", c)
			}
		case c.failed == 0:
			r.Ambiguous++ // its process was gone before it returned
		case c.why == "ctx":
			r.Cancelled++
		case c.why != "not acquired":
			r.Failed[c.why]++
		}
		if c.lost != 0 {
			r.Losses++
		}
		if c.releasing != 0 && !c.confirmed && c.lost == 0 {
			r.Ambiguous++
		}
	}
}

// side is the kind and the mode of a call, for counts.
func (c *call) side() string {
	switch {
	case c.of < whole:
		return c.kind + " s"
	case c.read:
		return c.kind + " r"
	}
	return c.kind + " w"
}

func (s *story) kind() string {
	if len(s.calls) == 0 {
		return ""
	}
	return s.calls[0].kind
}

// String names a call for a reader of the history.
func (c *call) String() string {
	text := fmt.Sprintf("worker %d's %s call %d", c.worker, c.side(), c.id)
	if c.owner != "" {
		text += " of " + c.owner
	}
	if c.token != 0 {
		text += fmt.Sprintf(" (token %d)", c.token)
	}
	if c.of < whole {
		text += fmt.Sprintf(" of %d in %d permits", c.weight, c.of)
	}
	return text
}
