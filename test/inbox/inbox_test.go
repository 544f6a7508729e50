package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/virtual"
)

func TestFirstMessageAfterReadyIsDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		x.publish("m1")
		x.saw("linked", "m1")
		x.subscribers(1)
	})
}

func TestMessagesComeInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		want := []string{"linked"}
		for i := range 200 {
			m := fmt.Sprint("m", i)
			want = append(want, m)
			if err := x.pub.Publish(t.Context(), channel, m).Err(); err != nil {
				t.Fatal(err)
			}
		}
		x.saw(want...)
	})
}

func TestNewStartsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.Suspect()
		x.quiet(time.Hour)
		if x.Up() || !x.Heard().IsZero() {
			t.Errorf("up %v, heard %v before the start", x.Up(), x.Heard())
		}
	})
}

func TestReadyStartsOneLinkForAllCallers(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		errs := make(chan error)
		for range 20 {
			go func() { errs <- x.Ready(t.Context()) }()
		}
		for range 20 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		x.saw("linked")
		if n := x.net.dials.Load(); n != 1 {
			t.Errorf("%d dials, want 1", n)
		}
	})
}

func TestStartSubscribesWithoutWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.Start()
		x.Start()
		x.saw("linked")
		if !x.Up() {
			t.Error("not up")
		}
		x.subscribers(1)
	})
}

func TestKilledSubscriberLinksAgain(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		for range 3 {
			virtual.Sleep(time.Minute)
			x.srv.KillSubscribers()
			x.publish("lost")
			if x.Up() {
				t.Error("up right after the link was cut")
			}
			virtual.Sleep(50 * time.Millisecond)
			x.ready()
			x.subscribers(1)
		}
		x.publish("m1")
		x.saw("linked", "linked", "linked", "linked", "m1")
	})
}

func TestSecondAcknowledgementOnOneLinkCallsLinked(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		dials := x.net.dials.Load()
		if err := x.ps.Subscribe(t.Context(), channel); err != nil {
			t.Fatal(err)
		}
		x.saw("linked", "linked")
		x.publish("m1")
		x.saw("linked", "linked", "m1")
		if x.net.dials.Load() != dials || !x.Up() {
			t.Error("the link was replaced")
		}
	})
}

func TestUnsubscribedLinkIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		if err := x.ps.Unsubscribe(t.Context(), channel); err != nil {
			t.Fatal(err)
		}
		virtual.Sleep(50 * time.Millisecond)
		x.publish("m1")
		x.saw("linked", "linked", "m1")
	})
}

func TestSuspectRelinksAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		virtual.Sleep(time.Minute)
		begin := time.Now()
		x.Suspect()
		x.saw("linked", "linked")
		x.ready()
		if d := time.Since(begin); d != 0 {
			t.Errorf("relinked after %v, want at once", d)
		}
		x.subscribers(1)
		x.publish("m1")
		virtual.Sleep(time.Minute)
		x.saw("linked", "linked", "m1")
	})
}

func TestSuspectOfYoungLinksBacksOff(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		done := time.After(time.Minute)
		go func() {
			for tick := time.NewTicker(time.Millisecond); ; {
				select {
				case <-tick.C:
					x.Suspect()
				case <-done:
					return
				}
			}
		}()
		x.paced(time.Minute, 55, 130)
	})
}

func TestHalfOpenLinkIsReplacedOnSuspicion(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.ready()
		virtual.Sleep(time.Minute)
		x.net.deafen()
		heard := x.Heard()
		x.publish("lost")
		virtual.Sleep(time.Hour)
		if !x.Up() || !x.Heard().Equal(heard) {
			t.Errorf("up %v, heard %v later: a dead link looks like an idle one", x.Up(), x.Heard().Sub(heard))
		}
		x.Suspect()
		x.saw("linked", "linked")
		x.publish("m1")
		x.saw("linked", "linked", "m1")
		x.subscribers(1)
	})
}

func TestHeardIsTheLastInboundFrame(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		virtual.Sleep(time.Second)
		x.ready()
		if got, want := x.Heard(), time.Now(); !got.Equal(want) {
			t.Errorf("heard the acknowledgement at %v, want %v", got, want)
		}
		virtual.Sleep(time.Minute)
		x.publish("m1")
		at := time.Now()
		virtual.Sleep(time.Minute)
		if got := x.Heard(); !got.Equal(at) {
			t.Errorf("heard the message at %v, want %v", got, at)
		}
	})
}

func TestUnacknowledgedLinkIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.net.deafenThoseThat("subscribe")
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready = %v", err)
		}
		x.Suspect() // no link to suspect
		x.net.deafenThoseThat("")
		x.ready()
		if d := time.Since(begin); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("ready after %v, want a second attempt after 2 s", d)
		}
		x.saw("linked")
	})
}

// A message that the old link has still read is not handed on after the new
// link's Linked, nor beside it.
func TestCallbacksOfTwoLinksDoNotMix(t *testing.T) {
	bubble(t, func(t *testing.T, x *fixture) {
		x.onDeliver = func(payload string) {
			if payload == "slow" {
				virtual.Sleep(time.Minute)
				x.note("slow done")
			}
		}
		x.ready()
		virtual.Sleep(time.Minute)
		x.publish("slow")
		x.publish("behind")
		x.Suspect()
		synctest.Wait()
		virtual.Sleep(time.Hour)
		x.publish("m1")
		x.saw("linked", "slow", "slow done", "linked", "m1")
	})
}
