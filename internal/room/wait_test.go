package room_test

import (
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
