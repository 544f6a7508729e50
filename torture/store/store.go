// Package store is the resource that the locks protect: it takes a write only
// with a token that is not smaller than the largest it has seen. It notes in
// the history, in the order of its decisions, what it was asked and what it did.
package store

import (
	"bufio"
	"encoding/json"
	"net"
	"sync"

	"github.com/relock-go/relock/torture/history"
)

// An Effect is what a holder asks of the store.
type Effect struct {
	Worker int    `json:"w"`
	ID     int64  `json:"i"`
	Lock   string `json:"l"`
	Kind   string `json:"k"`
	Mode   string `json:"m"`
	Owner  string `json:"o,omitempty"`
	Token  int64  `json:"f"`
}

// What the store answers.
const (
	Accepted = ""
	Stale    = "stale" // a larger token has written
	Twice    = "twice" // another grant has written with this very token
)

// Store judges effects.
type Store struct {
	listener net.Listener
	out      *history.Writer
	wg       sync.WaitGroup

	mu     sync.Mutex // guards the following fields, and the order of the history
	newest map[string]grant
	conns  map[net.Conn]struct{}
	closed bool
}

// grant is the one that wrote last.
type grant struct {
	token  int64
	owner  string
	worker int
	id     int64
}

func (g grant) is(e Effect) bool {
	if g.owner != "" || e.Owner != "" {
		return g.owner == e.Owner // the holds of an owner share its grant's token
	}
	return g.worker == e.Worker && g.id == e.ID
}

// Listen serves at a path in the file system.
func Listen(path string, out *history.Writer) (*Store, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s := &Store{listener: listener, out: out, newest: map[string]grant{}, conns: map[net.Conn]struct{}{}}
	s.wg.Go(s.accept)
	return s, nil
}

// Close ends every connection.
func (s *Store) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	s.out.Flush()
}

func (s *Store) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			_ = c.Close()
		}
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(c) })
	}
}

func (s *Store) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	for in := bufio.NewScanner(c); in.Scan(); {
		var e Effect
		if json.Unmarshal(in.Bytes(), &e) != nil {
			return
		}
		if _, err := c.Write([]byte(s.judge(e) + "\n")); err != nil {
			return
		}
	}
}

// judge decides and notes in one step, so that the history's order is the truth.
func (s *Store) judge(e Effect) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, verdict := s.newest[e.Lock], Accepted
	switch {
	case e.Token < last.token:
		verdict = Stale
	case e.Mode == "w" && e.Token == last.token && !last.is(e):
		verdict = Twice
	case e.Mode == "w":
		s.newest[e.Lock] = grant{e.Token, e.Owner, e.Worker, e.ID}
	}
	s.out.Add(history.Event{
		Worker: e.Worker, What: history.Effect, ID: e.ID, Lock: e.Lock, Kind: e.Kind, Mode: e.Mode,
		Owner: e.Owner, Token: e.Token, Err: verdict,
	})
	return verdict
}

// Client is a connection to the store, for one goroutine.
type Client struct {
	c  net.Conn
	in *bufio.Reader
}

// Dial connects to the store at path.
func Dial(path string) (*Client, error) {
	c, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	return &Client{c, bufio.NewReader(c)}, nil
}

// Do asks for an effect, and returns the store's verdict.
func (c *Client) Do(e Effect) (string, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	if _, err := c.c.Write(append(line, '\n')); err != nil {
		return "", err
	}
	verdict, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	return verdict[:len(verdict)-1], nil
}

// Close ends the connection.
func (c *Client) Close() { _ = c.c.Close() }
