package redistest

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Dialer connects to a server; [Server.Dial] and [RealServer.Dial] are Dialers.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Link is a network between clients and one server. It reads the protocol in both
// directions, so that each fault befalls exactly the command it is meant for.
//
// It relays any command that gets one reply, and subscriptions; MONITOR and CLIENT REPLY are beyond it.
type Link struct {
	dial Dialer
	done chan struct{}  // closed when the test ends
	wg   sync.WaitGroup // every goroutine of the link

	// judging is held while onCommand runs, so that calls come one at a time and
	// in the order of N. It comes before mu.
	judging sync.Mutex

	mu        sync.Mutex // protects following fields; nothing waits under it
	stopped   bool
	onCommand func(Command) Verdict
	seen      [][]string
	counts    map[string]int
	dials     int
	cuts      int // Cut calls that are not healed
	holes     int // Hole calls that are not healed
	latency   time.Duration
	sessions  map[*session]struct{}
	copies    map[net.Conn]struct{} // connections of duplicates
	late      int                   // held commands and duplicates without a reply yet
	settled   chan struct{}         // closed and replaced whenever late falls to zero
}

// NewLink returns a Link without faults whose connections lead where dial leads.
// Everything it started has ended when t has.
func NewLink(t testing.TB, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *Link {
	t.Helper()
	l := &Link{
		dial:     dial,
		done:     make(chan struct{}),
		counts:   map[string]int{},
		sessions: map[*session]struct{}{},
		copies:   map[net.Conn]struct{}{},
		settled:  make(chan struct{}),
	}
	t.Cleanup(l.stop)
	return l
}

func (l *Link) stop() {
	l.mu.Lock()
	l.stopped = true
	close(l.done)
	copies := slices.Collect(maps.Keys(l.copies))
	l.mu.Unlock()
	for _, c := range copies {
		_ = c.Close()
	}
	l.each(func(s *session) { s.kill() })
	l.wg.Wait()
}

// OnCommand sets the function that decides about each command, in place of the one before; nil passes everything. It
// is called for commands of all connections, one at a time, before the command has travelled; it must not block. The
// commands a client sets its connections up with are among them.
func (l *Link) OnCommand(f func(cmd Command) Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onCommand = f
}

func (l *Link) judge(args []string) Verdict {
	l.judging.Lock()
	defer l.judging.Unlock()
	l.mu.Lock()
	l.seen = append(l.seen, args)
	cmd, f := Command{Args: args, N: len(l.seen)}, l.onCommand
	if len(args) > 0 {
		l.counts[strings.ToLower(args[0])]++
	}
	l.mu.Unlock()
	if f == nil {
		return Pass
	}
	return f(cmd)
}

// Dial opens a connection over the link. It fits [redis.Options].Dialer.
func (l *Link) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	near, far := pipe()
	if err := l.connect(ctx, far, network, addr); err != nil {
		return nil, err
	}
	return near, nil
}

// connect begins to relay between client and a new connection to the server.
func (l *Link) connect(ctx context.Context, client net.Conn, network, addr string) error {
	l.mu.Lock()
	l.dials++
	open, swallowed, delay := l.cuts == 0 && !l.stopped, l.holes > 0, 2*l.latency
	l.mu.Unlock()
	if !open {
		return refused(network)
	}
	if !l.travel(ctx, delay) {
		return &net.OpError{Op: "dial", Net: network, Err: context.Cause(ctx)}
	}
	s := newSession(l, client, network, addr)
	if swallowed {
		return l.admit(s)
	}
	server, err := l.dial(ctx, network, addr)
	if err != nil {
		return err
	}
	s.server = server
	if err := l.admit(s); err != nil {
		_ = server.Close()
		return err
	}
	return nil
}

// travel waits out a delay. It returns false if ctx ends first.
func (l *Link) travel(ctx context.Context, delay time.Duration) bool {
	if delay <= 0 {
		return true
	}
	arrived := time.NewTimer(delay)
	defer arrived.Stop()
	select {
	case <-arrived.C:
		return true
	case <-ctx.Done():
		return false
	case <-l.done:
		return true // admit refuses
	}
}

// admit starts s, unless the link was cut or stopped while it was being dialled.
func (l *Link) admit(s *session) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts > 0 || l.stopped {
		return refused(s.network)
	}
	if l.holes > 0 || s.server == nil {
		s.silent.Store(true)
	}
	l.sessions[s] = struct{}{}
	s.start()
	return nil
}

func (l *Link) goUnlessStopped(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.wg.Go(f)
	}
}

// each calls f for every session there is now.
func (l *Link) each(f func(*session)) {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.sessions))
	l.mu.Unlock()
	for _, s := range all {
		f(s)
	}
}

// Cut closes every connection and refuses dials until heal is called. What a verdict holds is lost.
func (l *Link) Cut() (heal func()) {
	heal = l.count(&l.cuts)
	l.each(func(s *session) { s.kill() })
	return heal
}

// Hole swallows, until heal is called, whatever either side sends: existing connections stay open and fall silent for
// good, as bytes they needed are gone, and new ones are accepted and say nothing. The server keeps its ends open.
func (l *Link) Hole() (heal func()) {
	heal = l.count(&l.holes)
	l.each(func(s *session) { s.silent.Store(true) })
	return heal
}

// count raises n until the function it returns is called.
func (l *Link) count(n *int) (undo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*n--
	})
}

// HoleSubscribers makes the connections that have subscribed to something fall
// silent, as Hole does, and no others. New connections work.
func (l *Link) HoleSubscribers() {
	l.each(func(s *session) {
		if s.pubsub.Load() {
			s.silent.Store(true)
		}
	})
}

// Latency sets the time that what is sent from now on travels in each direction. A dial takes a round trip.
func (l *Link) Latency(each time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency = each
}

// arrival is when something sent now arrives.
func (l *Link) arrival() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(l.latency)
}

// Commands returns how often clients have sent each command, by its name in lower
// case, whatever became of it. Copies that Duplicate makes are not counted.
func (l *Link) Commands() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

// Log returns every command sent so far, in the order of Command.N.
func (l *Link) Log() [][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// Conns returns how many connections are open as their clients see it.
func (l *Link) Conns() int {
	n := 0
	l.each(func(s *session) {
		if !s.left.Load() {
			n++
		}
	})
	return n
}

// Dials returns how many connections were asked for, also those refused.
func (l *Link) Dials() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials
}
