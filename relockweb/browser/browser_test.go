package browser_test

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/relockweb"
)

// What comes and goes is shown without loading the page anew: what is typed meanwhile stays,
// and so does the focus.
func TestPageRenewsItselfInABrowser(t *testing.T) {
	s := newStage(t)
	h := s.hold("web-1", "a")
	s.run(chromedp.Navigate(s.url), chromedp.Evaluate(`window.sameDocument = true`, nil))
	s.until(`document.querySelectorAll("tbody").length === 1`)
	s.run(chromedp.SendKeys("#prefix", "half a na"))
	s.hold("web-2", "b")
	s.until(`document.querySelectorAll("tbody").length === 2 && document.getElementById("locks").textContent === "2"`)
	s.queue("web-3", "b")
	s.until(`[...document.querySelectorAll("tbody strong")].some(e => e.textContent === "1")`)
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	s.until(`[...document.querySelectorAll("tbody th")].map(e => e.textContent).join() === "b"`)
	s.until(`window.sameDocument && document.activeElement.id === "prefix" && document.activeElement.value === "half a na"`)
	s.quiet()
}

func TestPageSaysWhenNothingAnswersAnyMore(t *testing.T) {
	s := newStage(t)
	s.hold("web-1", "a")
	s.run(chromedp.Navigate(s.url))
	s.until(`document.getElementById("silent").hidden && document.querySelectorAll("tbody").length === 1`)
	s.run(chromedp.Evaluate(`window.fetch = () => Promise.reject(new Error("the wire is cut"))`, nil))
	s.until(`!document.getElementById("silent").hidden && document.getElementById("silent").textContent.includes("the wire is cut")`)
	s.until(`document.querySelectorAll("tbody").length === 1`)
}

