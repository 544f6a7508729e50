package relocktest

import (
	"strings"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
)

const (
	// patience is how long an assertion waits in real time for background work. In a bubble it need not wait.
	patience = time.Second
	// between is the pause before an assertion looks again.
	between = 2 * time.Millisecond
)

// AssertFree fails the test, which goes on, unless nobody holds the name, and nobody waits for it or on a condition of
// it. Outside of a bubble it waits for that for up to a second. In a bubble it looks when all other goroutines are
// blocked. It finds a forgotten Unlock, unless that hold was lost. A name that rests after a relock.AtLeast counts as
// free. A lock that a client keeps (relock.Sticky) does not. AssertFree looks at the name under every relock.KeyPrefix.
// It does not see locks of package redisson. If Redis cannot be read, the test ends.
func (s *Server) AssertFree(name string) {
	s.t.Helper()
	info := s.look(name, func(i relock.Info) bool { return len(i.Holders) == 0 && i.Waiters == 0 && i.CondWaiters == 0 })
	if len(info.Holders) > 0 || info.Waiters > 0 || info.CondWaiters > 0 {
		s.t.Errorf("%q is not free: held by %v, %d waiting, %d on conditions", name, owners(info), info.Waiters, info.CondWaiters)
	}
}

// AssertHeld fails the test, which goes on, unless somebody holds the name, in any client and under any
// relock.KeyPrefix. A detached hold counts, and so does a lock that a client keeps (relock.Sticky). It does not see
// locks of package redisson. In a bubble there must be a holder when all other goroutines are blocked. Outside of a
// bubble it waits for that for up to a second. If Redis cannot be read, the test ends.
func (s *Server) AssertHeld(name string) {
	s.t.Helper()
	if info := s.look(name, func(i relock.Info) bool { return len(i.Holders) > 0 }); len(info.Holders) == 0 {
		s.t.Errorf("nobody holds %q", name)
	}
}

// AssertWaiting fails the test, which goes on, unless exactly n callers wait for the name in Redis, under all key
// prefixes together. Calls of one client that have no owner and wait for one plain lock count as one. They may count as
// none while a call of that client holds it: wait in another Client, or let Server.Hold hold it. Calls of one named
// owner in one client count as one too. A call that got a fair lock from another call of its client counts until Redis
// hears of that. In a bubble there must be n when all other goroutines are blocked. Outside of a bubble it waits for
// that for up to a second: so a test knows that the code under test waits. If Redis cannot be read, the test ends.
func (s *Server) AssertWaiting(name string, n int) {
	s.t.Helper()
	if info := s.look(name, func(i relock.Info) bool { return i.Waiters == n }); info.Waiters != n {
		s.t.Errorf("%d wait for %q, want %d", info.Waiters, name, n)
	}
}

// look returns what Redis says of a lock, as soon as that is as wanted, or when the patience is over.
func (s *Server) look(name string, wanted func(relock.Info) bool) relock.Info {
	s.t.Helper()
	if s.virtual {
		synctest.Wait()
		return s.info(name)
	}
	again := time.NewTicker(between)
	defer again.Stop()
	for began := time.Now(); ; <-again.C {
		if info := s.info(name); wanted(info) || time.Since(began) > patience {
			return info
		}
	}
}

// info returns what Redis says of the locks of that name under all key prefixes.
func (s *Server) info(name string) (all relock.Info) {
	s.t.Helper()
	for _, eye := range s.eyesOn(name) {
		info, err := eye.NewLock(name).Info(s.ctx())
		if err != nil {
			s.t.Fatalf("relocktest: %v", err)
		}
		all.Holders = append(all.Holders, info.Holders...)
		all.Waiters, all.CondWaiters = all.Waiters+info.Waiters, all.CondWaiters+info.CondWaiters
	}
	return all
}

// eyesOn returns Other, and a client for each further key prefix under which Redis has the name.
func (s *Server) eyesOn(name string) []*relock.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	eyes := []*relock.Client{s.other}
	for _, stored := range s.redis.Direct().Keys() {
		prefix, is := strings.CutSuffix(stored, key.Hash("", name))
		if !is || prefix == "relock" { // the default, that of Other
			continue
		}
		if s.eyes[prefix] == nil {
			s.eyes[prefix] = s.open(s.redis.Client(s.t), relock.KeyPrefix(prefix))
		}
		eyes = append(eyes, s.eyes[prefix])
	}
	return eyes
}

func owners(info relock.Info) (all []string) {
	for _, h := range info.Holders {
		all = append(all, h.Owner)
	}
	return all
}
