package contract_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// on returns a quorum with one client for each of those servers, and the links of the clients.
func (p *primaries) on(servers ...int) (*relock.Quorum, []*redistest.Link) {
	p.x.T.Helper()
	var all []*redistest.Server
	for _, i := range servers {
		all = append(all, p.all[i])
	}
	return (&primaries{x: p.x, all: all}).process()
}

// Fails when such a lock is "taken" for ever, or is granted to a named owner.
func TestQuorumOfClientsOfOneServerSaysSo(t *testing.T) {
	for _, row := range []struct {
		what    string
		servers []int
		down    bool // the first client's server does not answer: the others are needed
	}{{"two of two", []int{0, 0}, false}, {"three of three", []int{0, 0, 0}, false}, {"two of three", []int{0, 1, 1}, true}} {
		for _, owner := range []string{"", "me"} {
			t.Run(row.what+" "+owner, func(t *testing.T) {
				rig.Run(t, func(t *testing.T, x *rig.Lab) {
					p := newPrimaries(x, 2)
					q, links := p.on(row.servers...)
					ctx := t.Context()
					if owner != "" {
						ctx = x.By(owner)
					}
					if row.down {
						links[0].Cut()
					}
					got, err := q.NewLock("a").TryLock(ctx, time.Second)
					if rig.WantIs(t, err, relock.ErrInvalidOption); got {
						t.Error("held by one server")
					}
					rig.WantIs(t, q.NewLock("b").Lock(ctx), relock.ErrInvalidOption)
					virtual.Sleep(time.Second)
					own := x.ClientOver(p.all[row.servers[1]].Client(t))
					if got, err := own.NewLock("a", relock.Fair()).TryLock(t.Context(), 0); !got || err != nil {
						t.Errorf("what was refused is left: %v, %v", got, err)
					}
				})
			})
		}
	}
}

// Each attempt is an occasion: two clients of one server meet there, or a named owner is granted both.
// Fails when another occasion is checked than those that are documented: seldom, and ever again.
func TestQuorumLooksForClientsOfOneServerSeldomAndEverAgain(t *testing.T) {
	for _, owner := range []string{"", "me"} {
		t.Run(owner, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				q, _ := newPrimaries(x, 1).on(0, 0)
				ctx := t.Context()
				if owner != "" {
					ctx = x.By(owner)
				}
				var refused []int
				for i := 1; i <= 17; i++ {
					l := q.NewLock(fmt.Sprint("l", i))
					got, err := l.TryLock(ctx, 0)
					switch {
					case errors.Is(err, relock.ErrInvalidOption):
						refused = append(refused, i)
					case got:
						rig.Must(t, l.Unlock())
					default:
						rig.Must(t, err)
					}
				}
				if want := []int{1, 2, 4, 8, 16}; !slices.Equal(refused, want) {
					t.Errorf("refused at the occasions %v, want %v", refused, want)
				}
			})
		})
	}
}

// Contenders split the primaries among them, and named owners enter again: no client meets another
// one of its own quorum. Fails when these are taken for clients of one server.
func TestQuorumOfServersOfTheirOwnIsNotTakenForOneServer(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		a, _ := p.process()
		b, _ := p.process()
		done := make(chan error)
		for _, q := range []*relock.Quorum{a, b, a, b} {
			go func() {
				for range 5 {
					if err := q.NewLock("a").Do(t.Context(), func(ctx context.Context) error { virtual.Sleep(time.Millisecond); return ctx.Err() }); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 4 {
			rig.Must(t, <-done)
		}
		outer, err := a.NewLock("a").Acquire(x.By("me"))
		rig.Must(t, err)
		for _, q := range []*relock.Quorum{a, b} {
			inner, err := q.NewLock("a").Acquire(x.By("me"))
			rig.Must(t, err)
			rig.Must(t, inner.Release())
		}
		rig.Must(t, outer.Release())
	})
}
