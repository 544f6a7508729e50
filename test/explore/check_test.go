package explore_test

import (
	"errors"
	"strings"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/room"
)

// collect notes calls, releases and downgrades that have ended.
func (w *world) collect() {
	for _, a := range w.calls {
		if !a.ended && closed(a.done) {
			w.returned(a)
		}
	}
	for _, h := range w.holds {
		if h.down != nil {
			select {
			case err := <-h.down:
				h.down = nil
				w.say("p%d: downgrade: %v", h.by.index, err)
				h.read = err == nil || errors.Is(err, relock.ErrUnconfirmed) || h.hold.Err() != nil
				w.census.count("downgrades")
			default:
			}
		}
		if h.state == 1 && closed(h.released) {
			h.state = 2
			w.say("p%d: released (token %d): %v", h.by.index, h.token, h.result)
			if h.result != nil && w.setup.risk == 0 && !strings.Contains(h.what, "without") && !w.leftBehind(h) {
				w.violate("release without any fault: %v", h.result)
			}
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// returned notes what a call came to.
func (w *world) returned(a *wish) {
	a.ended = true
	a.stop()
	if a.err != nil {
		// Which of two timers of one instant comes first is up to the Go scheduler.
		why, _, _ := strings.Cut(a.err.Error(), "could not be asked")
		w.say("p%d: %s: %v", a.by.index, a, why)
		w.census.count("calls without a hold")
		if errors.Is(a.err, errUpset) {
			w.census.count("hooks that did not return")
		}
		if !a.expected(a.err) {
			w.violate("p%d: %s: unexpected error: %v", a.by.index, a, a.err)
		}
		return
	}
	h := &holding{wish: a, token: a.hold.Token(), since: a.at}
	w.say("p%d: %s: holds, token %d, nonce %s", a.by.index, a, h.token, rig.Nonce(a.hold))
	w.census.count("holds")
	if a.first != nil {
		w.violate("p%d: %s: returned a hold that was lost before: %v", a.by.index, a, a.first)
	}
	if a.at > a.began {
		w.census.count("holds after a wait")
	}
	if a.owner != "" && a.hold.Err() == nil {
		for _, x := range w.kept() {
			if x.name == a.name && x.owner == a.owner && x.hold.Err() == nil {
				w.census.count("re-entries")
				break
			}
		}
	}
	if a.hold.Err() == nil {
		w.judgeToken(h)
	}
	w.holds = append(w.holds, h)
}

// judgeToken checks a new hold's token against those before.
func (w *world) judgeToken(h *holding) {
	if w.now() < w.amnesty[h.name] {
		return
	}
	for _, x := range w.holds {
		if x.name != h.name || h.read && !x.wrote() {
			continue
		}
		if same := h.owner != "" && room.Root(h.owner) == room.Root(x.owner); h.token < x.token || h.token == x.token && !same {
			w.violate("token %d of p%d's %s is not larger than %d of p%d's %s before", h.token, h.by.index, h, x.token, x.by.index, x)
		}
	}
}

// wrote reports whether the hold was exclusive when it was made.
func (h *holding) wrote() bool { return h.rw == nil || !strings.Contains(h.what, "reading") && !h.read }

// check judges who trusts what, now.
func (w *world) check() {
	trusted := map[string][]*holding{}
	for _, h := range w.holds {
		if h.state != 0 || h.by.dead {
			continue
		}
		if err := h.hold.Err(); err != nil {
			if !h.lost {
				h.lost = true
				w.say("p%d has lost its hold, token %d: %v", h.by.index, h.token, err)
				w.census.count("lost holds")
				if h.shares && h.hangs {
					w.census.count("lost holds behind a handle")
				}
				if w.leftBehind(h) {
					w.census.count("branches that lost what they had entered")
				} else if w.setup.risk == 0 && !strings.Contains(h.what, "without") {
					w.violate("a hold was lost without any fault: %v", err)
				}
			}
			continue
		}
		for _, x := range trusted[h.name] {
			if h.clashes(x) && w.now() >= w.amnesty[h.name] {
				w.violate("two trusted holds of %s: p%d's %s (token %d) and p%d's %s (token %d)",
					h.name, x.by.index, x.wish, x.token, h.by.index, h.wish, h.token)
			}
		}
		trusted[h.name] = append(trusted[h.name], h)
	}
}

func (h *holding) clashes(x *holding) bool {
	if h.owner != "" && (h.owner == x.owner || related(h.owner, x.owner) && h.token == x.token) {
		return false
	}
	return h.rw == nil || !h.read || !x.read
}

// storeWrite offers a write to the fenced store.
func (w *world) storeWrite(h *holding) {
	s := w.stores[h.name]
	if s == nil {
		s = &store{}
		w.stores[h.name] = s
	}
	owner := h.hold.Owner()
	trusted := h.state == 0 && !h.by.dead && h.hold.Err() == nil
	switch {
	case h.token < s.top:
		w.census.count("stale writes refused")
		if trusted && w.now() >= w.amnesty[h.name] {
			w.violate("the store refuses token %d of a trusted hold: it has seen %d", h.token, s.top)
		}
		return
	case h.token == s.top && room.Root(owner) != room.Root(s.owner):
		w.violate("two owners write with token %d", h.token)
	}
	w.census.count("writes accepted")
	s.top, s.owner = h.token, owner
}

// look decodes all locks.
func (w *world) look() map[string]stored {
	all := make(map[string]stored, len(w.names))
	m := w.srv.Direct()
	for _, name := range w.names {
		all[name] = readLock(m, name)
	}
	return all
}
