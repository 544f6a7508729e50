package quorum

import (
	"slices"
	"sync"
)

// A Held is one success of a call for several locks or for a majority.
type Held interface {
	comparable
	Err() error // nil while it is held
}

// A Register lists the unreleased holds of one handle, the oldest first. Its zero value is empty.
type Register[H Held] struct {
	// Shared says that several grants may hold at once, so Take takes the oldest. It must be set before the first use.
	Shared bool

	mu    sync.Mutex // guards the following fields; no hold is called under it
	all   []entry[H]
	freed chan struct{} // closed when a hold is removed; nil if nobody waits for that
}

type entry[H Held] struct {
	hold   H
	unlock bool // no caller has the hold itself, so only Unlock can end it
}

// Add adds a hold. unlock says that no caller gets the hold itself: Unlock takes it before the others.
func (r *Register[H]) Add(h H, unlock bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, entry[H]{h, unlock})
}

// Remove removes a hold and reports whether it was listed. If several calls release it at once, only one gets true.
func (r *Register[H]) Remove(h H) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.all, func(e entry[H]) bool { return e.hold == h })
	if at < 0 {
		return false
	}
	r.all = slices.Delete(r.all, at, at+1)
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
	return true
}

// Lost returns the first lost hold, if there is one. freed is closed when any hold is removed. It is made before the
// holds are judged, so no removal is missed.
func (r *Register[H]) Lost() (h H, freed <-chan struct{}, is bool) {
	r.mu.Lock()
	if r.freed == nil {
		r.freed = make(chan struct{})
	}
	freed = r.freed
	r.mu.Unlock()
	for _, e := range r.entries() {
		if e.hold.Err() != nil {
			return e.hold, freed, true
		}
	}
	return h, freed, false
}

// Take removes and returns the hold that an Unlock ends: a lost one first, otherwise the newest, or the oldest if
// several grants hold. It takes a hold that Acquire returned only if there is no other.
func (r *Register[H]) Take() (h H, ok bool) {
	for {
		// Another call may have taken it since next looked.
		if h, ok = r.next(); !ok || r.Remove(h) {
			return h, ok
		}
	}
}

// next returns the hold that Take takes, without removing it.
func (r *Register[H]) next() (h H, ok bool) {
	best := -1
	for _, e := range r.entries() {
		rank := 0
		if e.unlock {
			rank = 2
		}
		if e.hold.Err() != nil {
			rank++
		}
		if rank > best || rank == best && !r.Shared {
			h, best = e.hold, rank
		}
	}
	return h, best >= 0
}

// Others returns the live holds except h.
func (r *Register[H]) Others(h H) (live []H) {
	for _, e := range r.entries() {
		if e.hold != h && e.hold.Err() == nil {
			live = append(live, e.hold)
		}
	}
	return live
}

// Oldest returns the hold that was added first, or the zero hold.
func (r *Register[H]) Oldest() (h H) {
	if all := r.entries(); len(all) > 0 {
		h = all[0].hold
	}
	return h
}

// Newest returns the hold that was added last, or the zero hold.
func (r *Register[H]) Newest() (h H) {
	if all := r.entries(); len(all) > 0 {
		h = all[len(all)-1].hold
	}
	return h
}

// Live returns how many holds are live, judged by the clock.
func (r *Register[H]) Live() int {
	var none H
	return len(r.Others(none))
}

func (r *Register[H]) entries() []entry[H] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}
