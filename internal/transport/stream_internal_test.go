package transport

import "testing"

// Of a crowd of eight the first to come lets the others come, and the fourth writes for all four.
// Fails when the server has to wait for all of them.
func TestHalfOfACrowdIsNotKeptWaiting(t *testing.T) {
	s := &stream{}
	s.load.Store(8)
	s.pace.yield.Store(true)
	s.pace.half = 4
	var crowd [8]*flight
	come := func(i int, want todo) {
		t.Helper()
		crowd[i] = &flight{s: s, wake: make(chan struct{}, 1)}
		if do, err := s.enter(crowd[i]); do != want || err != nil {
			t.Fatalf("call %d is to do %d, %v; want %d", i, do, err, want)
		}
	}
	come(0, gathers)
	come(1, waits)
	come(2, waits)
	come(3, writes)
	if n := len(s.batch); n != 4 || len(s.queue) != 0 {
		t.Errorf("%d calls are written, %d are left; want 4 and none", n, len(s.queue))
	}
	come(4, waits)
	if do := s.gather(crowd[0]); do == writes || do == gathers || len(s.batch) != 4 {
		t.Errorf("who has let others come is to do %d, and %d calls are written; want nothing and 4", do, len(s.batch))
	}
}
