package store

import "slices"

// What may be done with letters: they are no effects, and in no history. A letter is a
// text without spaces.
const (
	Post  = "post"  // Item is how many may have it
	Fetch = "fetch" // the oldest of the lock's, if there is one
)

type letter struct {
	text string
	left int64
}

// most is how many letters wait for a lock's readers; older ones are thrown away.
const most = 20

// answer does what is asked.
func (s *Store) answer(e Effect) Answer {
	if e.Do != Post && e.Do != Fetch {
		return s.judge(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.mail[e.Lock]
	if e.Do == Post {
		all = append(all, letter{e.Text, e.Item})
		s.mail[e.Lock] = all[max(0, len(all)-most):]
		return Answer{}
	}
	if len(all) == 0 {
		return Answer{}
	}
	text := all[0].text
	if all[0].left--; all[0].left <= 0 {
		s.mail[e.Lock] = slices.Delete(all, 0, 1)
	}
	return Answer{Text: text}
}
