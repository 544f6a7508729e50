package contract_test

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// labelled is a client as users make theirs, over a link of its own: it asks what it may,
// and says who it is, as no client of the lab does.
func labelled(x *rig.Lab, opts ...relock.Option) (*relock.Client, *redistest.Link) {
	x.T.Helper()
	link := redistest.NewLink(x.T, x.Server.Dial)
	return rig.Open(x.T, x.Server.Client(x.T, func(o *redis.Options) { o.Dialer = link.Dial }), opts...), link
}

// holder is who holds alone, as Redis tells a client that knows nobody.
func holder(x *rig.Lab, name string) relock.Holder {
	x.T.Helper()
	info := x.Info(x.Lock(name))
	if len(info.Holders) != 1 || info.Name != name {
		x.T.Fatalf("Info = %+v, want one holder of %q", info, name)
	}
	return info.Holders[0]
}

func TestLabelsTellWhoHoldsAndWaits(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, _ := labelled(x, relock.Label("worker of A"))
		b, _ := labelled(x, relock.Label(`B: "x"`))
		l, there := a.NewLock("a"), b.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		waiter := rig.Beside(func() error { return there.Lock(t.Context()) })
		rig.StillWaits(t, waiter)
		virtual.Sleep(4 * time.Second)
		if h := holder(x, "a"); h.Label != "worker of A" || h.Held != 4*time.Second {
			t.Errorf("holder %+v, want the label of A, 4 s", h)
		}
		if all := x.Waiters(x.Lock("a")); len(all) != 1 || all[0].Label != `B: "x"` {
			t.Errorf("waiters %+v, want the label of B", all)
		}
		onCondition := x.Sleeps(t.Context(), l.NewCond("c"), 0)
		onCondition.Waits()
		rig.Must(t, rig.Returned(t, waiter))
		if all, err := x.Lock("a").NewCond("c").Waiters(t.Context()); err != nil || len(all) != 1 || all[0].Label != "worker of A" {
			t.Errorf("waiters of the condition %+v, %v, want the label of A", all, err)
		}
		if h := holder(x, "a"); h.Label != `B: "x"` || h.Held > time.Millisecond {
			t.Errorf("holder %+v, want the label of B, since now", h)
		}
		onCondition.Stop()
		rig.Must(t, there.Unlock())
	})
}

func TestLabelIsHostAndProcessByDefault(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _ := labelled(x)
		rig.Must(t, c.NewLock("a").Lock(t.Context()))
		host, err := os.Hostname()
		rig.Must(t, err)
		if h, want := holder(x, "a"), fmt.Sprintf("%s:%d", host, os.Getpid()); h.Label != want {
			t.Errorf("label %q, want %q", h.Label, want)
		}
	})
}

func TestBadLabelIsRefused(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = rdb.Close() }()
	for text, says := range map[string]string{"": "empty", "a\nb": "U+000A", "\xff": "UTF-8", strings.Repeat("x", 129): "129 bytes"} {
		_, err := relock.New(rdb, relock.Label(text))
		rig.WantIs(t, err, relock.ErrInvalidOption)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "1 to 128 bytes") {
			t.Errorf("Label(%.10q): %v, want one that says %q and what is allowed", text, err, says)
		}
	}
	for _, text := range []string{"x", strings.Repeat("x", 128), strings.Repeat("é", 64)} {
		c, err := relock.New(rdb, relock.Label(text))
		rig.Must(t, err)
		rig.Must(t, c.Close())
	}
}

