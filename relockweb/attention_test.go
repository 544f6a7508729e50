package relockweb_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relockweb"
)

// Redis is silent for 14 s. Fails when a read that was not answered delays the next as one that took so long would: the
// dashboard showed the outage for four minutes after its end.
func TestDashboardSeesThatRedisAnswersAgainWithinSeconds(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a")
		link, _ := b.linked()
		b.get("/", http.StatusOK)
		heal := link.Hole()
		for range 14 {
			virtual.Sleep(time.Second)
			b.get("/", http.StatusOK)
		}
		b.has(b.get("/", http.StatusOK), " s old.", "<bdi>a</bdi>")
		heal()
		healed := time.Now()
		for strings.Contains(b.get("/", http.StatusOK), "Redis does not answer") {
			if time.Since(healed) > 20*time.Second {
				t.Fatal("20 s after the outage the dashboard still shows it")
			}
			virtual.Sleep(time.Second)
		}
	})
}

// Fails when old data stand there as if they were new: within 5 s the page must say how old they are.
func TestOldDataAreMarked(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a")
		link, _ := b.linked()
		b.lacks(b.get("/", http.StatusOK), "stale", `role="alert">What`)
		defer link.Hole()()
		virtual.Sleep(5 * time.Second)
		b.has(b.get("/", http.StatusOK), " s old.", `class="scroll stale"`)
		b.get("/lock?name=a", http.StatusServiceUnavailable) // nothing is known of it
	})
}

// Fails when the page says why it is old only after the read has ended, which is 10 s long: within 8 s of the outage
// the reader must see that it is Redis.
func TestOldDataSayThatRedisIsSilent(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a")
		link, _ := b.linked()
		b.get("/", http.StatusOK)
		b.get("/lock?name=a", http.StatusOK)
		defer link.Hole()()
		for range 8 {
			virtual.Sleep(time.Second)
			b.get("/", http.StatusOK)
			b.get("/lock?name=a", http.StatusOK)
		}
		for _, address := range []string{"/", "/lock?name=a"} {
			b.has(b.get(address, http.StatusOK), "The dashboard has been waiting for newer data for")
		}
		virtual.Sleep(5 * time.Second) // the read has ended, and says what is wrong
		b.has(b.get("/", http.StatusOK), "Redis does not answer")
	})
}

func TestWhatNeedsAttentionComesFirstAndIsMarked(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "b old")
		virtual.Sleep(5*time.Minute + time.Second)
		b.hold("x", "e nearly")
		virtual.Sleep(53*time.Minute + 59*time.Second)
		b.hold("x", "a quiet")
		b.hold("x", "c fading", relock.TTL(10*time.Minute), relock.NoWatchdog())
		b.hold("x", "d wanted")
		for i := range 10 {
			b.queue(fmt.Sprint(i), "d wanted", relock.TTL(time.Hour))
			if i > 0 {
				b.queue(fmt.Sprint(i), "e nearly", relock.TTL(time.Hour))
			}
		}
		b.get("/", http.StatusOK)
		virtual.Sleep(6 * time.Minute)
		list := b.get("/", http.StatusOK)
		for name, mark := range map[string]string{
			"b old": "long hold", "c fading": "lease not renewed", "d wanted": "long queue", "a quiet": "", "e nearly": "",
		} {
			b.has(list, "<bdi>"+name+`</bdi></a>`)
			_, after, _ := strings.Cut(list, "<bdi>"+name+"</bdi></a>")
			head, _, _ := strings.Cut(after, "</th>")
			if b.has(head, mark); mark == "" {
				b.lacks(head, `class="mark"`) // nine wait, and it is held for a second less than an hour
			}
		}
		order := []string{"d wanted", "b old", "c fading", "e nearly", "a quiet"}
		for i, name := range order[1:] {
			if strings.Index(list, "<bdi>"+order[i]+"<") > strings.Index(list, "<bdi>"+name+"<") {
				t.Errorf("%q comes before %q", name, order[i])
			}
		}
	})
}

