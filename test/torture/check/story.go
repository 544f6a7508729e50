package check

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// A call is a lock call and the hold it made, if any. Times are 0 where what
// they are of did not happen.
type call struct {
	id     int64
	worker int
	owner  string
	read   bool
	kind   string
	ttl    time.Duration

	awaits   string // the condition that it waits on; "": none
	deadline int64  // of that wait
	parted   *call  // the hold that was given up for it
	awaiting *call  // the wait for which the hold was given up
	unwoken  bool   // the time of the wait has passed

	together bool // with other locks: it has none before it has all

	every   int64 // the interval of Once; 0: it is another call
	unspent bool  // that was given back
	into    int64 // how long it had lasted by the servers' clock when the call had found it spent; 0: it may have begun meanwhile

	resumes int64 // the ticket that it resumes; 0: none

	weight, of int64 // permits that it uses, of so many

	began, queued, failed             int64
	acquired, until, lost, downgraded int64 // until: the latest trust that is known of
	releasing, released, died         int64
	token                             int64
	confirmed                         bool // Released without an error
	unanswered                        bool // Released, and nobody knows whether it was
	why                               string
	stale                             time.Duration // how long before its return the hold was lost
	met                               bool          // by a later grant, after a fault for which that may be

	since   int64 // of a hold: when the call began that brought the lock into its process
	unknown bool  // to Redis: passed on within a process that had lost the lock
}

// never is later than all events.
const never = math.MaxInt64

// end is the last instant at which the hold was certainly valid: errors go to
// the early side. It is not after acquired for a hold that was never certain.
func (c *call) end() int64 {
	end := c.until
	for _, t := range [...]int64{c.lost, c.releasing, c.died} {
		if t != 0 {
			end = min(end, t)
		}
	}
	return end
}

// certain says that the hold was valid for some time that is known.
func (c *call) certain() bool { return c.acquired != 0 && c.acquired < c.end() }

// over is when the call itself had returned, or its process was gone.
func (c *call) over() int64 {
	switch {
	case c.acquired != 0:
		return c.acquired
	case c.failed != 0:
		return c.failed
	case c.died != 0:
		return c.died
	}
	return never
}

// gone is when nothing of a confirmed hold is left in Redis, else never.
func (c *call) gone() int64 {
	if c.confirmed {
		return c.released
	}
	return never
}

// left is until when the lock may have been taken by a confirmed hold. One that was given
// up to wait is confirmed when the wait is over: its lease has ended before that.
func (c *call) left() int64 {
	if c.awaiting != nil {
		return min(c.released, max(c.until, c.releasing)+int64(c.ttl))
	}
	return c.released
}

// whole is how many permits a lock has that is no semaphore: who writes uses all of
// them, and who reads one.
const whole = 1 << 30

// semaphore says that the lock has so many permits as its calls say.
func (s *story) semaphore() bool { return s.kind() == "semaphore" }

// excludes says that the two never hold together, unless one owner has both.
func (c *call) excludes(d *call) bool { return c.weight+d.weight > min(c.of, d.of) }

// ticket says that it is no call, but what a ticket has.
func (c *call) ticket() bool { return c.worker == history.Nobody }

// unnamed says that the library knows no name of its owner. The history has one where a hold
// is handed over, as its token goes with it.
func (c *call) unnamed() bool { return c.owner == "" || c.owner[0] == '~' }

// sameOwner says that the two may hold together whatever they do.
func (c *call) sameOwner(d *call) bool { return c.owner != "" && c.owner == d.owner }

// A effect is what the store was asked, in the order in which it decided.
type effect struct {
	t, id, token int64
	worker       int
	read         bool
	owner        string
	err          string

	does     string // to the lock's buffer, with an item
	item, of int64
}

// A story is all that happened to one lock.
type story struct {
	name    string
	calls   []*call
	effects []effect
	frees   []history.Event
	kept    []history.Event
	signals []signal
	ttl     time.Duration // the longest that was asked for
	faults  []*fault      // that befell its servers
	fell    bool          // a token fell where it may
	ghosts  map[string][]ghost

	parted map[int64]bool // grants, by token, of which two were valid at once when a primary had relieved another
}

func (s *story) fair() bool {
	return strings.Contains(s.kind(), "fair") || s.semaphore()
}

// deployment is what stands before the slash of a lock's name.
func deployment(lock string) string {
	d, _, _ := strings.Cut(lock, "/")
	return d
}

// held are the calls that returned a hold, in the order of their returns.
func (s *story) held() []*call {
	held := make([]*call, 0, len(s.calls))
	for _, c := range s.calls {
		if c.acquired != 0 {
			held = append(held, c)
		}
	}
	slices.SortFunc(held, func(a, b *call) int { return compare(a.acquired, b.acquired) })
	return held
}
