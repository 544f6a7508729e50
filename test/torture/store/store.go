// Package store is the resource that the locks protect: it takes a write only
// with a token that is not smaller than the largest it has seen. It notes in
// the history, in the order of its decisions, what it was asked and what it did.
package store

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/relock-go/relock/test/torture/history"
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

	Do   string `json:"d,omitempty"`  // to the lock's buffer: Look, Put or Take; "": nothing
	Item int64  `json:"n,omitempty"`  // that is put, or taken
	Room int64  `json:"of,omitempty"` // of the buffer, in items
	Text string `json:"x,omitempty"`  // of a letter
}

// What the store answers.
const (
	Accepted = ""
	Stale    = "stale" // a larger token has written
	Twice    = "twice" // another grant has written with this very token
)

// What may be done to a buffer. Who looks has it to itself from then on, as one that
// writes: who came before with a smaller token is refused. So nobody acts upon what
// another has changed since.
const (
	Look = "look"
	Put  = "put"
	Take = "take"
)

// Store judges effects.
type Store struct {
	listener net.Listener
	out      *history.Writer
	wg       sync.WaitGroup

	mu     sync.Mutex // guards the following fields, and the order of the history
	newest map[string]grant
	items  map[string][]int64 // in buffers, by lock
	mail   map[string][]letter
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
	s := &Store{listener: listener, out: out, newest: map[string]grant{}, items: map[string][]int64{}, mail: map[string][]letter{}, conns: map[net.Conn]struct{}{}}
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
		if _, err := c.Write([]byte(s.answer(e).line())); err != nil {
			return
		}
	}
}

// judge decides and notes in one step, so that the history's order is the truth.
func (s *Store) judge(e Effect) Answer {
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
		Owner: e.Owner, Token: e.Token, Err: verdict, On: e.Do, By: e.Item, Of: e.Room,
	})
	if verdict == Accepted && e.Do != "" {
		s.move(e)
	}
	a := Answer{Verdict: verdict, Items: len(s.items[e.Lock])}
	if a.Items > 0 {
		a.First = s.items[e.Lock][0]
	}
	return a
}

// move does what it is asked to, whether or not that makes sense: the history says.
func (s *Store) move(e Effect) {
	all := s.items[e.Lock]
	switch i := slices.Index(all, e.Item); {
	case e.Do == Put:
		s.items[e.Lock] = append(all, e.Item)
	case e.Do == Take && i >= 0:
		s.items[e.Lock] = slices.Delete(all, i, i+1)
	}
}

// An Answer is what the store says to an effect, and what is in the lock's buffer then.
type Answer struct {
	Verdict string
	Items   int
	First   int64  // of these, if there is one
	Text    string // of a letter
}

func (a Answer) line() string {
	return fmt.Sprintf("%s %d %d %s\n", a.Verdict, a.Items, a.First, a.Text)
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

// Do asks for an effect.
func (c *Client) Do(e Effect) (a Answer, err error) {
	line, err := json.Marshal(e)
	if err != nil {
		return a, err
	}
	if _, err := c.c.Write(append(line, '\n')); err != nil {
		return a, err
	}
	text, err := c.in.ReadString('\n')
	if err != nil {
		return a, err
	}
	verdict, rest, _ := strings.Cut(text, " ")
	a.Verdict = verdict
	if _, err = fmt.Sscanf(rest, "%d %d", &a.Items, &a.First); err != nil {
		return a, err
	}
	a.Text = strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:])
	return a, nil
}

// Close ends the connection.
func (c *Client) Close() { _ = c.c.Close() }
