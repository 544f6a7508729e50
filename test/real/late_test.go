package real_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// picture is what Redis knows of a lock, with everything that users rely on.
func picture(t *testing.T, l *relock.Lock) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	info, err := l.Info(ctx)
	rig.Must(t, err)
	waiters, err := l.Waiters(ctx)
	rig.Must(t, err)
	var b strings.Builder
	for _, h := range info.Holders {
		fmt.Fprintf(&b, "%s x%d token %d; ", h.Owner, h.Holds, h.Token)
	}
	for _, w := range waiters {
		fmt.Fprintf(&b, "then %s ", w.Owner)
	}
	return b.String()
}

// arrival plays an act in which the nth command that runs the script arrives
// late, or a copy of it does, after the step at. It returns after which step it
// was sent, and how many steps there are.
func arrival(t *testing.T, play act, name string, nth, at int, twice bool) (sent, steps int) {
	sent = -1
	rig.Run(t, func(t *testing.T, s *rig.Lab) {
		link := redistest.NewLink(t, s.Server.Dial)
		late := make(chan struct{})
		short := false // see TestCopyOfAnAnsweredAcquireOfAFreeLockIsShortLived
		verdict := redistest.Hold(late)
		if twice {
			verdict = redistest.Duplicate(late)
		}
		onNth(link, name, nth, func() redistest.Verdict {
			if at >= 0 {
				return verdict
			}
			sent = steps
			return redistest.Pass
		})
		l := s.Eye.NewLock("job")
		play(t, s, link, func(what, want string) {
			t.Helper()
			rig.WantState(t, l, what, want)
			if steps == at {
				before := picture(t, l)
				close(late)
				rig.Must(t, link.Settle(t.Context()))
				synctest.Wait()
				short = twice && before == "" && (name == "acquire" || name == "poll")
				if after := picture(t, l); after != before && !short {
					t.Errorf("%s: what came late made %q of %q", what, after, before)
				}
			}
			steps++
		})
		if !short {
			rig.WantBare(t, s.Redis, "job")
		}
	})
	return sent, steps
}

// onNth asks f about the nth command that runs the script, and passes all others.
func onNth(link *redistest.Link, script string, nth int, f func() redistest.Verdict) {
	seen := 0
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if rig.ScriptOf(cmd) == script {
			if seen++; seen == nth {
				return f()
			}
		}
		return redistest.Pass
	})
}

// TestCopyOfAnAnsweredAcquireOfAFreeLockIsShortLived: nonces that ended with
// every request answered are not kept, so that a copy that somebody on the way
// makes of such a request takes the lock if it arrives within its time and finds
// it free. It lasts until its client asks for the lock, at most a lease.
func TestCopyOfAnAnsweredAcquireOfAFreeLockIsShortLived(t *testing.T) {
	for _, again := range []bool{true, false} {
		rig.Run(t, func(t *testing.T, s *rig.Lab) {
			c, link := s.Linked()
			late := make(chan struct{})
			link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if rig.ScriptOf(cmd) == "acquire" && cmd.Is("eval") {
					return redistest.Duplicate(late)
				}
				return redistest.Pass
			})
			l, other := c.NewLock("job"), s.Eye.NewLock("job")
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
			close(late)
			rig.Must(t, link.Settle(t.Context()))
			began := time.Now()
			if again {
				rig.Must(t, l.Lock(t.Context()))
				rig.Must(t, l.Unlock())
			}
			rig.Must(t, other.Lock(t.Context()))
			took, most := time.Since(began), 31*time.Second
			if again {
				most = time.Second
			}
			if took > most {
				t.Errorf("the copy's hold lasted %v, want at most %v", took, most)
			}
			rig.Must(t, other.Unlock())
		})
	}
}

// TestWhatArrivesLateOrTwiceChangesNothing has each command, or a copy of it,
// arrive after its client has gone on: soon, somewhat later, and at the end.
func TestWhatArrivesLateOrTwiceChangesNothing(t *testing.T) {
	for playName, play := range map[string]act{"nesting": nesting, "handing over": handingOver} {
		for _, script := range []string{"acquire", "poll", "hold", "release"} {
			for nth := 1; ; nth++ {
				sent, steps := arrival(t, play, script, nth, -1, false)
				if sent < 0 {
					break
				}
				for at := sent; at < steps; at++ {
					if at > sent+2 && at < steps-1 && rig.Rounds(0, 1) == 0 {
						continue
					}
					for _, twice := range []bool{false, true} {
						t.Run(fmt.Sprint(playName, "/", script, nth, " after step ", at, " twice ", twice), func(t *testing.T) {
							arrival(t, play, script, nth, at, twice)
						})
					}
				}
			}
		}
	}
}