// Servers of a Cluster may give grants of two names the same instant, and owners may have the same digits. Fails when
// the dashboard takes the grants of two names for one because their tokens are equal.
func TestGrantsOfTwoNamesWithOneTokenAreToldApart(t *testing.T) {
	run(t, func(b *board) {
		fading := b.hold("x", "b fading", relock.Owner("o"), relock.TTL(10*time.Minute), relock.NoWatchdog())
		for _, name := range []string{"a quiet", "c quiet"} {
			if quiet := b.hold("x", name, relock.Owner("o")); quiet.Token() != fading.Token() {
				t.Fatalf("the tokens are %d and %d, want equal ones", fading.Token(), quiet.Token())
			}
		}
		b.get("/", http.StatusOK)
		virtual.Sleep(6 * time.Minute)
		list := b.get("/", http.StatusOK)
		for _, name := range []string{"a quiet", "b fading", "c quiet"} {
			_, after, _ := strings.Cut(list, "<bdi>"+name+"</bdi></a>")
			head, _, _ := strings.Cut(after, "</th>")
			if marked := strings.Contains(head, "lease not renewed"); marked != (name == "b fading") {
				t.Errorf("%q is marked as not renewed: %v", name, marked)
			}
		}
	})
}

// The list shows the five holders with the longest leases. Fails when it judges a lock by these: the sixth has stopped
// or holds for an hour.
func TestAHolderThatTheListDoesNotShowNeedsAttentionToo(t *testing.T) {
	run(t, func(b *board) {
		join := func(name, label string, opts ...relock.LockOption) {
			h := rig.MustAcquire(b, b.client(label).NewSemaphore(name, 6, opts...))
			b.Cleanup(func() { _ = h.Release() })
		}
		join("long", "hidden", relock.TTL(30*time.Second))
		virtual.Sleep(59*time.Minute + 50*time.Second)
		b.hold("x", "a quiet", relock.TTL(time.Minute))
		for range 5 {
			join("long", "shown", relock.TTL(30*time.Minute))
			join("stopped", "shown", relock.TTL(30*time.Minute))
		}
		join("stopped", "hidden", relock.TTL(30*time.Second), relock.NoWatchdog())
		b.get("/", http.StatusOK)
		virtual.Sleep(16 * time.Second)
		list := b.get("/", http.StatusOK)
		b.has(list, "and 1 more")
		b.lacks(list, "<bdi>hidden</bdi>")
		for name, mark := range map[string]string{"long": "long hold", "stopped": "lease not renewed"} {
			_, after, _ := strings.Cut(list, "<bdi>"+name+"</bdi></a>")
			head, _, _ := strings.Cut(after, "</th>")
			b.has(head, mark)
		}
		for sort, first := range map[string]string{"held": "long", "lease": "stopped"} {
			page := b.get("/?sort="+sort, http.StatusOK)
			if strings.Index(page, "<bdi>"+first+"<") > strings.Index(page, "<bdi>a quiet<") {
				t.Errorf("sort=%s: %q comes after a lock that its sixth holder should precede", sort, first)
			}
		}
	})
}

func TestPageSaysWhichRedisItShows(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a")
		for _, address := range []string{"/", "/lock?name=a", "/force?name=a"} {
			b.has(b.get(address, http.StatusOK), "<bdi>production, eu-1</bdi>", "· production, eu-1 · relock</title>")
		}
	}, relockweb.Source("production, eu-1"), relockweb.AllowForce(func(*http.Request) bool { return true }))
}

// Fails when names that differ look alike beside a button that ends one of them.
func TestNamesThatDifferLookDifferent(t *testing.T) {
	run(t, func(b *board) {
		for _, name := range []string{"spaces", " spaces ", "zerowidth", "zero\u200bwidth", "two words", "two  words", "two\u00a0words"} {
			rig.End(t, rig.MustAcquire(b, b.x.Client().NewLock(name)))
			b.hold("x", name)
		}
		list := b.get("/", http.StatusOK)
		b.has(list, "<bdi>spaces</bdi>", "<bdi>&#34; spaces &#34;</bdi>", "<bdi>zerowidth</bdi>", `<bdi>&#34;zero\u200bwidth&#34;</bdi>`,
			"<bdi>two words</bdi>", `<bdi>&#34;two ␣words&#34;</bdi>`, `<bdi>&#34;two\u00a0words&#34;</bdi>`)
	})
}

// A grant that its client keeps is not renewed, and that is as it should be.
func TestAStickyHolderIsShownAsOne(t *testing.T) {
	run(t, func(b *board) {
		lock := b.client("keeper").NewLock("kept", relock.TTL(30*time.Second), relock.Sticky(10*time.Second))
		rig.End(b, rig.MustAcquire(b, lock)) // the first grant of a name is not kept
		virtual.Sleep(20 * time.Millisecond)
		rig.End(b, rig.MustAcquire(b, lock))
		b.get("/", http.StatusOK)
		virtual.Sleep(9 * time.Second)
		rig.End(b, rig.MustAcquire(b, lock))
		virtual.Sleep(9 * time.Second)
		list := b.get("/", http.StatusOK)
		b.has(list, "keeper (sticky: may be idle)")
		b.lacks(list, "lease not renewed")
	})
}

