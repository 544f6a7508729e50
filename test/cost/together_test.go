package cost_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

// TestPairsOfManyCallersAreMadeTogether fails when calls of many callers are not made by one
// script, or when what is made so does less than a lock and an unlock.
func TestPairsOfManyCallersAreMadeTogether(t *testing.T) {
	s := newScale(t)
	c := s.new()
	rig.ListenNow(t, c) // requests may wait from then on
	const callers, pairs = 256, 40
	calls, _ := s.stats()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			l, last := c.NewLock(fmt.Sprint("one of many ", i)), int64(0)
			for range pairs {
				h, err := l.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if h.Token() <= last {
					t.Errorf("token %d after %d", h.Token(), last)
				}
				last = h.Token()
				if err := h.Release(); err != nil {
					t.Error(err)
				}
			}
			if info, err := l.Info(t.Context()); err != nil || len(info.Holders) > 0 {
				t.Errorf("%d is held: %v, %v", i, info, err)
			}
		})
	}
	wg.Wait()
	more, _ := s.stats()
	each := float64(more-calls) / (callers * pairs)
	if t.Logf("%.2f scripts a pair of %d callers", each, callers); each >= 1 {
		t.Error("they are not made together")
	}
}
