package contract_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/rig"
)

// So many readers are dead that no script can forget them all: who writes then is one of
// several, and excludes the others. Whoever resumes it does so under another made name.
func TestAWriterThatIsResumedBesideDeadReadersIsRenewed(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		dead := rig.Raw{T: t, Redis: x.Redis, ID: rig.NonceOf('d')}
		for i := range 300 {
			nonce := fmt.Sprintf("%022d", i)
			dead.Run("acquire", dead.Request("rw", nonce, "~"+nonce, "r", time.Second, 1, 1, -1)...)
		}
		time.Sleep(2 * time.Second)
		a, b := x.Actor(), x.Actor()
		h := x.Take(a.NewRWLock("l").WLocker())
		again := resume(t, b.Client, detach(t, h, time.Minute))
		time.Sleep(2 * time.Minute)
		rig.End(t, again)
		x.Frees("l")
	})
}
