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

// A lock with longQueue waiters, or held for longHeld, has a mark. Marked locks are listed first, for operators.
const (
	longQueue = 10
	longHeld  = time.Hour
)

// remember finds, from the last read, the longest lease that was seen of each grant since it was renewed, which is when
// the lease rose. grant.fading compares with it. A ticket's lease is not renewed, and its resumption has another one.
func remember(locks, last []lock) {
	type id struct { // tokens of two names may be equal
		name  string
		token int64
	}
	before := map[id]grant{}
	for _, one := range last {
		for _, g := range one.grants {
			if !g.detached {
				before[id{one.Name, g.token}] = g
			}
		}
	}
	for i := range locks {
		one := &locks[i]
		for j := range one.grants {
			g := &one.grants[j]
			if was, known := before[id{one.Name, g.token}]; known && g.leaseMS <= was.leaseMS {
				g.longest = was.longest
			}
			one.fading = one.fading || g.fading()
		}
	}
}

// Marks returns what is remarkable about the lock, for people.
func (l lock) Marks() (marks []string) {
	if l.WaiterCount >= longQueue {
		marks = append(marks, "long queue")
	}
	if l.heldFor >= longHeld.Milliseconds() {
		marks = append(marks, "long hold")
	}
	if l.fading {
		marks = append(marks, "lease not renewed")
	}
	return marks
}

// fading reports whether more than half of the lease has passed. A watchdog renews it each third. For a sticky grant it
// is three quarters: a grant that is kept is not renewed, until a third of the lease is left at most.
func (g grant) fading() bool {
	part := int64(2)
	if g.sticky {
		part = 4
	}
	return part*g.leaseMS < g.longest
}

// sorted returns a copy ordered by a column. A "-" before the column reverses the order. Without a column,
// locks with marks come first, and then locks with many waiters. Equal locks stay in the order of their
// names.
func sorted(locks []lock, by string) []lock {
	by, turned := strings.CutPrefix(by, "-")
	var less func(a, b lock) int
	switch by {
	case "waiters":
		less = func(a, b lock) int { return cmp.Compare(b.WaiterCount, a.WaiterCount) }
	case "held":
		less = func(a, b lock) int { return cmp.Compare(b.heldFor, a.heldFor) }
	case "lease":
		less = func(a, b lock) int { return cmp.Compare(a.leaseLeft, b.leaseLeft) }
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

// shown returns the column with its link, and with how the list is ordered by it now. by is the requested order.
// Choosing a column again reverses its order.
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

// age sets how old the data is, if it is older than it should be, and how long the running read has taken so far. It is
// of this lock or of another one: reads of one kind follow each other.
func (p *page) age(s *site, at time.Time, worked, running time.Duration) {
	if at.IsZero() || !stale(s.every, at, worked) {
		return
	}
	p.Stale = since(time.Since(at).Milliseconds())
	if running > patience {
		p.Unanswered = since(running.Milliseconds())
	}
}

// words returns a problem in words for operators. The error itself is printed after it.
func words(problem string) string {
	for _, silent := range []string{"deadline exceeded", "no reply", "not answered", "refused", "timeout", "EOF", "reset by peer"} {
		if strings.Contains(problem, silent) {
			return "Redis does not answer. The dashboard asks again every few seconds."
		}
	}
	return "A read from Redis failed."
}

// plain returns an error without the package names at its beginning.
func plain(problem string) string {
	return strings.TrimPrefix(strings.TrimPrefix(problem, "relock: "), "locks: ")
}

// visible returns the text so that no two texts look alike. It escapes invisible characters and those that
// reverse others, and puts quotes around text with spaces at an end or in a row, or that looks like such text.
func visible(text string) string {
	hidden := func(r rune) bool { return r != ' ' && (unicode.IsSpace(r) || !unicode.IsPrint(r) || blank(r)) }
	odd := strings.TrimSpace(text) != text || strings.Contains(text, "  ") || strings.HasPrefix(text, `"`)
	if !odd && !strings.ContainsFunc(text, hidden) {
		return text
	}
	quote := strconv.Quote
	if strings.ContainsFunc(text, blank) {
		quote = strconv.QuoteToASCII
	}
	return strings.NewReplacer("␣", `\u2423`, "  ", " ␣").Replace(quote(text))
}

// blank reports whether nobody sees a character that Go calls printable.
func blank(r rune) bool {
	return r == '\u2800' || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// count returns a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
