package real_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// detach hands over the latest hold of a lock, for as long as the order says.
func (a *agent) detach(o order) response {
	a.mu.Lock()
	h := a.holds[o.Lock]
	a.mu.Unlock()
	if h == nil {
		return failure(errors.New("not held here"))
	}
	ticket, err := h.Detach(context.Background(), o.TTL)
	r := failure(err)
	r.Text = string(ticket)
	return r
}

// resume takes what a ticket has.
func (a *agent) resume(o order) response {
	h, err := a.client.Resume(context.Background(), relock.Ticket(o.Text))
	if err != nil {
		return failure(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.holds[o.Lock] = h
	return response{N: h.Token()}
}

// raceFor gives a ticket to three processes at once, and returns the one that holds by it.
func raceFor(t *testing.T, srv *redistest.RealServer, ticket string, token int64) (holds *child) {
	t.Helper()
	var answers []<-chan response
	workers := []*child{spawn(t, srv.Addr()), spawn(t, srv.Addr()), spawn(t, srv.Addr())}
	for _, w := range workers {
		answers = append(answers, w.begin(order{Do: "resume", Lock: "order", Text: ticket}))
	}
	held := 0
	for i, w := range workers {
		switch r := w.hear(answers[i]); {
		case r.Err == "" && r.N == token:
			held++
			holds = w
		case !r.Lost:
			t.Errorf("a worker was answered %+v, want token %d, or that it has been resumed", r, token)
		}
	}
	if held != 1 {
		t.Fatalf("%d workers hold, want one", held)
	}
	return holds
}

// One process takes a request and dies when it has queued the ticket; of three workers that
// get it at once one has it, works for longer than the lease, hands it on, and dies; the last
// one dies without that. Somebody waits all the time.
// Fails when the hold ends with its process, when two have it, when it is not renewed, and
// when it outlives the last process by more than its lease.
func TestAHoldIsHandedFromProcessToProcess(t *testing.T) {
	t.Parallel() // it waits more than it works
	srv := redistest.Real(t)
	c := rig.Open(t, srv.Client(t))
	l := c.NewLock("order")
	const ttl = time.Second
	front := spawn(t, srv.Addr())
	token := front.do(order{Do: "lock", Lock: "order", TTL: ttl}).N
	waits := rig.Beside(func() error { return l.Lock(t.Context()) })
	rig.Queued(t, l, 1)
	ticket := front.do(order{Do: "detach", Lock: "order", TTL: time.Minute}).Text
	front.kill()

	worker := raceFor(t, srv, ticket, token)
	<-time.After(2 * ttl)
	ticket = worker.do(order{Do: "detach", Lock: "order", TTL: time.Minute}).Text
	worker.kill()
	last := spawn(t, srv.Addr())
	if got := last.do(order{Do: "resume", Lock: "order", Text: ticket}).N; got != token {
		t.Errorf("token %d, want %d", got, token)
	}
	if info, err := l.Info(t.Context()); err != nil || len(info.Holders) != 1 || info.Holders[0].Token != token || info.Waiters != 1 {
		t.Errorf("redis says %+v, %v, want one hold with token %d", info, err, token)
	}
	last.kill()
	rig.Must(t, <-waits)
	if l.Token() <= token {
		t.Errorf("the next has token %d after %d", l.Token(), token)
	}
	rig.Must(t, l.Unlock())
}
