package room

import "github.com/relock-go/relock/internal/clock"

// This file is how a fair lock is passed on within a process. Redis has a place in the
// queue for each call, and says with a grant which of the same client stand right behind
// it: their turn comes next, whoever asks, so it needs no command.

// maxRun is how many Redis names at most, and how many tokens a grant has for them.
const maxRun = 15

// A run is who shares the grant of a session, one after the other.
type run struct {
	behind []*Acquisition // who is next, first come first; they are in the queue
	served []*Acquisition // who has had the lock; they are in the queue until the session's release
}

// follow notes who stands right behind a grant that has just come.
func (s *Session) follow(behind []*Acquisition) {
	if len(behind) > 0 && s.passable() {
		s.run = &run{behind: behind}
	}
}

// passAlong gives the lock to the next of its run, while the lease is fresh. Whom it is not
// given to is at the head of the queue when the session is released.
func (r *Room) passAlong(s *Session, at *Step) bool {
	if s.run == nil || !s.passes(at) {
		return false
	}
	for len(s.run.behind) > 0 {
		a := s.run.behind[0]
		s.run.behind = s.run.behind[1:]
		switch {
		case a.over: // its call has gone; Redis hears of that
		case !a.idle() || *a.Terms != *s.Terms:
			s.run.behind = nil
		default:
			s.serve(a, at)
			return true
		}
	}
	return false
}

// idle says that it is in the queue, has no name, has not held, and that nothing is under way by which
// Redis would put it back there.
func (a *Acquisition) idle() bool {
	return a.Session == nil && !a.Named() && a.Entry.queued && !a.Entry.busy && a.copies == 0 && a.doubt == 0
}

// serve ends the wait of an entry by the session's next hold.
func (s *Session) serve(a *Acquisition, at *Step) {
	s.token++
	s.left--
	s.reserve()
	s.run.served = append(s.run.served, a)
	a.over, a.Entry.given = true, s.Acquisition
	at.timer(a, clock.Instant{}, 0)
	a.Entry.finished(at)
}

// Served are those who end in Redis with the session's release.
func (s *Session) Served() []*Acquisition {
	if s == nil || s.run == nil {
		return nil
	}
	return s.run.served
}

// dismiss has Redis told of each that was served: the session's release does not follow.
func (s *Session) dismiss(at *Step) {
	for _, a := range s.Served() {
		at.do(Effect{Do: Release, Of: a})
	}
	s.run = nil
}

// Given is what its call goes on with, where it holds by another's grant.
func (e *Entry) Given() *Acquisition { return e.given }
