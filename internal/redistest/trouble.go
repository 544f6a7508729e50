package redistest

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Partition closes every connection and refuses new ones until heal is called.
// Commands in flight finish first, so the cut is clean; [Link] makes unclean ones.
func (s *Server) Partition() (heal func()) {
	synctest.Wait()
	s.mu.Lock()
	s.cut = true
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cut = false
	}
}

// Stall holds every command before it executes until resume is called. A client that gives up meanwhile still has its
// command executed then, which is how a late write reaches a lock that has changed hands.
func (s *Server) Stall() (resume func()) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		panic("redistest: stalled twice")
	}
	gate := make(chan struct{})
	s.gate = gate
	return func() {
		s.mu.Lock()
		mine := s.gate == gate // false after the first call, or once s has stopped
		if mine {
			s.gate = nil
		}
		s.mu.Unlock()
		if mine {
			close(gate)
		}
	}
}

// StepClock moves the server's TIME by d, which may be negative, and keeps it that
// far from the bubble's clock. Keys that have a TTL keep it; see [Server.JumpClock].
func (s *Server) StepClock(d time.Duration) { s.moveClock(d, 0) }

// JumpClock moves TIME as StepClock does, and with it every TTL: a Redis stores the instant at which a key ends, so
// when its wall clock jumps ahead keys end early, and when it jumps back they outlive their TTL.
func (s *Server) JumpClock(d time.Duration) { s.moveClock(d, d) }

func (s *Server) moveClock(step, age time.Duration) {
	s.clock.Lock()
	defer s.clock.Unlock()
	s.tickLocked()
	s.step += step
	s.mini.SetTime(s.aged.Add(s.step))
	s.mini.FastForward(age)
}

// A failure is what one call of FailNext has asked for.
type failure struct {
	left  int
	text  string
	match func(args []string) bool
}

// FailNext answers errText, such as "LOADING Redis is loading the dataset in memory", to the next n commands that
// match, and does not execute them. args[0] is the command's name in lower case; a nil match matches all but the
// commands a client sets a connection up with. Commands that scripts call are not asked about.
func (s *Server) FailNext(n int, errText string, match func(args []string) bool) {
	if match == nil {
		match = func(args []string) bool {
			return !slices.Contains([]string{"hello", "client", "auth", "select"}, args[0])
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = append(s.fails, &failure{left: n, text: errText, match: match})
}

func (s *Server) failing(args []string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.fails {
		if f.left > 0 && f.match(args) {
			f.left--
			return f.text, true
		}
	}
	return "", false
}

// Direct returns the miniredis behind s, with the age of its keys up to date. Call it again after time has
// passed, because keys age only when a command runs and when Direct is called.
func (s *Server) Direct() *miniredis.Miniredis {
	s.tick()
	return s.mini
}

// CountNobody makes a script find no subscriber of any channel, as behind a proxy that keeps its subscribers
// to itself.
func (s *Server) CountNobody() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blind = true
}

// FlushScripts empties the script cache, as a restart or a failover does.
func (s *Server) FlushScripts() {
	s.srv.Dispatch(s.own, []string{"SCRIPT", "FLUSH"})
}

// FlushAll removes every key.
func (s *Server) FlushAll() { s.mini.FlushAll() }

// KillSubscribers closes the connections that have subscribed to something, and no
// others. Messages published before have been delivered.
func (s *Server) KillSubscribers() {
	synctest.Wait()
	s.mu.Lock()
	conns := slices.Clone(s.conns)
	s.mu.Unlock()
	for _, c := range conns {
		if c.pubsub.Load() {
			_ = c.Close()
		}
	}
}
