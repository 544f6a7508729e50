package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A disagreement collects what the records say against each other.
type disagreement []string

func (d *disagreement) want(ok bool, format string, args ...any) {
	if !ok {
		*d = append(*d, fmt.Sprintf(format, args...))
	}
}

// disagreements are what the records of docs/protocol.md say against each other.
func (f found) disagreements() []string {
	var d disagreement
	f.waitersAgree(&d)
	f.loneAgrees(&d)
	f.severalAgree(&d)
	f.grantsAgree(&d)
	f.endedAgree(&d)
	members := 2*len(f.waiters()) + f.count("s:")
	d.want(len(f.queue) == members, "%d members in the queue, for %d who wait and %d who hold together", len(f.queue), len(f.waiters()), f.count("s:"))
	queued, more := split(f.fields["crowd"]+" ", 1)
	unusual := f.fields["several"] != "" || f.fields["ended"] != "" || f.fields["looks"] != ""
	d.want(whole(queued[0]) == int64(len(f.waiters())), "%s are counted and %d wait", queued, len(f.waiters()))
	d.want(!unusual || strings.HasPrefix(more, "+"), "crowd is %q, and something is unusual", f.fields["crowd"])
	d.want(f.fields["crowd"] != "0", "crowd is %q", f.fields["crowd"])
	return d
}

// count is the number of fields that begin so.
func (f found) count(prefix string) (n int) {
	for field := range f.fields {
		n += bit(strings.HasPrefix(field, prefix))
	}
	return n
}

// waitersAgree: who waits stands in the queue, and is listed where its owner is named.
func (f found) waitersAgree(d *disagreement) {
	named := map[string][]string{}
	for nonce, q := range f.waiters() {
		_, dead := f.queue["-"+nonce]
		d.want(q.nonce == nonce, "w:%s is of %s", nonce, q.nonce)
		d.want(f.queue[nonce] > 0 && dead, "%s does not stand in the queue", nonce)
		d.want(q.place == fmt.Sprint(f.queue[nonce]) && q.until == -f.queue["-"+nonce], "%s has another place or deadline than in the queue", nonce)
		if !strings.HasPrefix(q.owner, "~") {
			named[q.owner] = append(named[q.owner], nonce)
		}
	}
	for field, value := range f.fields {
		if owner, ok := strings.CutPrefix(field, "v:"); ok {
			list := strings.Fields(value)
			slices.Sort(list)
			slices.Sort(named[owner])
			d.want(slices.Equal(list, named[owner]), "%s, but %v wait", field, named[owner])
			delete(named, owner)
		}
	}
	d.want(len(named) == 0, "owners %v are not listed", named)
}

// loneAgrees: a session that holds alone has its counts, and nobody holds beside it.
func (f found) loneAgrees(d *disagreement) {
	lone, ok := f.alone()
	if !ok {
		d.want(f.fields["until"] == "" && f.count("o:") == 0, "there are counts or a deadline, and nobody holds alone")
		return
	}
	d.want(f.count("o:") == 1 && len(strings.Fields(f.fields["o:"+lone.owner])) == 5, "%s has no counts, or others have", lone.nonce)
	d.want(lone.writes+lone.reads > 0, "%s holds nothing", lone.nonce)
	d.want(f.fields["several"] == "" && f.count("s:")+f.count("g:") == 0, "others hold beside %s", lone.nonce)
	d.want(f.fields["w:"+lone.nonce] == "", "%s holds and waits", lone.nonce)
}

// severalAgree: those who hold together stand in the queue's set, by their deadlines.
func (f found) severalAgree(d *disagreement) {
	together := f.together()
	for nonce, s := range together {
		d.want(s.nonce == nonce, "s:%s is of %s", nonce, s.nonce)
		d.want(-f.queue["r"+nonce]-far == s.until, "r%s in the queue has another deadline", nonce)
		d.want(f.fields["w:"+nonce] == "", "%s holds and waits", nonce)
		d.want(f.excludes() == "" || f.excludes() == s.owner || s.until <= f.now, "%s holds beside %s", s.owner, f.excludes())
	}
	d.want(len(together) == f.count("s:"), "sessions of no grant are left")
	d.want((len(together) > 0) == (f.fields["several"] != ""), "several is %q, for %d", f.fields["several"], len(together))
}

