package redistest

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// session is one connection over a Link. Four goroutines relay it: one that reads and one that writes in each
// direction, with a queue between them, so that neither side ever waits for the other to read.
type session struct {
	link          *Link
	network, addr string
	client        net.Conn
	server        net.Conn // nil if dialled while the link was a hole
	requests      *queue[request]
	replies       *queue[reply]
	gone          chan struct{} // closed by kill
	kill          func()        // closes both ends, once

	silent atomic.Bool // nothing passes in either direction
	mute   atomic.Bool // nothing passes to the client
	pubsub atomic.Bool // a subscription was acknowledged
	left   atomic.Bool // the client's end is closed

	ledger ledger // which frame answers which command

	mu   sync.Mutex // protects held
	held int        // this session's share of link.late
}

// request is a command on its way to the server.
type request struct {
	raw     []byte
	args    []string
	verdict Verdict
	due     time.Time
}

// reply is a frame on its way to the client; the last one has no frame.
type reply struct {
	frame
	last bool
	due  time.Time
}

func newSession(l *Link, client net.Conn, network, addr string) *session {
	s := &session{
		link: l, client: client, network: network, addr: addr,
		requests: newQueue[request](),
		replies:  newQueue[reply](),
		gone:     make(chan struct{}),
		ledger:   ledger{channels: map[string]map[string]struct{}{}},
	}
	s.kill = sync.OnceFunc(s.end)
	return s
}

// start begins to relay. Caller holds link.mu.
func (s *session) start() {
	s.link.wg.Go(s.readClient)
	s.link.wg.Go(s.forward)
	if s.server != nil {
		s.link.wg.Go(s.readServer)
		s.link.wg.Go(s.deliver)
	}
}

func (s *session) end() {
	s.left.Store(true)
	close(s.gone)
	_ = s.client.Close()
	if s.server != nil {
		_ = s.server.Close()
	}
	s.mu.Lock()
	held := s.held
	s.held = 0
	s.mu.Unlock()
	s.link.addLate(-held)
	s.link.mu.Lock()
	delete(s.link.sessions, s)
	s.link.mu.Unlock()
}

func (s *session) readClient() {
	defer s.requests.end()
	defer s.left.Store(true)
	r := bufio.NewReader(s.client)
	for {
		raw, args, err := readRequest(r)
		if err != nil {
			return
		}
		if len(args) == 0 {
			continue // an empty request has no reply
		}
		req := request{raw: raw, args: args, verdict: s.link.judge(args), due: s.link.arrival()}
		if req.verdict.effect == hold {
			s.hold(1)
		}
		s.requests.push(req)
	}
}

// forward takes commands to the server until the client has closed its end and
// every command ahead of that, held or not, has been written.
func (s *session) forward() {
	severed := false // nothing more may reach the server
	for {
		req, ok := s.requests.next(s.gone)
		if !ok || !s.wait(req.due) {
			break
		}
		if severed || !s.release(req) || s.silent.Load() {
			s.discard(req)
			continue
		}
		severed = !s.dispatch(req)
	}
	// A silent connection does not tell the server that the client has left.
	if s.server == nil || severed || s.silent.Load() {
		return
	}
	if half, ok := s.server.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = s.server.Close()
}

// release waits until req is held no longer. It returns false if s was killed.
func (s *session) release(req request) bool {
	if req.verdict.effect != hold {
		return true
	}
	select {
	case <-req.verdict.until:
		return true
	case <-s.gone:
		return false
	}
}

func (s *session) discard(req request) {
	if req.verdict.effect == hold {
		s.hold(-1)
	}
}

// wait waits until a request or a reply has crossed the link, at due. It returns false if the session is killed first.
func (s *session) wait(due time.Time) bool {
	delay := time.Until(due)
	if delay <= 0 {
		return true
	}
	arrived := time.NewTimer(delay)
	defer arrived.Stop()
	select {
	case <-arrived.C:
		return true
	case <-s.gone:
		return false
	}
}

// dispatch carries out the verdict on req. It returns false if nothing behind req may reach the server.
func (s *session) dispatch(req request) bool {
	s.ledger.expect(req)
	switch req.verdict.effect {
	case lose, cutBefore:
		s.settle()
		return false
	case duplicate:
		s.link.copyLater(req.raw, req.verdict.until, s.network, s.addr)
	}
	_, _ = s.server.Write(req.raw) // a closed server shows as the end of its replies
	return req.verdict.effect != cutReply
}

// hold changes the number of held commands of s.
func (s *session) hold(n int) {
	s.mu.Lock()
	select {
	case <-s.gone: // kill has already taken them off the link's number
		n = 0
	default:
	}
	s.held += n
	s.mu.Unlock()
	s.link.addLate(n)
}

// settle acts on a command that never left once all ahead of it are answered.
func (s *session) settle() {
	switch s.ledger.head() {
	case lose:
		s.silent.Store(true)
	case cutBefore:
		s.kill()
	}
}

func (s *session) readServer() {
	r := bufio.NewReader(s.server)
	for {
		f, err := readFrame(r)
		s.replies.push(reply{frame: f, last: err != nil, due: s.link.arrival()})
		if err != nil {
			s.replies.end()
			return
		}
	}
}

// deliver takes replies to the client until the server closes its end.
func (s *session) deliver() {
	for {
		r, ok := s.replies.next(s.gone)
		if !ok || !s.wait(r.due) {
			return
		}
		if r.last {
			if !s.silent.Load() && !s.mute.Load() || s.left.Load() {
				s.kill()
			}
			return
		}
		if !s.hand(r.frame) {
			return
		}
		s.settle()
	}
}

// hand gives f to the client unless a verdict is against it. It returns false if the connection ends here.
func (s *session) hand(f frame) bool {
	e, answers := s.ledger.match(f)
	if answers {
		// f has been delivered now, so the fate of a command behind it may take effect.
		defer s.ledger.strike(f)
		switch e.effect {
		case swallowReply:
			s.mute.Store(true)
		case cutReply:
			s.kill()
			return false
		case hold:
			defer s.hold(-1)
		}
		if e.subscribes() && f.kind != '-' {
			s.pubsub.Store(true)
		}
	}
	if !s.silent.Load() && !s.mute.Load() {
		_, _ = s.client.Write(f.raw) // a client that has left reads nothing
	}
	return true
}
