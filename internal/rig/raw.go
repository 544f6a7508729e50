package rig

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
)

// A Raw client sends requests that the protocol allows and the library hardly ever sends.
type Raw struct {
	T     *testing.T
	Redis *redis.Client
	ID    string // the client whose inbox gets the messages
}

// Run runs a script on the lock l.
func (r Raw) Run(name string, args ...any) {
	r.T.Helper()
	keys := key.For("relock", "l")
	Must(r.T, r.Redis.Eval(r.T.Context(), script.MustLoad(lua.FS, name).Source, []string{keys.Hash, keys.Queue}, args...).Err())
}

// Ask is one request of the acquire script. An owner that begins with "~" is anonymous.
func (r Raw) Ask(nonce, owner string, ttl time.Duration, op, place int) {
	r.T.Helper()
	r.Run("acquire", r.Request("plain", nonce, owner, "w", ttl, op, 1, place)...)
}

// Request returns the arguments of acquire for one request.
func (r Raw) Request(kind, nonce, owner, mode string, ttl time.Duration, op, block, place int) []any {
	counts := " 1 0 "
	if mode == "r" {
		counts = " 0 1 "
	}
	return []any{
		StoredKind(kind), time.Now().Add(10 * time.Second).UnixMicro(), "600000 0 " + key.Inbox("relock", ""),
		r.Identity(nonce, owner), "o:" + owner, fmt.Sprint(op, counts, ttl.Milliseconds(), " "), block, ttl.Milliseconds() + 600_000, place,
	}
}

// Identity is the text by which the scripts know a session.
func (r Raw) Identity(nonce, owner string) string { return nonce + " " + r.ID + " o:" + owner }

// Release ends a nonce. until is when an unanswered copy of its request is too late. The served ones end with it.
func (r Raw) Release(nonce, owner string, until int64, served ...string) {
	r.T.Helper()
	r.Run("release", r.Identity(nonce, owner), "o:"+owner, until, "600000 "+key.Inbox("relock", ""), 600_000, "", strings.Join(served, " "))
}

// NonceOf returns a nonce that is easy to recognise.
func NonceOf(letter byte) string { return strings.Repeat(string(letter), 22) }

// Listen returns the messages that a process' inbox gets, so far.
func (x *Lab) Listen(a *Actor) (heard func() []string) {
	x.T.Helper()
	sub := x.Redis.Subscribe(x.T.Context(), key.Inbox("relock", ID(a.Client)))
	x.T.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(x.T.Context()); err != nil {
		x.T.Fatal(err)
	}
	var all []string
	messages := sub.Channel(redis.WithChannelSize(1000))
	return func() []string {
		synctest.Wait()
		for len(messages) > 0 {
			all = append(all, (<-messages).Payload)
		}
		return all
	}
}

// StoredKind returns a kind as clients say it to the scripts, and as Redis keeps it.
func StoredKind(kind string) string { return kind + "." + lua.Layout }
