package check

import "time"

// circleBound is how long calls may wait that take several locks together, faults apart:
// each holds for milliseconds, and so do all before it.
const circleBound = 3 * time.Second

// circles finds calls for several locks that waited for so long that they must have waited
// for each other.
func (k *checker) circles(s *story) {
	var covers []reign
	for _, c := range s.calls {
		if !c.together {
			continue
		}
		if c.acquired != 0 {
			k.report.Together++
		}
		end := k.waitedUntil(c)
		if c.died != 0 || time.Duration(end-c.began) <= k.report.LongestAll {
			continue
		}
		if covers == nil {
			covers = k.coversOfAll(s, false)
		}
		from, to := uncovered(c.began, end, covers)
		k.report.LongestAll = max(k.report.LongestAll, time.Duration(to-from))
		if time.Duration(to-from) > circleBound {
			k.violation(s, Circle, from, to, "%s waited for %v, together with other locks; the bound is %v", c, time.Duration(to-from), circleBound)
		}
	}
}
