package explore_test

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	mini "github.com/alicebob/miniredis/v2"

	"github.com/relock-go/relock/internal/key"
)

// A stored lock is what Redis keeps of one name, decoded. This file alone knows
// how the records are written.
type stored struct {
	exists bool
	kind   string
	token  int64
	queued int64 // as the hash says
	holder string
	grants map[string]storedGrant // by owner
	queue  []storedWaiter         // those with a record, in order
	places int                    // members of the queue that are places
}

type storedGrant struct {
	mode      string
	low, high int64
	sessions  []storedSession
}

type storedSession struct {
	client, nonce             string
	op, writes, reads, expiry int64
}

type storedWaiter struct {
	nonce, client, owner, mode string
	op, ticket, expiry         int64
	block, told                int64
	named                      bool
	score                      float64
}

var (
	identityText = regexp.MustCompile(`(?s)^(\S+) (\S+) o:(.*)$`)
	sessionText  = regexp.MustCompile(`(?s)^(\d+) (\d+) (\d+) (\d+) (\d+) (\S+) (\S+) o:(.*)$`)
	waiterText   = regexp.MustCompile(`(?s)^(\d+) (\d+) (\d+) (\d+) (\d+) \d+ \d+ (\d+) (\S+) (\S+) o:(.*)$`)
)

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// decodeLock decodes a hash and the members of a sorted set.
func decodeLock(hash map[string]string, members map[string]float64) stored {
	queued, _, _ := strings.Cut(hash["crowd"], " ")
	s := stored{
		exists: len(hash) > 0, kind: hash["kind"], token: number(hash["token"]), queued: number(queued),
		grants: map[string]storedGrant{},
	}
	s.decodeHolders(hash)
	for member, score := range members {
		if score <= 0 {
			continue
		}
		s.places++
		if m := waiterText.FindStringSubmatch(hash["w:"+member]); m != nil {
			s.queue = append(s.queue, storedWaiter{
				nonce: m[7], expiry: number(m[1]), told: number(m[2]), ticket: number(m[3]), op: number(m[4]), mode: modeOf(m[5]),
				block: number(m[6]), client: m[8], owner: m[9], named: !strings.HasPrefix(m[9], "~"), score: score,
			})
		}
	}
	slices.SortFunc(s.queue, func(a, b storedWaiter) int {
		if a.score != b.score {
			return int(a.score - b.score)
		}
		return strings.Compare(a.nonce, b.nonce)
	})
	return s
}

func modeOf(writes string) string {
	if writes == "0" {
		return "r"
	}
	return "w"
}

// decodeHolders decodes the session that holds alone, or the several.
func (s *stored) decodeHolders(hash map[string]string) {
	if hash["holder"] != "" {
		s.decodeAlone(hash)
		return
	}
	s.decodeSeveral(hash)
}

func (s *stored) decodeAlone(hash map[string]string) {
	if id := identityText.FindStringSubmatch(hash["holder"]); id != nil {
		c := strings.Fields(hash["o:"+id[3]])
		until := number(hash["until"])
		if hash["until"] == "" {
			until = s.token/1000 + number(c[3])
		}
		one := storedSession{id[2], id[1], number(c[0]), number(c[1]), number(c[2]), until}
		s.grants[id[3]] = storedGrant{mode: modeOf(c[1]), low: s.token - number(c[4]) + 1, high: s.token, sessions: []storedSession{one}}
		if c[1] != "0" {
			s.holder = id[3]
		}
	}
}

func (s *stored) decodeSeveral(hash map[string]string) {
	_, s.holder, _ = strings.Cut(hash["several"], " w ")
	for field, text := range hash {
		nonce, ok := strings.CutPrefix(field, "s:")
		m := sessionText.FindStringSubmatch(text)
		if !ok || m == nil || nonce != m[6] {
			continue
		}
		owner, low := m[8], number(m[1])
		grant := strings.Fields(hash["g:"+owner])
		if len(grant) != 5 || number(grant[0]) != low {
			continue
		}
		g := s.grants[owner]
		if g.mode = "r"; owner == s.holder {
			g.mode = "w"
		}
		g.low, g.high = low, number(grant[1])
		g.sessions = append(g.sessions, storedSession{m[7], nonce, number(m[2]), number(m[3]), number(m[4]), number(m[5])})
		slices.SortFunc(g.sessions, func(a, b storedSession) int {
			return cmp.Or(cmp.Compare(b.expiry, a.expiry), strings.Compare(a.nonce, b.nonce))
		})
		s.grants[owner] = g
	}
}

// readLock decodes the lock of that name.
func readLock(m *mini.Miniredis, name string) stored {
	keys := key.For("relock", name)
	hash := map[string]string{}
	fields, _ := m.HKeys(keys.Hash)
	for _, f := range fields {
		hash[f] = m.HGet(keys.Hash, f)
	}
	members, _ := m.SortedSet(keys.Queue)
	return decodeLock(hash, members)
}

// live returns the grants that have a session which has not expired, without the
// sessions that have.
func (s stored) live(now int64) map[string]storedGrant {
	all := map[string]storedGrant{}
	for owner, g := range s.grants {
		if g.mode == "w" && owner != s.holder {
			continue
		}
		g.sessions = slices.DeleteFunc(slices.Clone(g.sessions), func(x storedSession) bool { return x.expiry <= now })
		if len(g.sessions) > 0 {
			all[owner] = g
		}
	}
	return all
}

// holding returns the owner by the nonces of all live sessions.
func (s stored) holding(now int64) map[string]string {
	all := map[string]string{}
	for owner, g := range s.live(now) {
		for _, x := range g.sessions {
			all[x.nonce] = owner
		}
	}
	return all
}

// waiting returns the nonces in the queue whose entries have not expired, in order.
func (s stored) waiting(now int64) (nonces []string) {
	for _, q := range s.queue {
		if q.expiry > now {
			nonces = append(nonces, q.nonce)
		}
	}
	return nonces
}

// sessions returns by nonce those that fit, of whatever grant.
func (s stored) sessions(fit func(storedSession) bool) map[string]bool {
	all := map[string]bool{}
	for _, g := range s.grants {
		for _, x := range g.sessions {
			if fit(x) {
				all[x.nonce] = true
			}
		}
	}
	return all
}

func (s stored) ticket(nonce string) int64 {
	for _, q := range s.queue {
		if q.nonce == nonce {
			return q.ticket
		}
	}
	return 0
}
