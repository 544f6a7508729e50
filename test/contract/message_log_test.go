package contract_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/rig"
)

// Copies of messages about a hold that the nonce has not got, or not any more.
// Fails when one of them ends the wait, or the inbox.
func TestMessagesOfALossLeaveWhoWaitsInTheQueue(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		held, c := x.Take(x.Lock("a")), x.Client()
		waits := rig.Beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		synctest.Wait()
		nonce := x.Redis.ZRange(t.Context(), key.For("relock", "a").Queue, -1, -1).Val()[0]
		tellAll(t, x, "lost "+nonce)
		tellAll(t, x, "ended "+nonce)
		rig.StillWaits(t, waits)
		rig.Must(t, held.Release())
		rig.Must(t, rig.Returned(t, waits))
	})
}

// tellAll publishes a message to each channel that has a subscriber.
func tellAll(t *testing.T, x *rig.Lab, message string) {
	t.Helper()
	for _, channel := range x.Redis.PubSubChannels(t.Context(), "*").Val() {
		rig.Must(t, x.Redis.Publish(t.Context(), channel, message).Err())
	}
}

// Another version, or a stranger, publishes to the inbox of a client. Fails when nobody is told.
func TestAMessageThatIsNotUnderstoodIsLogged(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var out lockedBuffer
		c := x.Client(relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))
		held := x.Take(x.Lock("a"))
		waits := rig.Beside(func() error { return c.NewLock("a").Lock(t.Context()) })
		synctest.Wait()
		tellAll(t, x, "a stranger's")
		synctest.Wait()
		if n := strings.Count(out.String(), "message not understood"); n != 1 {
			t.Errorf("logged %d times, want once: %s", n, out.String())
		}
		rig.Must(t, held.Release())
		rig.Must(t, <-waits)
	})
}