// A ticket had the lease of an hour. Who has resumed it renews thirty seconds. Fails when that is marked for the rest
// of the hold.
func TestAHoldThatWasResumedIsNotMarkedAsOneThatIsNotRenewed(t *testing.T) {
	run(t, func(b *board) {
		ticket, err := b.hold("x", "a").Detach(b.Context(), time.Hour)
		rig.Must(b, err)
		b.get("/", http.StatusOK)
		resumed, err := b.client("y").Resume(b.Context(), ticket)
		rig.Must(b, err)
		b.Cleanup(func() { _ = resumed.Release() })
		for range 5 {
			virtual.Sleep(11 * time.Second)
			b.lacks(b.get("/", http.StatusOK), "lease not renewed")
		}
	})
}

// A nested hold had asked for two minutes; the outer one renews thirty seconds. Fails when the two minutes are compared
// with after a renewal.
func TestAHoldWithALongerNestedOneIsNotMarkedForEver(t *testing.T) {
	run(t, func(b *board) {
		c := b.client("x")
		outer := rig.MustAcquire(b, c.NewLock("a", relock.Owner("o")))
		inner := rig.MustAcquire(b, c.NewLock("a", relock.Owner("o"), relock.TTL(2*time.Minute), relock.NoWatchdog()))
		b.get("/", http.StatusOK)
		rig.Must(b, inner.Release())
		for range 25 {
			virtual.Sleep(7 * time.Second)
			b.get("/", http.StatusOK)
		}
		b.lacks(b.get("/", http.StatusOK), "lease not renewed")
		rig.Must(b, outer.Release())
	})
}

func TestATicketIsNotMarkedAsNotRenewed(t *testing.T) {
	run(t, func(b *board) {
		ticket, err := b.hold("x", "a").Detach(b.Context(), time.Hour)
		rig.Must(b, err)
		b.get("/", http.StatusOK)
		virtual.Sleep(50 * time.Minute)
		list := b.get("/", http.StatusOK)
		b.has(list, "a ticket, not resumed yet")
		b.lacks(list, "lease not renewed")
		resumed, err := b.client("y").Resume(b.Context(), ticket)
		rig.Must(b, err)
		rig.Must(b, resumed.Release())
	})
}

func TestALocksOwnPageMarksALeaseThatIsNotRenewed(t *testing.T) {
	run(t, func(b *board) {
		b.hold("x", "a", relock.TTL(10*time.Minute), relock.NoWatchdog())
		b.get("/lock?name=a", http.StatusOK)
		virtual.Sleep(6 * time.Minute)
		b.has(b.get("/lock?name=a", http.StatusOK), "lease not renewed")
	})
}

// Go calls these printable, and nobody sees them: a variation selector, a combining grapheme joiner, Hangul fillers.
func TestNamesWithCharactersThatNobodySeesLookDifferent(t *testing.T) {
	run(t, func(b *board) {
		hidden := []string{"\ufe0f", "\u034f", "\u115f", "\u3164", "\uffa0", "\u180b", "\u2800", "\U000e0100"}
		for _, name := range append(hidden, "") {
			b.hold("x", "a"+name)
		}
		list := b.get("/", http.StatusOK)
		for _, h := range hidden {
			b.lacks(list, "<bdi>a"+h+"</bdi>")
		}
	})
}

// Each second name is, or was, what the page makes of the first.
func TestANameInQuotesIsNoOtherNameWithItsCharactersEscaped(t *testing.T) {
	run(t, func(b *board) {
		for _, name := range []string{"a\u200b", `"a\u200b"`, "b  c ", "b ␣c "} {
			b.hold("x", name)
		}
		list := b.get("/", http.StatusOK)
		for _, look := range []string{`&#34;a\u200b&#34;`, `&#34;\&#34;a\\u200b\&#34;&#34;`, `&#34;b ␣c &#34;`, `&#34;b \u2423c &#34;`} {
			if n := strings.Count(list, "<bdi>"+look+"</bdi>"); n != 1 {
				t.Errorf("%d names look like %s, want 1", n, look)
			}
		}
	})
}
