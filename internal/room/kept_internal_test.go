package room

import (
	"testing"
	"time"

	"github.com/relock-go/relock/internal/clock"
)

// Two calls of one owner ask. The second enters what the first was granted, after holds that needed no command. The two
// sessions share the tokens of the grant, so neither is kept: each would give out the same ones.
func TestAGrantThatItsOwnerHasEnteredTwiceIsNotKept(t *testing.T) {
	r, terms := &Room{Plain: true}, &Terms{TTL: 30 * time.Second, Sticky: time.Second}
	at := &Step{Now: clock.System().Now(), Server: 1}
	ask := func() Request {
		return r.Enter(&Acquisition{Name: "o", Terms: terms}, false).Send(at)
	}
	first, second := ask(), ask()
	hold := func(s *Session) *Hold {
		h := &Hold{Terms: terms}
		s.First(h, at)
		return h
	}
	first.Answered(&Answer{Code: Held, Fresh: true, Low: 1001, High: 2000, Remaining: terms.TTL}, 0, at)
	h := hold(first.Acquisition.Session)
	for range 5 {
		if ending := h.End(at); ending != Silent {
			t.Fatalf("a hold ended with %v", ending)
		}
		s := r.Retake(Want{Owner: "o", Terms: terms}, at)
		if s == nil {
			t.Fatal("the grant is not kept")
		}
		h = hold(s)
	}
	second.Answered(&Answer{Code: Held, Low: 1001, High: 2000, Remaining: terms.TTL}, 0, at)
	other := hold(second.Acquisition.Session)
	if h.Token != 1006 || other.Token != h.Token {
		t.Errorf("tokens %d and %d, want 1006", h.Token, other.Token)
	}
	for _, h := range []*Hold{h, other} {
		if ending := h.End(at); ending != Fewer {
			t.Errorf("a hold ended with %v, want its release", ending)
		}
	}
}