// grantsAgree: a grant of those who hold together counts its sessions, and who excludes
// others writes.
func (f found) grantsAgree(d *disagreement) {
	sessions, writing, until := map[string]int{}, map[string]int{}, map[string]int64{}
	for _, s := range f.together() {
		sessions[s.owner]++
		writing[s.owner] += bit(s.writes > 0)
		until[s.owner] = max(until[s.owner], s.until)
	}
	d.want(len(sessions) == f.count("g:"), "%d grants of %d owners", f.count("g:"), len(sessions))
	for owner, n := range sessions {
		grant, ends := split(f.fields["g:"+owner], 4)
		counted := strings.Join(grant[2:], " ")
		d.want(counted == fmt.Sprint(n, " ", writing[owner]), "g:%s counts %s, and there are %d, of whom %d write", owner, counted, n, writing[owner])
		d.want(whole(grant[1]) <= whole(f.fields["token"]), "the grant of %s has token %s, the counter %s", owner, grant[1], f.fields["token"])
		d.want(whole(ends) >= until[owner], "the grant of %s ends at %s, a session of it at %d", owner, ends, until[owner])
		d.want((writing[owner] > 0) == (f.excludes() == owner), "%d of %s write, and %q excludes others", writing[owner], owner, f.excludes())
	}
}

// endedAgree: nonces that have ended are listed by number, in a row.
func (f found) endedAgree(d *disagreement) {
	list, due := split(f.fields["ended"], 2)
	first, next := whole(list[0]), whole(list[1])
	d.want(int64(f.count("n:")) == next-first && int64(f.count("e:")) == next-first, "ended is %q", f.fields["ended"])
	for number := first; number < next; number++ {
		until := f.fields["e:"+f.fields[fmt.Sprint("n:", number)]]
		d.want(until != "" && (number > first || until == due), "number %d ended until %q, the first until %s", number, until, due)
	}
}

// Each statement is made, and then everybody leaves.
// Fails when anything but the kind and the counter of tokens outlives them.
func TestEveryStatementIsForgottenWithThoseWhoMadeIt(t *testing.T) {
	w, owners := parleyWith(t), map[string]string{}
	leave := func(p redis.Pipeliner, s say, speak func(say) *redis.Cmd) *redis.Cmd {
		answer := speak(s)
		if owners["e"] = ""; s.who == "e" {
			owners["e"] = s.owner
		}
		for _, who := range "gfedcba" {
			speak(say{script: "release", who: string(who), owner: owners[string(who)]})
		}
		return answer
	}
	for _, state := range wireStates() {
		clear(owners)
		for _, s := range state.said {
			owners[s.who] = s.owner
		}
		w.reach(state, inTurns)
		for _, x := range w.each("left", state, wireShort, leave) {
			for _, field := range []string{"kind", "token"} {
				delete(x.after.fields, field)
			}
			if x.say.copies == 0 && len(x.after.fields)+len(x.after.queue) > 0 {
				x.errorf("%v %v are left", x.after.fields, x.after.queue)
			}
			if most := x.after.now + wireKeep.Milliseconds(); x.after.hashEnds > most && !x.say.brief {
				x.errorf("the hash lasts %d ms longer than TokenKeep", x.after.hashEnds-most)
			}
		}
	}
}

// Fails when a copy of a statement, or one that later ones have overruled, changes what
// is stored. (A copy of an acquire is a heartbeat.)
func TestEveryStatementThatArrivesAgainChangesNothing(t *testing.T) {
	w := parleyWith(t)
	for _, overruled := range []bool{false, true} {
		var between map[string]look
		again := func(p redis.Pipeliner, s say, speak func(say) *redis.Cmd) *redis.Cmd {
			answer := speak(s)
			if overruled {
				speak(say{script: "hold", who: s.who, owner: s.owner, op: 5, writes: 2, reads: s.reads, still: true})
				speak(say{script: "hold", who: s.who, owner: s.owner, op: 5, reads: s.reads + 1, still: true})
			}
			between[s.String()] = w.look(p)
			s.ttl = 2 * wireLong
			speak(s)
			return answer
		}
		for _, state := range wireStates() {
			w.reach(state, inTurns)
			between = map[string]look{}
			for _, x := range w.each(fmt.Sprint("overruled: ", overruled), state, wireShort, again) {
				first := between[x.say.String()].found()
				if x.say.script != "acquire" && x.say.copies == 0 && !x.after.stores(first) {
					x.errorf("the copy made\n%v %v\nof %v %v", x.after.fields, x.after.queue, first.fields, first.queue)
				}
			}
		}
	}
}
