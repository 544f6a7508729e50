package wire_test

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// say is one statement of a client. Who speaks is a letter: it names the client, the
// nonce, and the owner where there is no other.
type say struct {
	script, who   string
	owner         string // a named one
	mode          string // of acquire: w where it is left out
	op            int    // 1 where it is left out
	writes, reads int
	place, block  int // of acquire; a block of 1 where it is left out
	echo          bool
	beside        string        // of acquire: a second request, of this letter
	hashOnly      bool          // without the queue
	many          bool          // hold: beside a session of a lock that nobody holds
	anonymous     bool          // release: whoever holds
	brief         bool          // release: by a client whose leases are shorter than TokenKeep
	copies        time.Duration // release: a copy of the request may arrive for so long
	stale         bool          // force: of a token that is not the grant's
	ttl           time.Duration // where it is left out, the test decides
	still         bool          // hold, downgrade: leave the lease as it is
}

var unsaid = regexp.MustCompile(`\w+:(0s|0|false|)([ }])`)

func (s say) String() string {
	type fields say // without this method
	return unsaid.ReplaceAllString(fmt.Sprintf("%+v", fields(s)), "$2")
}

// of is the owner: one that was not named is anonymous.
func (s say) of() string {
	if s.owner != "" {
		return s.owner
	}
	return "~the owner " + s.who
}

// wireClient is whose the letter is: d, e and f are of one. Nobody hears what g is told.
func wireClient(who string) string {
	if who == "e" || who == "f" {
		who = "d"
	}
	return "client-" + who
}

func wireNonce(who string) string { return strings.Repeat(who, 22)[:min(22, 22*len(who))] }

// say sends one statement.
func (w *parley) say(by redis.Cmdable, s say) *redis.Cmd {
	w.t.Helper()
	s.op = max(s.op, 1)
	keys, args := w.phrase(s)
	return by.EvalSha(w.ctx, w.shas[s.script], keys, args...)
}

// wireNobody is a lock that nobody holds.
var wireNobody = key.For("relock", "nobody's")

// phrase is what the headers of the scripts ask for.
func (w *parley) phrase(s say) (keys []string, args []any) {
	w.t.Helper()
	keep, ttl, inbox := wireKeep.Milliseconds(), s.ttl.Milliseconds(), key.Inbox("relock", "")
	if s.still {
		ttl = 0
	}
	identity := wireNonce(s.who) + " " + wireClient(s.who) + " o:"
	keys = []string{w.keys.Hash, w.keys.Queue}
	if s.hashOnly {
		keys = keys[:1]
	}
	switch s.script {
	case "acquire":
		args = []any{rig.StoredKind(w.kind), time.Now().Add(20 * time.Second).UnixMicro(), fmt.Sprint(keep, " ", bit(s.echo), " ", inbox)}
		args = append(args, s.asks(ttl, keep)...)
		if s.beside != "" {
			s.who, s.owner, s.block = s.beside, "", 1
			args = append(args, s.asks(ttl, keep)...)
		}
	case "hold":
		args = []any{ttl, ttl + keep, identity + s.of(), "o:" + s.of(), s.op, s.writes, s.reads}
		if s.many {
			keys, args = []string{keys[0], wireNobody.Hash}, append(args, args[2:]...)
		}
	case "release":
		args = w.leaves(s, identity, keep)
	case "downgrade":
		args = []any{identity + s.of(), s.op, s.reads, ttl, keep, inbox}
	case "force":
		args = []any{s.of(), max(w.low[s.of()], 1) + int64(bit(s.stale)), 0, keep, inbox}
	}
	return keys, args
}

// asks is the arguments of one request of an acquire.
func (s say) asks(ttl, keep int64) []any {
	holds := " 1 0 "
	if s.mode == "r" {
		holds = " 0 1 "
	}
	identity := wireNonce(s.who) + " " + wireClient(s.who) + " o:" + s.of()
	return []any{identity, "o:" + s.of(), fmt.Sprint(s.op, holds, ttl, " "), max(s.block, 1), ttl + keep, s.place}
}

// leaves is the arguments of a release.
func (w *parley) leaves(s say, identity string, keep int64) []any {
	owner, until := s.of(), int64(0)
	if s.anonymous {
		owner = ""
	}
	if s.copies > 0 {
		until = time.Now().Add(s.copies).UnixMilli()
	}
	args := []any{identity + owner, "o:" + owner, until, fmt.Sprint(keep, " ", key.Inbox("relock", ""))}
	if !s.brief {
		args = append(args, keep)
	}
	return args
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// reply returns what a statement was answered, in its long form.
func (s say) reply(cmd *redis.Cmd) []any {
	reply, err := cmd.Slice()
	if err != nil {
		reply = []any{cmd.Val()}
	}
	switch {
	case cmd.Err() != nil:
		return nil
	case s.script == "acquire" && len(reply) < 3:
		var token int64
		_, _ = fmt.Sscan(fmt.Sprint(reply[0]), &token)
		block := int64(max(s.block, 1))
		if len(reply) == 2 {
			_, _ = fmt.Sscan(fmt.Sprint(reply[1]), &block)
		}
		return []any{token / 1000, int64(0), int64(1), token - block + 1, token, s.ttl.Milliseconds(), ""}
	case s.script == "hold" && len(reply) == 1: // no clock was read
		return []any{int64(0), reply[0]}
	}
	return reply
}

// answer is what a reply comes to, without what is otherwise each time.
func (s say) answer(cmd *redis.Cmd) string {
	reply := s.reply(cmd)
	switch {
	case cmd.Err() != nil:
		return cmd.Err().Error()
	case s.script == "acquire":
		return fmt.Sprint(reply[2])
	case s.script == "hold" || s.script == "downgrade":
		return fmt.Sprint(min(reply[1].(int64), 1))
	}
	return fmt.Sprint(reply[0])
}
