package relockweb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock"
)

const (
	// mostLocks bounds the locks of a listing. mostOf bounds the holders and the waiters on a lock's own
	// page, and fewOf the holders of a lock in the list.
	mostLocks = 10_000
	mostOf    = 1_000
	fewOf     = 5
	// mostProblems bounds the errors of a listing.
	mostProblems = 20
)

// A listing is the result of one read of all locks. It is the form of locks.json.
type listing struct {
	ReadAt   time.Time `json:"read_at"`
	TookMS   int64     `json:"took_ms"`
	More     bool      `json:"more"` // there are more locks than these
	Problems []string  `json:"problems"`
	Total    total     `json:"total"`
	Locks    []lock    `json:"locks"`

	worked time.Duration // how long Redis took for what it answered
}

type total struct {
	Locks   int `json:"locks"`
	Holders int `json:"holders"`
	Waiters int `json:"waiters"`
}

type lock struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind"`
	RestingMS   int64    `json:"resting_ms"`
	HolderCount int      `json:"holder_count"`
	WaiterCount int      `json:"waiting"`
	CondWaiting int      `json:"cond_waiting"`
	Holders     []holder `json:"holders"` // the first holders

	// What follows is of all holders, because those that need attention are not the first.
	grants    []grant
	fading    bool  // of one grant more than half of the lease has passed
	heldFor   int64 // how long the longest has held, in ms
	leaseLeft int64 // the shortest lease, or the rest if nobody holds, in ms
}

type holder struct {
	Owner   string `json:"owner"`
	Label   string `json:"label"`
	Mode    string `json:"mode"` // lock, read or write
	Holds   int    `json:"holds"`
	Token   int64  `json:"token"`
	LeaseMS int64  `json:"lease_ms"`
	HeldMS  int64  `json:"held_ms"`
	Sticky  bool   `json:"sticky,omitempty"` // its client may keep it between holds
}

// A grant is what the next read must know of a holder.
type grant struct {
	token, leaseMS   int64
	longest          int64 // the longest lease seen of this grant since it was renewed, in ms
	sticky, detached bool
}

// A detail is the result of one read of one lock. It is the form of lock.json.
type detail struct {
	ReadAt   time.Time `json:"read_at"`
	TookMS   int64     `json:"took_ms"`
	Problems []string  `json:"problems"`
	Lock     lock      `json:"lock"`
	Queue    []waiter  `json:"queue"` // the beginning of the queue

	worked time.Duration
}

type waiter struct {
	Owner    string `json:"owner"`
	Label    string `json:"label"`
	Mode     string `json:"mode"`
	WaitedMS int64  `json:"waited_ms"`
}

// errTooMany is for people, who would else be told of an outage.
var errTooMany = fmt.Errorf("there are more keys than Redis can list within %v", readWithin)

// readList reads all locks, ordered by name. If it fails before it has found a lock, it returns the locks of
// last.
func (s *site) readList(ctx context.Context, _ string, last *listing) (_ *listing, worked time.Duration, ok bool) {
	began := time.Now()
	heard, silent := began, time.Duration(0)
	l := &listing{Problems: []string{}, Locks: []lock{}}
	unread := false // the problem is not one lock, but a server or Redis
	for info, err := range s.c.Locks(ctx, s.match) {
		gap := time.Since(heard)
		heard = heard.Add(gap)
		if err != nil {
			// Much of a scan may have been answered before. Of a lock, Redis was silent in the pipeline too.
			quiet := silence(err, gap)
			if info.Name != "" && quiet > 0 {
				quiet = gap
			}
			silent += quiet
			unread = unread || info.Name == "" || errors.Is(err, relock.ErrUnavailable)
			if info.Name == "" && ctx.Err() != nil && silent < time.Second {
				err = errTooMany
			}
			if len(l.Problems) < mostProblems {
				l.Problems = append(l.Problems, err.Error())
			}
			continue
		}
		if len(l.Locks) == mostLocks {
			l.More = true
			break
		}
		l.Locks = append(l.Locks, lockOf(info, fewOf))
	}
	worked = time.Since(began) - silent
	if len(l.Locks) == 0 && unread {
		if last != nil {
			l.ReadAt, l.TookMS, l.More, l.Locks, l.worked = last.ReadAt, last.TookMS, last.More, last.Locks, last.worked
		}
		return l, worked, false
	}
	slices.SortFunc(l.Locks, func(a, b lock) int { return strings.Compare(a.Name, b.Name) })
	l.ReadAt = time.Now()
	l.TookMS = l.ReadAt.Sub(began).Milliseconds()
	l.worked = worked
	if last == nil {
		last = &listing{}
	}
	remember(l.Locks, last.Locks)
	return l, worked, !unread
}

