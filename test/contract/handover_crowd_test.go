package contract_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// So many readers are dead that no script can forget them all: who writes then is one of
// several, and excludes the others.
func TestAWriterThatIsResumedBesideDeadReadersIsRenewed(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		dead := rig.Raw{T: t, Redis: x.Redis, ID: rig.NonceOf('d')}
		for i := range 300 {
			nonce := fmt.Sprintf("%022d", i)
			dead.Run("acquire", dead.Request("rw", nonce, "~"+nonce, "r", time.Second, 1, 1, -1)...)
		}
		virtual.Sleep(2 * time.Second)
		a, b := x.Actor(), x.Actor()
		h := x.Take(a.NewRWLock("l").WLocker())
		again := resume(t, b.Client, detach(t, h, time.Minute))
		virtual.Sleep(2 * time.Minute)
		rig.End(t, again)
		x.Frees("l")
	})
}

// Fails when a ticket is anybody's who knows its nonce, and gives the owner another name.
func TestATicketIsResumedForItsOwnerOnly(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		ticket := detach(t, x.Take(x.Lock("l", relock.Owner("me"))), time.Minute)
		nonce, _, _ := strings.Cut(x.Redis.HGet(t.Context(), key.For("relock", "l").Hash, "holder").Val(), " ")
		other := rig.Raw{T: t, Redis: x.Redis, ID: rig.NonceOf('b')}
		other.Run("resume", nonce, other.Identity(rig.NonceOf('n'), "you"), 1, time.Now().Add(10*time.Second).UnixMicro(), 60_000, 600_000, key.Inbox("relock", ""))
		x.Holders(x.Eye.NewLock("l"), "me", 1)
		rig.End(t, resume(t, x.Client(), ticket))
	})
}
