package real_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// childEnv holds the server's address and makes the test binary a child.
const childEnv = "RELOCK_TEST_CHILD"

// An order is what a child is told to do. Orders run side by side.
type order struct {
	ID    int
	Do    string // lock, unlock, count, ask, queue, abandon, share, campaign, detach, resume, tick, buffer, wait, terms, draw, or subsets
	Lock  string
	Owner string
	Kind  string
	TTL   time.Duration
	N     int64
	Ask   string
	Text  string // a ticket
}

// A response is how an order ended. Begun says that it is still to end.
type response struct {
	ID    int
	Begun bool
	Err   string
	Lost  bool // the error is ErrLost
	N     int64
	Took  time.Duration
	Terms []claim
	Use   *use
	Text  string // a ticket
}

// child is another process with a client of its own.
type child struct {
	t      testing.TB
	cmd    *exec.Cmd
	said   bytes.Buffer // what it printed; read it after exited only
	exited chan struct{}

	mu   sync.Mutex // guards the following fields
	out  *json.Encoder
	next int
	open map[int]chan response
}

// spawn starts a child that locks in the Redis at addr, and kills it when t ends.
func spawn(t testing.TB, addr string, env ...string) *child {
	t.Helper()
	self, err := os.Executable()
	rig.Must(t, err)
	c := &child{t: t, cmd: exec.Command(self), exited: make(chan struct{}), open: map[int]chan response{}}
	c.cmd.Env = append(os.Environ(), childEnv+"="+addr)
	c.cmd.Env = append(c.cmd.Env, env...)
	c.cmd.Stderr = &c.said
	in, err := c.cmd.StdinPipe()
	rig.Must(t, err)
	out, err := c.cmd.StdoutPipe()
	rig.Must(t, err)
	c.out = json.NewEncoder(in)
	rig.Must(t, c.cmd.Start())
	go c.listen(out)
	t.Cleanup(func() {
		c.kill()
		if t.Failed() && c.said.Len() > 0 {
			t.Logf("child %d said:\n%s", c.cmd.Process.Pid, c.said.String())
		}
	})
	return c
}

func (c *child) listen(out io.Reader) {
	defer close(c.exited)
	for in := json.NewDecoder(out); ; {
		var r response
		if in.Decode(&r) != nil {
			break
		}
		c.mu.Lock()
		to := c.open[r.ID]
		c.mu.Unlock()
		to <- r
	}
	_ = c.cmd.Wait()
}

// begin gives an order, whose one or two reports come on the channel.
func (c *child) begin(o order) <-chan response {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	o.ID = c.next
	reports := make(chan response, 2)
	c.open[o.ID] = reports
	rig.Must(c.t, c.out.Encode(o))
	return reports
}

// hear returns the next report of an order.
func (c *child) hear(reports <-chan response) response {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), 2*time.Minute)
	defer cancel()
	select {
	case r := <-reports:
		return r
	case <-c.exited:
		c.t.Fatalf("a child has died: %s", c.said.String())
	case <-ctx.Done():
		c.signal(syscall.SIGQUIT)
		<-c.exited
		c.t.Fatal("a child does not answer")
	}
	return response{}
}

// do gives an order and fails t unless it succeeds.
func (c *child) do(o order) response {
	c.t.Helper()
	r := c.hear(c.begin(o))
	if r.Err != "" {
		c.t.Fatalf("%s %q in a child: %s", o.Do, o.Lock, r.Err)
	}
	return r
}

func (c *child) signal(sig syscall.Signal) {
	c.t.Helper()
	rig.Must(c.t, c.cmd.Process.Signal(sig))
	if sig == syscall.SIGSTOP {
		redistest.AwaitStopped(c.t, c.cmd.Process.Pid)
	}
}

// kill ends the child without a chance to say goodbye, and waits for that.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// agent is the inside of a child.
type agent struct {
	rdb    *redis.Client
	client *relock.Client
	crew   crew
	office office

	mu    sync.Mutex // guards the following fields
	out   *json.Encoder
	locks map[string]*relock.Lock
	holds map[string]*relock.Hold // the latest of each lock
}

// runChild obeys until its orders end, as they do when the parent dies.
func runChild(addr string, in io.Reader, out io.Writer) int {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	client, err := relock.New(rdb)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	a := &agent{
		rdb: rdb, client: client, out: json.NewEncoder(out),
		locks: map[string]*relock.Lock{}, holds: map[string]*relock.Hold{},
	}
	for orders := json.NewDecoder(in); ; {
		var o order
		if orders.Decode(&o) != nil {
			return 0
		}
		go func() { a.report(o, a.obey(o)) }()
	}
}

func (a *agent) obey(o order) response {
	switch o.Do {
	case "lock":
		return a.lock(o)
	case "unlock":
		return failure(a.handle(o).Unlock())
	case "count":
		return a.count(o)
	case "ask":
		return a.ask(o)
	case "queue":
		return a.queue(o)
	case "abandon":
		return a.abandon(o)
	case "share":
		return a.share(o)
	case "campaign":
		return a.campaign(o)
	case "detach":
		return a.detach(o)
	case "resume":
		return a.resume(o)
	case "tick":
		return a.tick(o)
	case "draw":
		return a.draw(o)
	case "subsets":
		return a.subsets(o)
	case "buffer":
		return a.buffer(o)
	case "wait":
		return a.sleep(o)
	case "terms":
		return a.claims()
	}
	return failure(errors.New("no such order"))
}

func (a *agent) report(o order, r response) {
	r.ID = o.ID
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.out.Encode(r) // a parent that has gone wants no report
}

func failure(err error) response {
	if err == nil {
		return response{}
	}
	return response{Err: err.Error(), Lost: errors.Is(err, relock.ErrLost)}
}

// handle returns the child's one handle on a lock, made by its first order.
func (a *agent) handle(o order) *relock.Lock {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.locks[o.Lock]
	if l == nil {
		var opts []relock.LockOption
		if o.Owner != "" {
			opts = append(opts, relock.Owner(o.Owner))
		}
		if o.TTL != 0 {
			opts = append(opts, relock.TTL(o.TTL))
		}
		l = a.client.NewLock(o.Lock, opts...)
		a.locks[o.Lock] = l
	}
	return l
}

func (a *agent) lock(o order) response {
	h, err := a.handle(o).Acquire(context.Background())
	if err != nil {
		return failure(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.holds[o.Lock] = h
	return response{N: h.Token()}
}