// Fails when the script's text is given a time of its own: the server does not know it, says so late, and then says no more.
func TestLabelsWhoseScriptIsNotKnownHoldUpNoInfo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		held := x.Take(x.Lock("a"))
		c, link := labelled(x)
		for range 3 { // by then it has a connection of its own
			x.Info(c.NewLock("free"))
		}
		said := make(chan struct{})
		time.AfterFunc(900*time.Millisecond, func() { close(said) })
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			switch {
			case !rig.Runs(cmd, "labels"):
				return redistest.Pass
			case cmd.Is("evalsha"):
				return redistest.Hold(said)
			}
			return redistest.Lose
		})
		began := time.Now()
		if n := len(x.Info(c.NewLock("a")).Holders); n != 1 {
			t.Errorf("%d holders, want 1", n)
		}
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("Info took %v, want no more than 1s", took)
		}
		rig.Must(t, held.Release())
		virtual.Sleep(10 * time.Second)
	})
}

// A proxy in front of a cluster accepts no command with keys in two slots, and two labels mostly are in two. Fails when
// the labels stay unknown there, or when the server is sent a command for several of them again and again.
func TestLabelsAreReadOneByOneWhereTheServerRefusesSeveralKeys(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		hold := func(labels ...string) {
			for _, text := range labels {
				c, _ := labelled(x, relock.Label(text))
				rig.MustAcquire(t, c.NewSemaphore("a", 4))
			}
		}
		ofSeveral := func(args []string) bool { return rig.Runs(redistest.Command{Args: args}, "labels") && args[2] != "1" }
		x.Server.FailNext(1_000, "CROSSSLOT Keys in request don't hash to the same slot", ofSeveral)
		eye, link := labelled(x)
		asked := 0
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if ofSeveral(cmd.Args) {
				asked++
			}
			return redistest.Pass
		})
		want := func(labels ...string) {
			t.Helper()
			var got []string
			for _, h := range x.Info(eye.NewSemaphore("a", 4)).Holders {
				got = append(got, h.Label)
			}
			if slices.Sort(got); !slices.Equal(got, labels) {
				t.Errorf("labels %q, want %q", got, labels)
			}
		}
		hold("A", "B")
		want("A", "B")
		hold("C", "D")
		want("A", "B", "C", "D")
		if asked != 1 {
			t.Errorf("%d commands for several labels, want the one that was refused", asked)
		}
	})
}

// Two clients of one label exclude each other, and neither enters what the other holds.
func TestLabelsDecideNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, _ := labelled(x, relock.Label("same"))
		b, _ := labelled(x, relock.Label("same"))
		rig.Must(t, a.NewLock("a").Lock(t.Context()))
		if got, err := b.NewLock("a").TryLock(t.Context(), time.Second); got || err != nil {
			t.Errorf("TryLock = %v, %v, want false, nil", got, err)
		}
	})
}

// A pair costs no more for it: it is said once, and again every five minutes of use.
func TestLabelIsStoredOnceAndKept(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := labelled(x, relock.Label("A"))
		rig.LoadScripts(t, x.Redis) // else it is said by EVALSHA, and then in full
		said := rig.Count(link, "introduce")
		l := c.NewLock("a")
		for range 1000 {
			rig.Must(t, l.Lock(t.Context()))
			rig.Must(t, l.Unlock())
		}
		if *said != 1 {
			t.Errorf("said %d times, want once", *said)
		}
		rig.Must(t, l.Lock(t.Context()))
		for range 12 {
			virtual.Sleep(10 * time.Minute)
			if h := holder(x, "a"); h.Label != "A" {
				t.Fatalf("holder %+v, want the label A", h)
			}
		}
		if *said > 1+24 {
			t.Errorf("said %d times in two hours, want once in five minutes", *said)
		}
		rig.Must(t, l.Unlock())
		virtual.Sleep(11 * time.Minute)
		if keys := x.Server.Direct().Keys(); len(keys) > 0 {
			t.Errorf("keys %q are left of a client that holds nothing", keys)
		}
	})
}

