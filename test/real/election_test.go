package real_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

const termTTL = time.Second

// A claim is what a process has said of one of its terms, by the clock of the machine:
// that it led at some instant before First, and at some instant after Last.
type claim struct {
	Token       int64
	First, Last int64
}

// An office is the part of a child that runs for an election.
type office struct {
	token atomic.Int64 // of the term it leads in; 0: none

	mu    sync.Mutex // guards the following field
	terms []claim
}

// campaign runs for an election until the child dies, with a lead that ends with its
// term, and asks IsLeader all the time.
func (a *agent) campaign(o order) response {
	e := a.client.NewElection(o.Lock, relock.TTL(o.TTL))
	go func() {
		_ = e.Run(context.Background(), func(ctx context.Context, term relock.Term) error {
			a.office.token.Store(term.Token)
			defer a.office.token.Store(0)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	go func() {
		for asking := time.NewTicker(time.Millisecond); ; <-asking.C {
			before := time.Now().UnixNano()
			if e.IsLeader() {
				a.office.note(before, time.Now().UnixNano())
			}
		}
	}()
	return response{}
}

// note adds an answer to the claims of the term.
func (o *office) note(before, after int64) {
	token := o.token.Load()
	if token == 0 {
		return // the term has begun, and lead has not
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.terms); n == 0 || o.terms[n-1].Token != token {
		o.terms = append(o.terms, claim{Token: token, First: after})
	}
	o.terms[len(o.terms)-1].Last = before
}

// claims are all that the child has claimed, and the token of the term it leads in.
func (a *agent) claims() response {
	a.office.mu.Lock()
	defer a.office.mu.Unlock()
	return response{N: a.office.token.Load(), Terms: slices.Clone(a.office.terms)}
}

// A party is some processes that run for one election.
type party struct {
	t       *testing.T
	srv     *redistest.RealServer
	e       *relock.Election // of an observer
	members []*member
	claims  []claim // of those who have been killed, as far as they were asked
}

type member struct {
	*child
	link   *redistest.Link
	silent bool // it is stopped
}

func (p *party) join() {
	link := redistest.NewLink(p.t, p.srv.Dial)
	m := &member{child: spawn(p.t, link.Listen(p.t)), link: link}
	m.do(order{Do: "campaign", Lock: "e", TTL: termTTL})
	p.members = append(p.members, m)
}

// leader waits until somebody leads in a term after that one, and knows it. Who goes on after
// a trouble may not know yet that its term is over.
func (p *party) leader(after claim) (leader *member, term claim) {
	p.t.Helper()
	rig.Soon(p.t, func() string {
		for _, m := range p.members {
			if m.silent {
				continue
			}
			r := m.do(order{Do: "terms"})
			if n := len(r.Terms); n > 0 && r.N == r.Terms[n-1].Token && r.N > after.Token {
				leader, term = m, r.Terms[n-1]
				return ""
			}
		}
		return "nobody leads"
	})
	return leader, term
}

// leaseEnds is when the lease of the one who leads, or has led, ends by the machine's clock.
func (p *party) leaseEnds() int64 {
	p.t.Helper()
	got, err := p.e.Leader(p.t.Context())
	if err != nil && !errors.Is(err, relock.ErrNotHeld) {
		p.t.Fatal(err)
	}
	return time.Now().Add(got.TTL).UnixNano()
}

// troubles befall a leader, and end when the next leads.
var troubles = map[string]func(p *party, leader *member) (end func()){
	"killed": func(p *party, leader *member) func() {
		p.claims = append(p.claims, leader.do(order{Do: "terms"}).Terms...)
		leader.kill()
		p.members = slices.DeleteFunc(p.members, func(m *member) bool { return m == leader })
		return p.join
	},
	"frozen": func(_ *party, leader *member) func() {
		leader.signal(syscall.SIGSTOP)
		leader.silent = true
		return func() {
			leader.signal(syscall.SIGCONT)
			leader.silent = false
		}
	},
	"partitioned": func(_ *party, leader *member) func() { return leader.link.Hole() },
}

// The next leads within what is left of the lease and 250 ms, in the best of some rounds:
// how soon a process runs is the machine's affair.
// Fails when IsLeader does not ask the clock, and when nobody waits for the lease's end.
func TestElectionHasOneLeaderAmongProcesses(t *testing.T) {
	t.Parallel() // it waits more than it works
	srv := redistest.Real(t)
	p := &party{t: t, srv: srv, e: rig.Open(t, srv.Client(t)).NewElection("e")}
	for range 3 {
		p.join()
	}
	leader, term := p.leader(claim{})
	for trouble, befall := range troubles {
		best := time.Hour
		for range rig.Rounds(3, 20) {
			end := befall(p, leader)
			ends := p.leaseEnds()
			leader, term = p.leader(term)
			best = min(best, time.Duration(term.First-ends))
			end()
		}
		t.Logf("%s: the next leads %v after the lease at best", trouble, best)
		if best > 250*time.Millisecond {
			t.Errorf("%s: the next leads %v after the lease of the last at best, want within 250ms", trouble, best)
		}
	}
	all := p.claims
	for _, m := range p.members {
		all = append(all, m.do(order{Do: "terms"}).Terms...)
	}
	slices.SortFunc(all, func(a, b claim) int { return cmp.Compare(a.Token, b.Token) })
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Last >= b.First {
			t.Errorf("the leader of term %d says so %v after the one of term %d did", a.Token, time.Duration(a.Last-b.First), b.Token)
		}
	}
	if len(all) < 3*len(troubles) {
		t.Errorf("%d terms seen, want one for each trouble at least", len(all))
	}
}
