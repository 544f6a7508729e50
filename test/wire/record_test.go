package wire_test

import (
	"fmt"
	"strconv"
	"strings"
)

// far is what parts the scores of those who hold together from those of who waits.
const far = 100_000_000_000_000

// A session is what the records tell of who holds.
type session struct {
	nonce, client, owner, op, mode string
	low, high                      string
	writes, reads                  int
	until                          int64
}

// A waiter is what the records tell of who waits.
type waiter struct {
	nonce, client, owner, op, mode, place string
	until, told                           int64
}

// identified takes an identity apart.
func identified(identity string) (nonce, client, owner string) {
	whose, owner, _ := strings.Cut(identity, " o:")
	nonce, client, _ = strings.Cut(whose, " ")
	return nonce, client, owner
}

// split returns so many words, or 0 for each where there are less, and what follows.
func split(record string, words int) (first []string, rest string) {
	all := strings.SplitN(record, " ", words+1)
	for len(all) < words+1 {
		all = append(all, "0")
	}
	return all[:words], all[words]
}

func whole(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func modeBy(writes string) string {
	if writes == "0" {
		return "r"
	}
	return "w"
}

// alone is the session that holds alone, if there is one.
func (f found) alone() (s session, ok bool) {
	if f.fields["holder"] == "" {
		return s, false
	}
	s.nonce, s.client, s.owner = identified(f.fields["holder"])
	counts, block := split(f.fields["o:"+s.owner], 4)
	s.op, s.mode, s.writes, s.reads = counts[0], modeBy(counts[1]), int(whole(counts[1])), int(whole(counts[2]))
	token := whole(f.fields["token"])
	s.low, s.high = fmt.Sprint(token-whole(block)+1), f.fields["token"]
	s.until = whole(f.fields["until"])
	if f.fields["until"] == "" {
		s.until = token/1000 + whole(counts[3])
	}
	return s, true
}

// excludes is the owner that excludes all others, or "": there is none.
func (f found) excludes() string {
	if s, ok := f.alone(); ok && s.mode == "w" {
		return s.owner
	}
	_, owner, _ := strings.Cut(f.fields["several"], " w ")
	return owner
}

// together are those that hold together, by nonce, also past their deadlines: but for
// those whose owner's grant has ended.
func (f found) together() map[string]session {
	all := map[string]session{}
	for field, record := range f.fields {
		nonce, ok := strings.CutPrefix(field, "s:")
		if !ok {
			continue
		}
		words, identity := split(record, 5)
		s := session{low: words[0], op: words[1], writes: int(whole(words[2])), reads: int(whole(words[3])), until: whole(words[4])}
		s.nonce, s.client, s.owner = identified(identity)
		grant, _ := split(f.fields["g:"+s.owner], 2)
		if s.high, s.mode = grant[1], "r"; f.excludes() == s.owner {
			s.mode = "w"
		}
		if grant[0] == s.low {
			all[nonce] = s
		}
	}
	return all
}

// sessions are those whose leases run, by nonce.
func (f found) sessions() map[string]session {
	all := f.together()
	if s, ok := f.alone(); ok {
		all[s.nonce] = s
	}
	for nonce, s := range all {
		if s.until <= f.now {
			delete(all, nonce)
		}
	}
	return all
}

// waiters are those in the queue, by nonce.
func (f found) waiters() map[string]waiter {
	all := map[string]waiter{}
	for field, record := range f.fields {
		if nonce, ok := strings.CutPrefix(field, "w:"); ok {
			words, identity := split(record, 8)
			q := waiter{until: whole(words[0]), told: whole(words[1]), place: words[2], op: words[3], mode: modeBy(words[4])}
			q.nonce, q.client, q.owner = identified(identity)
			all[nonce] = q
		}
	}
	return all
}

// longest is the session with the longest lease, if there is one.
func (f found) longest() (longest session) {
	for _, s := range f.sessions() {
		if s.until > longest.until {
			longest = s
		}
	}
	return longest
}

// ends is when the lock may come free by itself. One who reads may pass the head of the
// queue when that dies.
func (f found) ends(reads bool) int64 {
	until := f.longest().until
	if head := f.head(); reads && head != "" && f.excludes() == "" {
		until = min(until, -f.queue["-"+head])
	}
	return until
}

// head is who waits at the head of the queue.
func (f found) head() (head string) {
	for member, score := range f.queue {
		if score > 0 && (head == "" || score < f.queue[head]) {
			head = member
		}
	}
	return head
}