// The label of a process that dies is there for as long as anything of it is: of whatever
// lease, and of one that came later than the first.
func TestLabelOutlivesTheLeasesOfADeadProcess(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := labelled(x, relock.Label("A"))
		rig.Must(t, c.NewLock("short").Lock(t.Context()))
		rig.Must(t, c.NewLock("long", relock.TTL(4*time.Hour)).Lock(t.Context()))
		virtual.Sleep(20 * time.Minute)
		rig.Must(t, c.NewLock("fixed", relock.TTL(2*time.Hour), relock.NoWatchdog()).Lock(t.Context()))
		link.Hole()
		virtual.Sleep(15 * time.Second)
		if h := holder(x, "short"); h.Label != "A" {
			t.Errorf("holder %+v, want the label A", h)
		}
		virtual.Sleep(2*time.Hour - 20*time.Second)
		if h := holder(x, "fixed"); h.Label != "A" {
			t.Errorf("holder %+v, want the label A", h)
		}
		virtual.Sleep(2*time.Hour - 20*time.Minute)
		if h := holder(x, "long"); h.Label != "A" {
			t.Errorf("holder %+v, want the label A", h)
		}
	})
}

// A failover that lost it, or an operator who removed it, costs the label for five minutes.
func TestLabelThatWasLostIsStoredAgain(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := labelled(x, relock.Label("A"))
		rig.Must(t, c.NewLock("a").Lock(t.Context()))
		rig.Must(t, x.Redis.Del(t.Context(), key.Label("relock", rig.ID(c))).Err())
		if h := holder(x, "a"); h.Label != "" || h.Holds != 1 {
			t.Errorf("holder %+v, want one without a label", h)
		}
		virtual.Sleep(5*time.Minute + 10*time.Second)
		if h := holder(x, "a"); h.Label != "A" {
			t.Errorf("holder %+v, want the label A", h)
		}
		rig.Must(t, x.Redis.Del(t.Context(), key.Label("relock", rig.ID(c))).Err())
		link.Cut()() // it connects anew: to whom, nobody knows
		virtual.Sleep(20 * time.Second)
		if h := holder(x, "a"); h.Label != "A" {
			t.Errorf("holder %+v, want the label A", h)
		}
	})
}

// Redis does not answer the first tries. Fails when a label that could not be stored is not tried again half a minute
// later, or when nobody is told.
func TestLabelThatCouldNotBeStoredIsStoredLater(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var out lockedBuffer
		c, link := labelled(x, relock.Label("A"), relock.Logger(slog.New(slog.NewTextHandler(&out, nil))))
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "introduce") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		rig.Must(t, c.NewLock("a").Lock(t.Context()))
		virtual.Sleep(20 * time.Second) // three tries of 5 s
		if !strings.Contains(out.String(), "label not stored, trying again") {
			t.Errorf("the log does not say that the label is not stored: %s", out.String())
		}
		link.OnCommand(nil)
		rig.Must(t, c.NewLock("b").Lock(t.Context()))
		if h := holder(x, "b"); h.Label != "" {
			t.Errorf("holder %+v, want no label before the half minute is over", h)
		}
		virtual.Sleep(11 * time.Second)
		rig.Must(t, c.NewLock("c").Lock(t.Context()))
		synctest.Wait()
		if h := holder(x, "c"); h.Label != "A" {
			t.Errorf("holder %+v, want the label A", h)
		}
	})
}

// What decides nothing holds up nobody: a label that is not stored, and one that is not read.
func TestLabelsThatAreNotAnsweredHoldUpNobody(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := labelled(x, relock.Label("A"))
		silent := func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "introduce", "labels") {
				return redistest.Lose
			}
			return redistest.Pass
		}
		link.OnCommand(silent)
		began := time.Now()
		rig.Must(t, c.NewLock("a").Lock(t.Context()))
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("Lock took %v, want 100 ms for the label at most", took)
		}
		eye, link := labelled(x)
		link.OnCommand(silent)
		began = time.Now()
		info, err := eye.NewLock("a").Info(t.Context())
		if took := time.Since(began); err != nil || len(info.Holders) != 1 || info.Holders[0].Label != "" || took > 1100*time.Millisecond {
			t.Errorf("Info = %+v, %v after %v, want a holder without a label within a second", info, err, took)
		}
		if all, err := eye.NewLock("a").Waiters(t.Context()); len(all) > 0 || err != nil {
			t.Errorf("Waiters = %v, %v, want nobody", all, err)
		}
	})
}

