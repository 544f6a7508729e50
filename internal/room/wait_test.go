package room_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/room"
)

// A wait on a condition gives back the holds that exist, and not the one that a call of the same owner is about to make.
// Redis knew of that one before the wait.
// Fails when the room goes on from what Redis knew before: that call makes a hold of which Redis is never told.
func TestAfterAWaitRedisIsToldOfTheHoldThatIsAboutToBeMade(t *testing.T) {
	terms := &room.Terms{TTL: time.Minute}
	var lock room.Room
	now := new(clock.Clock)
	step := func() *room.Step { return &room.Step{Now: now.Now()} }

	a := &room.Acquisition{Name: "me", Terms: terms}
	lock.Enter(a, false)
	a.Entry.NextRequest(step()).Answered(&room.Answer{Code: room.Held, Low: 1, High: 1, Remaining: time.Minute}, 0, step())
	s := a.Session
	s.First(&room.Hold{Terms: terms, Handle: &room.Handle{}}, step())
	s.Ledger.Reserved = ledger.One(false)
	at := step()
	st, _, _ := s.Next(nil, at)
	if st == nil || st.Said.Writes != 2 {
		t.Fatalf("the statement is %+v, want one of 2 holds", st)
	}
	st.Stated(room.Reply{Held: true, Now: 1, Remaining: time.Minute}, 0, step())
	if st, _, _ := s.Next(nil, step()); st != nil {
		t.Fatalf("another statement follows: %+v", st)
	}

	e, _ := s.BeginWait(nil, step())
	if e == nil || e.Await.Writes != 1 {
		t.Fatalf("the wait gives up %+v, want 1 hold", e)
	}
	e.WaitBegun(false, step())
	q, due := e.Beat(step())
	if !due {
		t.Fatal("no heartbeat is due")
	}
	q.BeatAnswered(room.Answer{Code: room.Held, Low: 2, High: 2, Remaining: time.Minute}, step())
	s.EndWait(step())
	if st, _, _ := s.Next(nil, step()); st == nil || st.Said.Writes != 2 {
		t.Errorf("after the wait the statement is %+v, want one of 2 holds", st)
	}
}

// A call that is woken may try again at once. Its next attempt waits for a release that has begun, so as not to find
// what it has left in Redis.
// Fails when the call is woken before the release of its entry or session has begun.
func TestAReleaseBeginsBeforeItsCallIsWoken(t *testing.T) {
	terms, now, why := &room.Terms{TTL: time.Minute}, new(clock.Clock), errors.New("over")
	step := func() *room.Step { return &room.Step{Now: now.Now()} }
	entry := func() *room.Entry {
		a := &room.Acquisition{Name: "me", Terms: terms}
		e := new(room.Room).Enter(a, false)
		e.Waiter = t
		return e
	}
	deeds := func(at *room.Step) (all []room.Deed) {
		for i := 0; at.Effect(i) != nil; i++ {
			if do := at.Effect(i).Do; do == room.Release || do == room.Wake {
				all = append(all, do)
			}
		}
		return all
	}
	wanted := []room.Deed{room.Release, room.Wake}

	at := step()
	entry().Fail(why, at)
	if got := deeds(at); !slices.Equal(got, wanted) {
		t.Errorf("a failed entry: %v, want %v", got, wanted)
	}

	e := entry()
	e.Waiter = nil
	e.NextRequest(step()).Answered(&room.Answer{Code: room.Held, Low: 1, High: 1, Remaining: time.Minute}, 0, step())
	e.Session.First(&room.Hold{Terms: terms, Handle: &room.Handle{}}, step())
	waits, _ := e.Session.BeginWait(nil, step())
	waits.Waiter = t
	at = step()
	waits.Session.Lose(why, at)
	if got := deeds(at); !slices.Equal(got, wanted) {
		t.Errorf("a lost session: %v, want %v", got, wanted)
	}
}

// An owner's wait is over, and one of its holds is lost before the wait has put it back on its handle. Another call of the
// owner waits by then, and knows nothing of that hold.
// Fails when nobody puts it back: a live hold of the handle would be unlocked before the lost one.
func TestAHoldThatIsLostAtTheEndOfAWaitComesBackThoughItsOwnerWaitsAgain(t *testing.T) {
	long, short := &room.Terms{TTL: time.Minute}, &room.Terms{TTL: 5 * time.Second}
	now := new(clock.Clock).Now()
	step := func() *room.Step { return &room.Step{Now: now} }

	a := &room.Acquisition{Name: "me", Terms: long}
	new(room.Room).Enter(a, false)
	a.Entry.NextRequest(step()).Answered(&room.Answer{Code: room.Held, Low: 1, High: 1, Remaining: time.Minute}, 0, step())
	s := a.Session
	var holds []*room.Hold
	for _, terms := range []*room.Terms{short, long} {
		h := &room.Hold{Terms: terms, Handle: &room.Handle{}, Unlock: true}
		s.First(h, step())
		if bar, _ := h.Put(room.Want{Owner: "me", Terms: terms, Unlock: true}, step()); bar != room.NoBar {
			t.Fatalf("a hold is barred: %v", bar)
		}
		holds = append(holds, h)
	}
	first, _ := s.BeginWait(nil, step())
	first.WaitBegun(false, step())
	q, _ := first.Beat(step())
	q.BeatAnswered(room.Answer{Code: room.Held, Low: 2, High: 2, Remaining: time.Minute}, step())
	s.EndWait(step())
	now = now.Add(6 * time.Second)
	s.Check(step())
	if !holds[0].Lost || holds[1].Lost {
		t.Fatalf("lost: %v and %v, want the first", holds[0].Lost, holds[1].Lost)
	}
	if e, _ := s.BeginWait(nil, step()); e == nil {
		t.Fatal("the owner cannot wait again")
	}
	s.Return(first.Await, step())
	if got := holds[0].Handle.Newest(); got != holds[0] {
		t.Errorf("the handle of the lost hold has %v", got)
	}
	if got := holds[1].Handle.Newest(); got != nil {
		t.Errorf("the handle of the hold that waits has %v", got)
	}
}
