package contract_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// Two primaries of three lose their data, of which nobody is told before the next renewal.
// Fails when a primary that no longer had the hold is one that has released it.
func TestQuorumReleaseSaysThatItsMajorityWasGone(t *testing.T) {
	for what, end := range map[string]func(l *relock.QuorumLock, lose func()) error{
		"Release": func(l *relock.QuorumLock, lose func()) error {
			h, err := l.Acquire(context.Background())
			if err != nil {
				return err
			}
			lose()
			return h.Release()
		},
		"Unlock": func(l *relock.QuorumLock, lose func()) error {
			if err := l.Lock(context.Background()); err != nil {
				return err
			}
			lose()
			return l.Unlock()
		},
		"Do": func(l *relock.QuorumLock, lose func()) error {
			return l.Do(context.Background(), func(context.Context) error { lose(); return nil })
		},
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			p := newPrimaries(x, 3)
			err := end(p.lock("a"), func() {
				synctest.Wait() // all are had
				for _, srv := range p.all[:2] {
					srv.FlushAll()
				}
				got, err := p.lock("a").TryLock(t.Context(), 0)
				if rig.Must(t, err); !got {
					t.Error("nobody else has it: this test shows nothing")
				}
			})
			if rig.WantIs(t, err, relock.ErrLost); err == nil {
				t.Errorf("%s says that it was held until now", what)
			}
		})
	}
}

// The primary that no longer had the hold answers last.
// Fails when the release has returned by then.
func TestQuorumReleaseHearsWhetherItsMajorityWasGone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		for lost := 1; lost <= 2; lost++ {
			q, links := p.process()
			h := take(t, q.NewLock("a"))
			virtual.Sleep(time.Second) // all are had
			for i, srv := range p.all[:lost] {
				srv.FlushAll()
				links[i].Latency(10 * time.Millisecond)
			}
			if err := h.Release(); lost == 1 {
				rig.Must(t, err) // of the others, which are a majority
			} else {
				rig.WantIs(t, err, relock.ErrLost)
			}
		}
	})
}

// Two primaries of three are had, and one of these loses its data.
func TestQuorumReleaseOfABareMajoritySaysThatOneOfItWasGone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := newPrimaries(x, 3)
		q, links := p.process()
		links[2].Cut()
		h := take(t, q.NewLock("a"))
		p.all[0].FlushAll()
		links[0].Latency(10 * time.Millisecond)
		rig.WantIs(t, h.Release(), relock.ErrLost)
	})
}
