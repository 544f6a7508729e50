package explore_test

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	mini "github.com/alicebob/miniredis/v2"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// A stored lock is what Redis keeps of one name, decoded. This file alone knows
// how the records are written.
type stored struct {
	exists  bool
	kind    string
	token   int64
	queued  int64 // as the hash says
	holder  string
	rests   int64
	rester  string
	restOp  int64
	unseen  int64                  // until when
	several bool                   // hold together
	since   int64                  // grants that are older are over
	used    int64                  // permits of those that hold together, as the hash says
	grants  map[string]storedGrant // by owner
	queue   []storedWaiter         // those with a record, in order
	places  int                    // members of the queue that are places
	over    int                    // waiters whose queue has expired
	wrong   string                 // what is said of branches, and is not so
}

type storedGrant struct {
	mode      string
	low, high int64
	weight    int64
	sessions  []storedSession
	by        string   // the owner whose record it is: a branch enters the grant of an ancestor
	via       []string // the owners through whose holds it entered, nearest first
}

type storedSession struct {
	client, nonce             string
	op, writes, reads, expiry int64
}

type storedWaiter struct {
	nonce, client, owner, mode string
	op, place, expiry          int64
	block, told                int64
	named                      bool
	rest                       string
	weight, permits            int64
	score                      float64
}

var (
	identityText = regexp.MustCompile(`(?s)^(\S+) (\S+) (?:(\d+)/(\d+) )?o:(.*)$`)
	sessionText  = regexp.MustCompile(`(?s)^(\d+) (\d+) (\d+) (\d+) (\d+) (.*)$`)
	waiterText   = regexp.MustCompile(`(?s)^(\d+) (\d+) (\d+) (\d+) (\d+) \d+ \d+(\S*) (\d+) (.*)$`)
)

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// decodeLock decodes a hash and the members of a sorted set.
func decodeLock(hash map[string]string, members map[string]float64) stored {
	queued, _, _ := strings.Cut(hash["crowd"], " ")
	s := stored{
		exists: len(hash) > 0, kind: strings.TrimSuffix(hash["kind"], rig.StoredKind("")), token: number(hash["token"]), queued: number(queued),
		grants: map[string]storedGrant{},
	}
	until, rester, _ := strings.Cut(hash["rests"], " ")
	rester, op, _ := strings.Cut(rester, " ")
	s.rests, s.rester, s.restOp = number(until), rester, number(op)
	s.unseen = number(hash["unseen"])
	s.decodeHolders(hash)
	for member, score := range members {
		if score <= 0 {
			continue
		}
		s.places++
		if m := waiterText.FindStringSubmatch(hash["w:"+member]); m != nil {
			id := identify(m[8])
			s.queue = append(s.queue, storedWaiter{
				nonce: id.nonce, expiry: number(m[1]), told: number(m[2]), place: number(m[3]), op: number(m[4]), mode: id.mode(m[5]),
				rest: m[6], block: number(m[7]), client: id.client, owner: id.owner, named: !strings.HasPrefix(id.owner, "~"), score: score,
				weight: id.weight, permits: id.permits,
			})
		}
	}
	for field := range hash {
		nonce, waits := strings.CutPrefix(field, "w:")
		_, queued := members["-"+nonce]
		_, awaits := members["c"+nonce]
		if waits && !queued && !awaits {
			s.over++
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

// An identified is what an identity says.
type identified struct {
	nonce, client, owner string
	weight, permits      int64
}

func identify(identity string) (id identified) {
	if m := identityText.FindStringSubmatch(identity); m != nil {
		id = identified{m[1], m[2], m[5], number(m[3]), number(m[4])}
	}
	return id
}

func (id identified) mode(writes string) string {
	switch {
	case writes != "0":
		return "w"
	case id.weight > 0:
		return "s"
	}
	return "r"
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
	if id := identify(hash["holder"]); id.nonce != "" {
		c := strings.Fields(hash["o:"+id.owner])
		until := number(hash["until"])
		if hash["until"] == "" {
			until = s.token/1000 + number(c[3])
		}
		one := storedSession{id.client, id.nonce, number(c[0]), number(c[1]), number(c[2]), until}
		s.grants[id.owner] = storedGrant{
			mode: id.mode(c[1]), low: s.token - number(c[4]) + 1, high: s.token, weight: id.weight, sessions: []storedSession{one},
		}
		if c[1] != "0" {
			s.holder = id.owner
		}
	}
}

func (s *stored) decodeSeveral(hash map[string]string) {
	_, s.holder, _ = strings.Cut(hash["several"], " w ")
	since, used, _ := strings.Cut(hash["several"], " r")
	s.several, s.since, s.used = hash["several"] != "", number(since), number(strings.TrimPrefix(used, " "))
	s.wrong = miscountedBranches(hash)
	for field, text := range hash {
		nonce, ok := strings.CutPrefix(field, "s:")
		m := sessionText.FindStringSubmatch(text)
		if !ok || m == nil || nonce != identify(m[6]).nonce {
			continue
		}
		id, low := identify(m[6]), number(m[1])
		owner := id.owner
		grant, by := grantAt(hash, owner, low)
		if by == "" {
			continue
		}
		g := s.grants[owner]
		if len(g.sessions) > 0 && g.low != low {
			s.wrong = cmp.Or(s.wrong, owner+" has sessions of two grants")
		}
		g.via = entered(hash, owner, low)
		if g.by = by; g.mode != "w" {
			g.mode = id.mode("0")
		}
		if owner == s.holder && by == owner && hash["b:"+owner] == "" || by == s.holder && m[3] != "0" {
			g.mode = "w"
		}
		if len(grant) > 5 {
			g.weight = number(grant[5])
		}
		g.low, g.high = low, number(grant[1])
		g.sessions = append(g.sessions, storedSession{id.client, nonce, number(m[2]), number(m[3]), number(m[4]), number(m[5])})
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
		if g.mode == "w" && owner != s.holder && g.by != s.holder {
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

func (s stored) place(nonce string) int64 {
	for _, q := range s.queue {
		if q.nonce == nonce {
			return q.place
		}
	}
	return 0
}
