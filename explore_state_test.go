package relock_test

import (
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
	grantText   = regexp.MustCompile(`^(\S+) (\d+) (\d+)(.*)$`)
	sessionText = regexp.MustCompile(` (\S+) (\S+) (\d+) (\d+) (\d+) (\d+)`)
	waiterText  = regexp.MustCompile(`(?s)^(\S+) (\d+) (\d+) (\d+) (\S+) (\d+) (\d+) (\d) (.*)$`)
)

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// decodeLock decodes a hash and the members of a sorted set.
func decodeLock(hash map[string]string, members map[string]float64) stored {
	s := stored{
		exists: len(hash) > 0, kind: hash["kind"], token: number(hash["token"]), queued: number(hash["queued"]),
		grants: map[string]storedGrant{},
	}
	if _, rest, ok := strings.Cut(hash["holder"], " "); ok {
		if parts := strings.SplitN(rest, " ", 3); len(parts) == 3 {
			s.holder = parts[2]
		}
	}
	for field, text := range hash {
		if owner, ok := strings.CutPrefix(field, "o:"); ok {
			s.grants[owner] = decodeGrant(text)
		}
	}
	for member, score := range members {
		if score <= 0 {
			continue
		}
		s.places++
		if m := waiterText.FindStringSubmatch(hash["w:"+member]); m != nil {
			s.queue = append(s.queue, storedWaiter{
				nonce: member, client: m[1], op: number(m[2]), ticket: number(m[3]), expiry: number(m[4]), mode: m[5],
				block: number(m[6]), told: number(m[7]), named: m[8] == "1", owner: m[9], score: score,
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

func decodeGrant(text string) (g storedGrant) {
	m := grantText.FindStringSubmatch(text)
	if m == nil {
		return g
	}
	g.mode, g.low, g.high = m[1], number(m[2]), number(m[3])
	for _, s := range sessionText.FindAllStringSubmatch(m[4], -1) {
		g.sessions = append(g.sessions, storedSession{s[1], s[2], number(s[3]), number(s[4]), number(s[5]), number(s[6])})
	}
	return g
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
