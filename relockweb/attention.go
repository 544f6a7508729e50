package relockweb

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// What an operator is likely to look for comes first, and is marked.
const (
	longQueue = 10
	longHeld  = time.Hour
)

// remember carries over from the last read how long the leases of the same grants were.
func (l *listing) remember(last *listing) {
	longest := map[int64]int64{} // by token
	if last != nil {
		for _, one := range last.Locks {
			for _, h := range one.Holders {
				longest[h.Token] = h.longest
			}
		}
	}
	for _, one := range l.Locks {
		for i, h := range one.Holders {
			one.Holders[i].longest = max(h.LeaseMS, longest[h.Token])
		}
	}
}

// Marks are what is remarkable about the lock, for people.
func (l lock) Marks() (marks []string) {
	if l.WaiterCount >= longQueue {
		marks = append(marks, "long queue")
	}
	if held := l.heldFor(); held >= longHeld.Milliseconds() {
		marks = append(marks, "held for long")
	}
	if slices.ContainsFunc(l.Holders, holder.Fading) {
		marks = append(marks, "lease not renewed")
	}
	return marks
}

// Fading reports a lease of which more than half is over: a watchdog renews each third.
func (h holder) Fading() bool { return 2*h.LeaseMS < h.longest }

// leaseLeft is the shortest lease of the lock's known holders, in ms.
func (l lock) leaseLeft() int64 {
	if len(l.Holders) == 0 {
		return l.RestingMS
	}
	return slices.MinFunc(l.Holders, func(a, b holder) int { return cmp.Compare(a.LeaseMS, b.LeaseMS) }).LeaseMS
}

// sorted is a copy in the order by, which "-" turns around. Without one the locks with marks come first, then
// those that most wait for. Locks that are alike stay in the order of names.
func sorted(locks []lock, by string) []lock {
	by, turned := strings.CutPrefix(by, "-")
	var less func(a, b lock) int
	switch by {
	case "waiters":
		less = func(a, b lock) int { return cmp.Compare(b.WaiterCount, a.WaiterCount) }
	case "held":
		less = func(a, b lock) int { return cmp.Compare(b.heldFor(), a.heldFor()) }
	case "lease":
		less = func(a, b lock) int { return cmp.Compare(a.leaseLeft(), b.leaseLeft()) }
	case "name":
		less = func(a, b lock) int { return strings.Compare(a.Name, b.Name) }
	default:
		less = func(a, b lock) int {
			return cmp.Or(cmp.Compare(len(b.Marks()), len(a.Marks())), cmp.Compare(b.WaiterCount, a.WaiterCount))
		}
	}
	locks = slices.Clone(locks)
	slices.SortStableFunc(locks, func(a, b lock) int {
		if turned {
			a, b = b, a
		}
		return less(a, b)
	})
	return locks
}

// shown is the column's head, where the list is in that order: a second look at it turns the order around.
func (o order) shown(q url.Values, by string) order {
	up := o.By == "name" || o.By == "lease"
	o.Aria = "none"
	next := o.By
	switch by {
	case o.By:
		next = "-" + o.By
	case "-" + o.By:
		up = !up
	default:
		o.Link = address("./", q, "sort", next)
		return o
	}
	o.Aria = map[bool]string{true: "ascending", false: "descending"}[up]
	o.Link = address("./", q, "sort", next)
	return o
}

// age says how old what is shown is, where it is older than it may be.
func (p *page) age(s *site, at time.Time, tookMS int64) {
	if !at.IsZero() && stale(s.every, at, tookMS) {
		p.Stale = since(time.Since(at).Milliseconds())
	}
}

// words is a problem for people who look at locks and not at code. The error follows it.
func words(problem string) string {
	for _, silent := range []string{"deadline exceeded", "no reply", "not answered", "refused", "timeout", "EOF", "reset by peer"} {
		if strings.Contains(problem, silent) {
			return "Redis does not answer. It is asked again every few seconds."
		}
	}
	return "Redis could not be read."
}

// plain is an error without the names of packages at its beginning.
func plain(problem string) string {
	return strings.TrimPrefix(strings.TrimPrefix(problem, "relock: "), "locks: ")
}

// visible is a text of which no two look alike: characters that are not seen, or that turn others around, are escaped,
// and spaces at an end or in a row are kept by quotes.
func visible(text string) string {
	hidden := func(r rune) bool { return r != ' ' && (unicode.IsSpace(r) || !unicode.IsPrint(r)) }
	if !strings.ContainsFunc(text, hidden) && strings.TrimSpace(text) == text && !strings.Contains(text, "  ") {
		return text
	}
	return strings.ReplaceAll(strconv.Quote(text), "  ", " ␣")
}

// count is a number of things.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
