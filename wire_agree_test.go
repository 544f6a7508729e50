package relock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// disagreements are what the records of docs/protocol.md say against each other.
func (f found) disagreements() (problems []string) {
	want := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	queued, holder, reading, named := 0, "", map[string]bool{}, map[string][]string{}
	for name, value := range f.fields {
		of, words := name[min(2, len(name)):], strings.Fields(value)
		switch name[:min(2, len(name))] {
		case "w:":
			_, dead := f.queue["-"+of]
			want(f.queue[of] > 0 && dead, "%s does not stand in the queue", name)
			want(fmt.Sprint(f.queue[of], -f.queue["-"+of]) == words[2]+" "+words[3], "%s has another place or deadline than in the queue", name)
			queued++
			if words[7] == "1" {
				owner := strings.Join(words[8:], " ")
				named[owner] = append(named[owner], of)
			}
		case "o:":
			want(len(words) >= 9, "%s has no session", name)
			longest := ""
			for i := 3; i+5 < len(words); i += 6 {
				client, nonce, until := words[i], words[i+1], words[i+5]
				want(f.fields["w:"+nonce] == "", "%s holds and waits", nonce)
				if record := until + " " + client + " " + nonce + " " + of; longest < record[:len(until)] {
					longest = record
				}
				if words[0] == "r" {
					reading[nonce] = true
					want(f.fields["r:"+nonce] == of, "r:%s is %q, and it reads as %s", nonce, f.fields["r:"+nonce], of)
					want(fmt.Sprint(-f.queue["r"+nonce]-100_000_000_000_000) == until, "r%s in the queue has another deadline", nonce)
				}
			}
			if words[0] == "w" {
				want(holder == "", "two write")
				holder = longest
			}
		}
	}
	for name, value := range f.fields {
		switch name[:min(2, len(name))] {
		case "r:":
			until := -f.queue["r"+name[2:]] - 100_000_000_000_000
			want(reading[name[2:]] || until > 0 && until <= f.now, "%s does not read", name)
			reading[name[2:]] = true // or has, and nobody has looked since
		case "v:":
			list := strings.Fields(value)
			slices.Sort(list)
			slices.Sort(named[name[2:]])
			want(slices.Equal(list, named[name[2:]]), "%s, but %v wait", name, named[name[2:]])
			delete(named, name[2:])
		}
	}
	want(holder == "" || len(reading) == 0 || holder[:13] <= fmt.Sprint(f.now), "others read beside %s", holder)
	want(len(named) == 0, "owners %v are not listed", named)
	want(len(f.queue) == 2*queued+len(reading), "%d members in the queue, for %d who wait and %d who read", len(f.queue), queued, len(reading))
	want(f.fields["queued"] == fmt.Sprint(queued) || queued == 0 && f.fields["queued"] == "", "%s are counted and %d wait", f.fields["queued"], queued)
	want(f.fields["holder"][max(0, strings.Index(f.fields["holder"], " ")):] == holder[max(0, strings.Index(holder, " ")):] || holder != "", "holder is %q, want %q", f.fields["holder"], holder)
	return problems
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
			if n, ok := x.after.fields["queued"]; ok && n == "0" {
				delete(x.after.fields, "queued")
			}
			if x.say.copies == 0 && len(x.after.fields)+len(x.after.queue) > 0 {
				x.errorf("%v %v are left", x.after.fields, x.after.queue)
			}
			if most := x.after.now + wireKeep.Milliseconds(); x.after.hashEnds > most {
				x.errorf("the hash lasts %d ms longer than the keep time", x.after.hashEnds-most)
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