// A name is another's key there: neither a lock nor what it is in the way of changes.
func TestLabelLeavesAKeyOfAnotherTypeAlone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _ := labelled(x, relock.Label("A"))
		at := key.Label("relock", rig.ID(c))
		rig.Must(t, x.Redis.Set(t.Context(), at, "theirs", 40*time.Hour).Err())
		rig.Must(t, c.NewLock("a").Lock(t.Context()))
		if got, left := x.Redis.Get(t.Context(), at).Val(), x.Redis.PTTL(t.Context(), at).Val(); got != "theirs" || left < 39*time.Hour {
			t.Errorf("the key is %q for %v, want it as it was", got, left)
		}
		if h := holder(x, "a"); h.Label != "" {
			t.Errorf("holder %+v, want no label", h)
		}
	})
}

// Nobody holds by a ticket that is under way, and the client's ID is never shown.
func TestHoldOfATicketHasNoLabel(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, _ := labelled(x, relock.Label("A"))
		h := rig.MustAcquire(t, c.NewLock("a"))
		virtual.Sleep(3 * time.Second)
		ticket, err := h.Detach(t.Context(), time.Minute)
		rig.Must(t, err)
		if h := holder(x, "a"); h.Label != "" || h.Held != 3*time.Second {
			t.Errorf("holder %+v, want no label, 3 s", h)
		}
		b, _ := labelled(x, relock.Label("B"))
		resumed, err := b.Resume(t.Context(), ticket)
		rig.Must(t, err)
		if h := holder(x, "a"); h.Label != "B" || h.Held != 3*time.Second {
			t.Errorf("holder %+v, want the label B, 3 s", h)
		}
		rig.End(t, resumed)
	})
}

// Of an owner that holds in several processes it is that of the longest lease.
func TestLabelIsOfTheLongestLease(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		a, _ := labelled(x, relock.Label("A"))
		b, _ := labelled(x, relock.Label("B"))
		rig.Must(t, a.NewLock("a", relock.TTL(10*time.Second)).Lock(x.By("me")))
		rig.Must(t, b.NewLock("a", relock.TTL(20*time.Second)).Lock(x.By("me")))
		if h := holder(x, "a"); h.Label != "B" || h.TTL != 20*time.Second || h.Holds != 2 {
			t.Errorf("holder %+v, want the label B, 20 s", h)
		}
	})
}

// Also where the owner's leases are on several pages of what one script reads.
func TestLabelsOfManyReadersAreOfTheirLongestLeases(t *testing.T) {
	srv := redistest.Real(t)
	a := rig.Open(t, srv.Client(t), relock.Label("A"))
	b := rig.Open(t, srv.Client(t), relock.Label("B"))
	read := func(c *relock.Client, owner string, ttl time.Duration) {
		t.Helper()
		rig.Must(t, c.NewRWLock("a", relock.TTL(ttl)).RLocker().Lock(relock.WithOwner(t.Context(), owner)))
	}
	read(a, "me", 20*time.Second)
	for i := range 300 {
		read(a, fmt.Sprint("reader ", i), 40*time.Second)
	}
	read(b, "me", time.Minute)
	rig.Soon(t, func() string { // the first call of a client does not wait for long until its label is stored
		info, err := rig.Open(t, srv.Client(t)).NewLock("a").Info(t.Context())
		rig.Must(t, err)
		for _, h := range info.Holders {
			if h.Owner == "me" && h.Label == "B" && h.Holds == 2 && len(info.Holders) == 301 {
				return ""
			}
		}
		return fmt.Sprintf("%d holders, none of two holds with the label B", len(info.Holders))
	})
}
