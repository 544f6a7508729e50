package quorum_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/quorum"
)

var start = time.Unix(1_000_000, 0)

// after are instants, so many seconds from the start; 0 is a hold that is lost.
func after(seconds ...int) (untils []time.Time) {
	for _, s := range seconds {
		var t time.Time
		if s > 0 {
			t = start.Add(time.Duration(s) * time.Second)
		}
		untils = append(untils, t)
	}
	return untils
}

func TestTrustIsTheLeastOfTheBestThatAreNeeded(t *testing.T) {
	for _, row := range []struct {
		need   int
		untils []time.Time
		want   int
	}{
		{2, after(1, 3, 2), 2},
		{3, after(1, 3, 2), 1},
		{1, after(1, 3, 2), 3},
		{2, after(1, 0, 2), 1},
		{2, after(0, 0, 2), 0},
		{3, after(1, 2), 0},
		{1, nil, 0},
	} {
		if got, want := quorum.Trust(row.need, row.untils), after(row.want)[0]; !got.Equal(want) {
			t.Errorf("%d of %v: until %v, want %v", row.need, row.untils, got, want)
		}
	}
}

func TestTrustLeavesWhatItIsGivenAsItIs(t *testing.T) {
	untils := after(1, 0, 2)
	quorum.Trust(2, untils)
	if !slices.Equal(untils, after(1, 0, 2)) {
		t.Errorf("it has become %v", untils)
	}
}

func TestEveryEndOfSeveralIsTold(t *testing.T) {
	first, last := errors.New("first"), errors.New("last")
	err := quorum.EndAll([]error{first, nil, last}, func(err error) error { return err })
	if !errors.Is(err, first) || !errors.Is(err, last) || err.Error() != "first\nlast" {
		t.Errorf("got %q, want both in their order", err)
	}
	if err := quorum.EndAll([]error{nil, nil}, func(err error) error { return err }); err != nil {
		t.Errorf("got %v, want none", err)
	}
}

// Each of several comes to its end though one before it has panicked.
func TestPanicAtTheEndOfOneIsTheCallers(t *testing.T) {
	var mu sync.Mutex // guards ended
	var ended []int
	defer func() {
		if p := recover(); p != "hook" || len(ended) != 3 {
			t.Errorf("recovered %v after the end of %v", p, ended)
		}
	}()
	_ = quorum.EndAll([]int{1, 2, 3}, func(i int) error {
		mu.Lock()
		ended = append(ended, i)
		mu.Unlock()
		if i == 1 {
			panic("hook")
		}
		return nil
	})
}

// A fakeHeld is a hold that is lost when that is set, and while it is asked something happens.
type fakeHeld struct {
	lost      error
	meanwhile func()
}

func (h *fakeHeld) Err() error {
	if h.meanwhile != nil {
		f := h.meanwhile
		h.meanwhile = nil
		f()
	}
	return h.lost
}

func TestUnlockTakesWhatWasLostFirstAndWhatOthersReleaseLast(t *testing.T) {
	var r quorum.Register[*fakeHeld]
	gone := errors.New("lost")
	a, b, c, d := &fakeHeld{}, &fakeHeld{lost: gone}, &fakeHeld{}, &fakeHeld{lost: gone}
	r.Add(a, true)
	r.Add(b, true)
	r.Add(c, true)
	r.Add(d, false)
	if newest := r.Newest(); newest != d || r.Live() != 2 {
		t.Errorf("newest %v, %d live", newest, r.Live())
	}
	for i, want := range []*fakeHeld{b, c, a, d} {
		if got, ok := r.Take(); got != want || !ok {
			t.Errorf("the take %d is another: %p, want %p", i, got, want)
		}
	}
	if got, ok := r.Take(); ok {
		t.Errorf("got %v of none", got)
	}
	if r.Newest() != nil || r.Live() != 0 {
		t.Error("a register of none has some")
	}
}

func TestOfSeveralWhoReleaseAHoldOneDoes(t *testing.T) {
	var r quorum.Register[*fakeHeld]
	h := &fakeHeld{}
	r.Add(h, false)
	if !r.Remove(h) || r.Remove(h) {
		t.Error("it was there twice, or never")
	}
}

// Fails when two calls are given one hold: the other would be nobody's to unlock.
func TestUnlocksAtOnceTakeAHoldEach(t *testing.T) {
	var r quorum.Register[*fakeHeld]
	a, b := &fakeHeld{}, &fakeHeld{}
	r.Add(a, true)
	r.Add(b, true)
	var other *fakeHeld
	a.meanwhile = func() { other, _ = r.Take() }
	if h, ok := r.Take(); h != a || other != b || !ok {
		t.Errorf("two calls have taken %p and %p, want %p and %p", h, other, a, b)
	}
}
