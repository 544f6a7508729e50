package relocktest

import (
	"errors"
	"slices"
	"sync"
	"testing/synctest"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// Hold makes somebody else take the name at once, and hold it until release is called. It does not wait: if the name is
// taken, it fails the test and ends it. The holder is the client of Server.Other. A second release does nothing, and
// neither does one after a loss. The options are those of relock.Client.NewLock: Hold(name, relock.Fair()) holds a fair
// lock. With relock.NoWatchdog the hold ends with its lease, like that of a dead process.
func (s *Server) Hold(name string, opts ...relock.LockOption) (release func()) {
	s.t.Helper()
	hold, err := s.other.NewLock(name, opts...).TryAcquire(s.ctx(), 0)
	if err != nil {
		s.t.Fatalf("relocktest: nobody else can hold %q now: %v", name, err)
	}
	return sync.OnceFunc(func() {
		// Losing this hold, by Lose or by its lease, is what some tests are about. A test may also end before
		// this release.
		if err := hold.Release(); err != nil && !errors.Is(err, relock.ErrLost) && !errors.Is(err, relock.ErrClosed) {
			s.t.Errorf("relocktest: %q is not released: %v", name, err)
		}
	})
}

// Lose takes the name from all its holders, as an operator does with ForceUnlock. Their holds are lost, and the next
// waiter gets the lock. In a bubble a connected holder knows it before Lose returns; otherwise it is told soon after.
// Lose fails the test and ends it if nobody holds the name and it does not rest (relock.AtLeast).
func (s *Server) Lose(name string) {
	s.t.Helper()
	removed, err := s.other.NewLock(name).ForceUnlock(s.ctx())
	switch {
	case err != nil:
		s.t.Fatalf("relocktest: %q is not taken from its holder: %v", name, err)
	case !removed:
		s.t.Fatalf("relocktest: nobody holds %q, and so nobody can lose it", name)
	}
	if s.virtual {
		synctest.Wait()
	}
}

// Partition drops everything that the given clients send and receive, until heal is called or the test ends. Their
// requests end by timeouts only. Without arguments it affects all clients that Client and Redis return, now and later.
// Other clients, such as that of Hold, go on. They can get a lock that a client behind the partition holds, once its
// lease has ended. A client that Server.Client did not return fails the test.
func (s *Server) Partition(clients ...*relock.Client) (heal func()) {
	s.t.Helper()
	return s.befall((*redistest.Link).Hole, clients)
}

// Outage closes all connections of the given clients and refuses new ones, as a restarting Redis does. It lasts until
// end is called or the test ends. Without arguments it affects all clients that Client and Redis return, now and later.
// Redis keeps what is stored, and leases run on. A client that Server.Client did not return fails the test.
func (s *Server) Outage(clients ...*relock.Client) (end func()) {
	s.t.Helper()
	return s.befall((*redistest.Link).Cut, clients)
}

// A fault is a Partition or an Outage that affects some networks until it ends.
type fault struct {
	begin func(*redistest.Link) (over func())
	ends  []func()
}

// befall applies the fault to one more network. Its end also closes the connections that have fallen silent,
// so that clients notice at once that the network works again.
func (f *fault) befall(link *redistest.Link) {
	over := f.begin(link)
	f.ends = append(f.ends, func() {
		over()
		link.Cut()()
	})
}

// befall begins a fault on the networks of some clients, or of all.
func (s *Server) befall(begin func(*redistest.Link) func(), clients []*relock.Client) (end func()) {
	s.t.Helper()
	if s.virtual {
		synctest.Wait() // let everything in flight arrive
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &fault{begin: begin}
	for _, link := range s.linksOf(clients) {
		f.befall(link)
	}
	if len(clients) == 0 {
		s.faults = append(s.faults, f)
	}
	end = sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(g *fault) bool { return g == f })
		for _, over := range f.ends {
			over()
		}
	})
	s.ends = append(s.ends, end)
	return end
}

// endFaults ends all faults, because a client that closes waits for requests that are under way.
func (s *Server) endFaults() {
	s.mu.Lock()
	ends := s.ends
	s.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// linksOf returns the networks of some clients, or of all. The caller holds s.mu.
func (s *Server) linksOf(clients []*relock.Client) (links []*redistest.Link) {
	s.t.Helper()
	byClient := map[*relock.Client]*redistest.Link{}
	for _, n := range s.links {
		byClient[n.client] = n.link
		if len(clients) == 0 {
			links = append(links, n.link)
		}
	}
	for _, c := range clients {
		link, known := byClient[c]
		if c == nil || !known {
			s.t.Fatal("relocktest: a client that is not of this server's Client has no network of its own")
		}
		links = append(links, link)
	}
	return links
}
