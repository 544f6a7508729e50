package deploy_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// listing: locks of every server of a cluster are found, and who has them is told, by clients
// whose labels are on any of its servers. A user who may not scan is told so.
func (d *deployed) listing() {
	for i := range 5 {
		c := rig.Open(d, d.rdb(), append(d.opts, relock.Label(fmt.Sprint("worker ", i)))...)
		for n := range 6 {
			rig.Must(d, c.NewLock(fmt.Sprint(d.name, " ", i, n)).Lock(d.ctx))
		}
	}
	rig.Soon(d, d.unlisted) // the first call of a client does not wait for long until its label is stored
}

// unlisted says what is amiss with the list.
func (d *deployed) unlisted() (amiss string) {
	seen := 0
	for info, err := range d.a.Locks(d.ctx, d.name+" *") {
		if strings.Contains(d.Name(), "least_permissions") { // what locks need, and no more
			if err == nil || !strings.Contains(err.Error(), "needed: scan") {
				amiss = fmt.Sprintf("%+v, %v, want that scan is needed", info, err)
			}
			seen = 30
			continue
		}
		rig.Must(d, err)
		if len(info.Holders) != 1 {
			d.Fatalf("%+v, want one holder", info)
		}
		h, owner := info.Holders[0], info.Name[len(d.name)+1:]
		if h.Label != "worker "+owner[:1] || h.Held <= 0 || h.Held > time.Minute {
			amiss = fmt.Sprintf("%s: %+v, want the label of worker %s", info.Name, h, owner[:1])
		}
		seen++
	}
	if seen != 30 {
		amiss = fmt.Sprintf("%d locks, want 30", seen)
	}
	return amiss
}
