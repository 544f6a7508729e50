package check

import (
	"strings"

	"github.com/relock-go/relock/test/torture/history"
)

// A Form is what a run showed of one form of deployment.
type Form struct {
	Grants    int `json:"grants"`
	Failovers int `json:"failovers"`
	Overlaps  int `json:"overlaps"` // after a failover
}

// form is the entry for where a lock or a fault is: a deployment's name is its
// form and the number of a round.
func (r *Report) form(name string) *Form {
	name = strings.TrimRight(deployment(name), "0123456789")
	if r.Forms[name] == nil {
		r.Forms[name] = &Form{}
	}
	return r.Forms[name]
}

func (r *Report) fault(f *fault) {
	if f.kind == history.Stall {
		r.Stalls++ // the machine's, not the rig's
		return
	}
	r.Faults[f.kind]++
	if f.kind == history.Failover {
		r.form(f.on).Failovers++
	}
}

func (r *Report) overlap(s *story, f *fault) {
	r.Overlaps[f.kind]++
	if f.kind == history.Failover {
		r.form(s.name).Overlaps++
	}
}
