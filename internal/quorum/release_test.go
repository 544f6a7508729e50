package quorum_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/quorum"
	"github.com/relock-go/relock/internal/virtual"
)

// A slow primary takes a while to answer what it is given back.
type slow struct{ *fakePrimary }

func (p slow) Try(ctx context.Context, wait time.Duration) (quorum.Hold, error) {
	h, err := p.fakePrimary.Try(ctx, wait)
	if err != nil {
		return nil, err
	}
	return slowHold{h.(*fakeHold)}, nil
}

type slowHold struct{ *fakeHold }

func (h slowHold) Release() error {
	virtual.Sleep(time.Millisecond)
	return h.fakeHold.Release()
}

// Primaries have lost a hold, of which nobody hears before it is released, and they answer last.
// Fails when one of them is as good as one that had it until then.
func TestAReleaseIsOfALossWhereNoMajorityHadIt(t *testing.T) {
	for _, row := range []struct {
		gone, forgets, silent int // primaries of five, in this order
		want                  error
	}{
		{want: nil},
		{forgets: 2, want: nil},
		{forgets: 3, want: errLost},
		{gone: 2, want: nil},
		{gone: 2, forgets: 1, want: errLost}, // a bare majority
		{forgets: 2, silent: 1, want: nil},   // which may have had it
		{forgets: 3, silent: 2, want: errLost},
		{forgets: 1, silent: 3, want: errUnconfirmed},
	} {
		run(t, func(t *testing.T) {
			if err := releases(t, row.gone, row.forgets, row.silent); err != row.want { //nolint:errorlint // made here, never wrapped
				t.Errorf("%+v: got %v", row, err)
			}
		})
	}
}

// releases ends a hold on the primaries that are not gone, when so many of these have forgotten
// it, and the next have fallen silent.
func releases(t *testing.T, gone, forget, silent int) error {
	t.Helper()
	all := newPrimaries(0, 0, 0, 0, 0)
	l := lockOn(all)
	l.Fixed = true
	for i, p := range all {
		if i < gone {
			p.silence()
		} else if i < gone+forget {
			l.Primaries[i] = slow{p}
		}
	}
	h := gather(t, l)
	synctest.Wait() // all that answer are had
	for i, p := range all[gone:] {
		if i < forget {
			p.forget()
		} else if i < forget+silent {
			p.silence()
		}
	}
	err := h.Release()
	for _, p := range all {
		p.heal()
	}
	return err
}

// Fails when a release waits for a minority: a majority has said enough.
func TestAReleaseWaitsForNoMoreThanAMajority(t *testing.T) {
	run(t, func(t *testing.T) {
		all := newPrimaries(0, 0, 0, 0, 0)
		h := gather(t, lockOn(all))
		virtual.Sleep(time.Second) // all are had
		all[0].silence()
		all[1].silence()
		began := time.Now()
		wantIs(t, h.Release(), nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("released after %v, though a majority had it until then", took)
		}
		all[0].heal()
		all[1].heal()
	})
}