// A browser runs and loads nothing of what names, owners and labels have in them, neither from
// the page nor from what its script puts there.
func TestHostileNamesRunNothingInABrowser(t *testing.T) {
	s := newStage(t)
	hostile := []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</tbody></table><svg onload=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`}
	s.hold(hostile[0], hostile[0], relock.Owner(hostile[0]))
	s.run(chromedp.Navigate(s.url))
	s.until(`document.querySelectorAll("tbody").length === 1`)
	for _, text := range hostile[1:] { // these come by the script
		s.hold(text, text, relock.Owner(text))
	}
	s.until(fmt.Sprintf(`document.querySelectorAll("tbody").length === %d`, len(hostile)))
	for _, text := range hostile {
		s.until(fmt.Sprintf(`[...document.querySelectorAll("tbody th a")].some(a => a.textContent === %q && new URL(a.href).searchParams.get("name") === %[1]q && new URL(a.href).pathname === "/lock")`, text))
		s.run(chromedp.Navigate(s.url + "/lock?name=" + url.QueryEscape(text)))
		s.until(fmt.Sprintf(`document.querySelector("h1").textContent === %q`, text))
		s.until(`document.querySelectorAll("img, svg, main script").length === 0`)
		s.run(chromedp.Navigate(s.url))
		s.until(fmt.Sprintf(`document.querySelectorAll("tbody").length === %d`, len(hostile)))
	}
	s.quiet()
}

// The policy forbids what a page of its own does not do; this is that it does so here.
func TestPolicyStopsAnInlineScriptInABrowser(t *testing.T) {
	s := newStage(t)
	s.run(chromedp.Navigate(s.url))
	s.until(`document.querySelector("h1") !== null`)
	s.run(chromedp.Evaluate(`{ const e = document.createElement("script"); e.textContent = "window.broken = true"; document.body.append(e); }`, nil))
	s.until(`window.broken === undefined`)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.problems) == 0 {
		t.Error("the browser does not complain of an inline script")
	}
}

func TestForceIsConfirmedInABrowser(t *testing.T) {
	s := newStage(t, relockweb.AllowForce(anybody))
	h := s.hold("web-1", "a b&c")
	s.run(chromedp.Navigate(s.url), chromedp.Click("tbody th a"), chromedp.Click(".danger"))
	s.until(`document.querySelector("form button.danger") !== null`)
	s.run(chromedp.Click("form button.danger")) // without the tick the browser does not send it
	if err := h.Err(); err != nil {
		t.Fatalf("the grant ended unconfirmed: %v", err)
	}
	s.run(chromedp.Click("input[name=confirm]"), chromedp.Click("form button.danger"))
	s.until(`document.body.textContent.includes("Nobody holds the lock") && location.pathname === "/lock"`)
	select {
	case <-h.Lost():
	case <-time.After(20 * time.Second):
		t.Error("the holder is not told")
	}
	s.quiet()
}

// Without scripts it is a page that loads itself anew.
func TestPageWorksWithoutScriptsInABrowser(t *testing.T) {
	s := newStage(t)
	s.hold("web-1", "a")
	s.run(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(s.url))
	shows := func(part string) bool {
		var page string
		err := chromedp.Run(s.ctx, chromedp.OuterHTML("html", &page, chromedp.ByQuery))
		return err == nil && strings.Contains(page, part) // there is an error while a page follows another
	}
	await := func(part string) {
		for begin := time.Now(); !shows(part); {
			if time.Since(begin) > 30*time.Second {
				t.Fatalf("the page does not come to show %s", part)
			}
		}
	}
	await("<bdi>web-1</bdi>")
	s.hold("web-2", "b")
	await("<bdi>web-2</bdi>")
	s.quiet()
}

// What assistive technology is told: where one is, and what each thing is called.
func TestPageIsAccessibleInABrowser(t *testing.T) {
	s := newStage(t)
	s.hold("web-1", "a")
	s.run(chromedp.Navigate(s.url))
	var nodes []node
	s.run(chromedp.ActionFunc(accessible(&nodes)))
	want := map[string]string{"search": "", "main": "", "heading": "Locks", "table": "", "columnheader": "Held by", "rowheader": "a", "searchbox": "Names that begin with", "button": "Show", "link": "Pause"}
	for _, n := range nodes {
		if n.Ignored {
			continue
		}
		role, name := n.Role.text(), n.Name.text()
		if told, wanted := want[role]; wanted && (told == "" || told == name) {
			delete(want, role)
		}
		if name == "" && (role == "link" || role == "button" || role == "searchbox" || role == "image") {
			t.Errorf("a %s has no name", role)
		}
	}
	for role, name := range want {
		t.Errorf("there is no %s %q", role, name)
	}
	s.until(`document.documentElement.lang === "en"`)
}

// The screenshot of the docs, and that the page is dark where the browser says so.
func TestPageIsLightAndDarkInABrowser(t *testing.T) {
	s := newStage(t)
	s.scene()
	s.run(chromedp.EmulateViewport(1100, 430), chromedp.Navigate(s.url))
	s.until(`document.querySelectorAll("tbody").length === 5 && document.getElementById("waiters").textContent === "4"`)
	paper := map[string]string{}
	for _, scheme := range []string{"dark", "light"} {
		var color string
		s.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
			chromedp.Evaluate(`getComputedStyle(document.body).backgroundColor`, &color))
		paper[scheme] = color
	}
	if paper["light"] != "rgb(255, 255, 255)" || paper["dark"] == paper["light"] {
		t.Errorf("the paper is %q", paper)
	}
	var picture []byte
	s.run(chromedp.CaptureScreenshot(&picture))
	if path := os.Getenv("RELOCK_SCREENSHOT"); path != "" {
		if err := os.WriteFile(path, picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.quiet()
}

// scene is what the screenshot shows.
func (s *stage) scene() {
	s.hold("billing-7:4711", "invoices/2026-11", relock.Owner("nightly run"))
	s.queue("billing-8:52", "invoices/2026-11")
	s.queue("billing-9:1130", "invoices/2026-11")
	s.hold("worker-3:87", "thumbnails")
	rw := s.client("web-1:9").NewRWLock("config", relock.Owner("web-1"))
	other := s.client("web-2:9").NewRWLock("config", relock.Owner("web-2"))
	for _, l := range []*relock.RWLock{rw, other} {
		if err := l.RLock(s.Context()); err != nil {
			s.Fatal(err)
		}
	}
	s.hold("tickets-1:300", "tickets", relock.Fair())
	s.queue("tickets-2:300", "tickets", relock.Fair())
	s.queue("tickets-3:300", "tickets", relock.Fair())
	if err := s.hold("cron-1:5", "cleanup", relock.AtLeast(time.Hour)).Release(); err != nil {
		s.Fatal(err)
	}
}

// On every screen the page is as wide as the screen, whatever it shows: nobody has to scroll sideways. RELOCK_SCREENSHOTS
// names a folder for pictures of each.
func TestPageFitsEveryScreenInABrowser(t *testing.T) {
	s := newStage(t, relockweb.Source("redis.example:6379, prefix relock"), relockweb.AllowForce(anybody))
	s.fits("empty")
	s.scene()
	client := s.client("worker-12:4711")
	for i := range 203 {
		name := fmt.Sprintf("orders/2026-11/%s/%04d", strings.Repeat("long-customer-name-", i%4), i)
		h, err := client.NewLock(name).Acquire(s.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = h.Release() }()
	}
	s.until(`document.querySelectorAll("tbody").length === 208`)
	s.fits("208")
	s.run(chromedp.Navigate(s.url + "/lock?name=tickets"))
	s.fits("lock")
	s.run(chromedp.Navigate(s.url + "/force?name=tickets"))
	s.fits("force")
	s.run(chromedp.Navigate(s.url))
	s.until(`document.querySelectorAll("tbody").length === 208`)
	s.redis.SetError("LOADING Redis is loading the dataset in memory")
	s.until(`document.querySelector("main .problem") !== null`)
	s.fits("outage")
	s.redis.SetError("")
	s.until(`document.querySelector("main .problem") === null`)
	s.quiet()
}

// fits looks at the page that is shown on three screens, in both color schemes. The first call opens it.
func (s *stage) fits(scene string) {
	s.Helper()
	if scene == "empty" {
		s.run(chromedp.Navigate(s.url))
	}
	for _, width := range []int64{375, 1280, 1920} {
		for _, scheme := range []string{"light", "dark"} {
			var wide bool
			var picture []byte
			s.run(chromedp.EmulateViewport(width, 900), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth || [...document.querySelectorAll(".scroll")].some(e => e.scrollWidth > e.clientWidth)`, &wide),
				chromedp.CaptureScreenshot(&picture))
			if wide {
				s.Errorf("%s at %d px, %s: it is wider than the screen", scene, width, scheme)
			}
			if dir := os.Getenv("RELOCK_SCREENSHOTS"); dir != "" {
				if err := os.WriteFile(fmt.Sprintf("%s/%s-%d-%s.png", dir, scene, width, scheme), picture, 0o644); err != nil {
					s.Fatal(err)
				}
			}
		}
	}
}