// silence returns for how much of a time, in which nothing but err came, Redis did not answer.
func silence(err error, most time.Duration) time.Duration {
	var s interface{ Silence() time.Duration }
	switch {
	case !errors.Is(err, relock.ErrUnavailable):
		return 0
	case errors.As(err, &s) && s.Silence() > 0:
		return min(s.Silence(), most)
	}
	return most
}

// readLock reads one lock and its queue. If it fails, it returns the content of last.
func (s *site) readLock(ctx context.Context, name string, last *detail) (_ *detail, worked time.Duration, ok bool) {
	began := time.Now()
	l := s.c.NewLock(name)
	var queue []relock.Waiter
	info, err := l.Info(ctx)
	if err == nil && info.Waiters > 0 {
		queue, err = l.Waiters(ctx)
	}
	worked = time.Since(began)
	if err != nil {
		d := &detail{Lock: lockOf(relock.Info{Name: name}, mostOf), Queue: []waiter{}}
		if last != nil {
			*d = *last
		}
		d.Problems = []string{err.Error()}
		return d, worked - silence(err, worked), false
	}
	if last == nil {
		last = &detail{}
	}
	found := []lock{lockOf(info, mostOf)}
	remember(found, []lock{last.Lock})
	d := &detail{Problems: []string{}, Lock: found[0], Queue: []waiter{}}
	d.Lock.WaiterCount = len(queue)
	for _, w := range queue[:min(len(queue), mostOf)] {
		d.Queue = append(d.Queue, waiter{w.Owner, w.Label, mode(info.Kind, w.Read), w.Age.Milliseconds()})
	}
	d.ReadAt = time.Now()
	d.TookMS = d.ReadAt.Sub(began).Milliseconds()
	d.worked = worked
	return d, worked, true
}

// lockOf makes a lock that shows at most some of the holders.
func lockOf(info relock.Info, some int) lock {
	l := lock{
		Name: info.Name, Kind: info.Kind, RestingMS: info.Resting.Milliseconds(),
		HolderCount: len(info.Holders), WaiterCount: info.Waiters, CondWaiting: info.CondWaiters, Holders: []holder{},
		leaseLeft: info.Resting.Milliseconds(),
	}
	for i, h := range info.Holders {
		lease, held := h.TTL.Milliseconds(), h.Held.Milliseconds()
		l.grants = append(l.grants, grant{h.Token, lease, lease, h.Sticky, h.Detached})
		l.heldFor = max(l.heldFor, held)
		if i == 0 || lease < l.leaseLeft {
			l.leaseLeft = lease
		}
		if i >= some {
			continue
		}
		if h.Detached {
			h.Label = "a ticket, not resumed yet"
		}
		if h.Sticky {
			h.Label = strings.TrimSpace(h.Label + " (sticky: may be idle)")
		}
		l.Holders = append(l.Holders, holder{Owner: h.Owner, Label: h.Label, Mode: mode(info.Kind, h.Read), Holds: h.Holds, Token: h.Token, LeaseMS: lease, HeldMS: held, Sticky: h.Sticky})
	}
	return l
}

// begins returns the part of a listing whose names begin with prefix.
func (l *listing) begins(prefix string) *listing {
	some := *l
	from, _ := slices.BinarySearchFunc(l.Locks, prefix, func(one lock, p string) int { return strings.Compare(one.Name, p) })
	to := from
	some.Total = total{}
	for ; to < len(l.Locks) && strings.HasPrefix(l.Locks[to].Name, prefix); to++ {
		some.Total.Holders += l.Locks[to].HolderCount
		some.Total.Waiters += l.Locks[to].WaiterCount
	}
	some.Locks = l.Locks[from:to]
	some.Total.Locks = len(some.Locks)
	return &some
}

// mode returns the mode in which a lock of that kind is held or waited for.
func mode(kind string, read bool) string {
	switch {
	case read:
		return "read"
	case kind == "rw" || kind == "fair rw":
		return "write"
	}
	return "lock"
}
