package relockweb_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relockweb"
)

func anybody(*http.Request) bool { return true }

// asked is the form of the page that asks whether it is meant, filled in: all that it shows is to
// end.
func (b *board) asked(name string) url.Values {
	b.Helper()
	page := b.get("/force?name="+url.QueryEscape(name), http.StatusOK)
	form := url.Values{"name": {name}, "confirm": {"yes"}}
	rests := regexp.MustCompile(`name="rests" value="(\d+)"`).FindStringSubmatch(page)
	if rests == nil {
		b.Fatalf("there is no form in\n%s", page)
	}
	form.Set("rests", rests[1])
	for _, token := range regexp.MustCompile(`name="token" value="(\d+)"`).FindAllStringSubmatch(page, -1) {
		form.Add("token", token[1])
	}
	return form
}

func TestDashboardIsReadOnlyUnlessForceIsAllowed(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "a")
		b.lacks(b.get("/lock?name=a", http.StatusOK), "force")
		b.get("/force?name=a", http.StatusNotFound)
		form := url.Values{"name": {"a"}, "token": {fmt.Sprint(h.Token())}, "rests": {"0"}, "confirm": {"yes"}}
		if w := b.post(form, nil); w.Code != http.StatusNotFound {
			t.Errorf("POST: status %d", w.Code)
		}
		rig.Must(t, h.Err())
		rig.Must(t, h.Release())
	})
}

func TestForceIsForThoseWhoMay(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "a")
		b.lacks(b.get("/lock?name=a", http.StatusOK), "End this grant")
		b.get("/force?name=a", http.StatusForbidden)
		form := url.Values{"name": {"a"}, "token": {fmt.Sprint(h.Token())}, "rests": {"0"}, "confirm": {"yes"}}
		if w := b.post(form, nil); w.Code != http.StatusForbidden {
			t.Errorf("POST of a stranger: status %d", w.Code)
		}
		rig.Must(t, h.Release())
	}, relockweb.AllowForce(func(r *http.Request) bool { return r.Header.Get("Operator") == "yes" }))
}

func TestForceEndsWhatWasShown(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "a?b&c")
		b.has(b.get("/lock?name=a%3Fb%26c", http.StatusOK), `href="force?name=a%3fb%26c"`, "End this grant")
		w := b.post(b.asked("a?b&c"), nil)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "lock?name=a%3Fb%26c" {
			t.Fatalf("status %d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
		}
		<-h.Lost()
		b.has(b.get("/lock?name=a%3Fb%26c", http.StatusOK), "Nobody holds the lock")
		b.lacks(b.get("/", http.StatusOK), "<bdi>a?b&amp;c</bdi>")
		rig.WantIs(t, h.Release(), relock.ErrLost)
	}, relockweb.AllowForce(anybody))
}

// A tripper is a handler as a client reaches it.
type tripper struct{ *board }

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp := t.do(r).Result()
	resp.Request = r
	return resp, nil
}

// Fails when the answer to the POST leads to where the dashboard would be without its prefix.
func TestForceLeadsBackToTheLockUnderAPrefix(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "a?b&c")
		form := b.asked("a?b&c")
		mux := http.NewServeMux()
		mux.Handle("/ops/locks/", http.StripPrefix("/ops/locks", b.Handler))
		b.Handler = mux
		browser := &http.Client{Transport: tripper{b}}
		resp, err := browser.PostForm("http://example.com/ops/locks/force", form)
		rig.Must(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		rig.Must(t, err)
		if at := resp.Request.URL.RequestURI(); resp.StatusCode != http.StatusOK || at != "/ops/locks/lock?name=a%3Fb%26c" {
			t.Errorf("status %d at %s, want the lock's page", resp.StatusCode, at)
		}
		b.has(string(body), "Nobody holds the lock")
		<-h.Lost()
		rig.WantIs(t, h.Release(), relock.ErrLost)
	}, relockweb.AllowForce(anybody))
}

func TestForceFreesANameThatRests(t *testing.T) {
	run(t, func(b *board) {
		rig.Must(t, b.hold("x", "a", relock.AtLeast(time.Hour)).Release())
		form := b.asked("a")
		virtual.Sleep(10*time.Minute + time.Microsecond) // it is the same rest, and shorter
		if w := b.post(form, nil); w.Code != http.StatusSeeOther {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if info := b.x.Info(b.x.Lock("a")); info.Resting != 0 {
			t.Errorf("%+v, want it free", info)
		}
	}, relockweb.AllowForce(anybody))
}

func TestForceRefusesWhatNoPageOfItsOwnSent(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "a")
		form := b.asked("a")
		for name, with := range map[string]func(r *http.Request){
			"another site":         func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			"a sister site":        func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
			"another origin":       func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "http://evil.example") },
			"an origin of nothing": func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "null") },
			"who does not say":     func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Del("Origin") },
		} {
			if w := b.post(form, with); w.Code != http.StatusForbidden {
				t.Errorf("%s: status %d, want 403", name, w.Code)
			}
		}
		rig.Must(t, h.Err())
		if w := b.post(form, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }); w.Code != http.StatusSeeOther {
			t.Errorf("a browser that says its origin alone: status %d", w.Code)
		}
	}, relockweb.AllowForce(anybody))
}

func TestForceWantsToBeConfirmed(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "a")
		for key, value := range map[string]string{"confirm": "", "token": "x", "rests": "x"} {
			form := b.asked("a")
			form.Set(key, value)
			if w := b.post(form, nil); w.Code != http.StatusBadRequest {
				t.Errorf("%s=%q: status %d", key, value, w.Code)
			}
		}
		form := b.asked("a")
		form.Set("name", strings.Repeat("x", 20_000))
		if w := b.post(form, nil); w.Code != http.StatusBadRequest {
			t.Errorf("a form without end: status %d", w.Code)
		}
		rig.Must(t, h.Release())
	}, relockweb.AllowForce(anybody))
}

// A link of another site can bring a confirmation in its address. Fails when that counts.
func TestForceIsConfirmedByTheFormAlone(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "a")
		form := b.asked("a")
		form.Del("confirm")
		if w := b.post(form, func(r *http.Request) { r.URL.RawQuery = "confirm=yes" }); w.Code != http.StatusBadRequest {
			t.Errorf("confirmed by the address: status %d, want 400", w.Code)
		}
		rig.Must(t, h.Release())
	}, relockweb.AllowForce(anybody))
}

// Who holds by the time of the answer is another than was shown: that one keeps it.
func TestForceSparesWhoHoldsSince(t *testing.T) {
	run(t, func(b *board) {
		first := b.hold("x", "a")
		form := b.asked("a")
		rig.Must(t, first.Release())
		second := b.hold("y", "a")
		if w := b.post(form, nil); w.Code != http.StatusConflict {
			t.Errorf("status %d, want 409: %s", w.Code, w.Body)
		}
		rig.Must(t, second.Err())
		rig.Must(t, second.Release())
	}, relockweb.AllowForce(anybody))
}

// The lock passes on before each of the scripts that the answer to the form sends. Fails when the
// end has no condition.
func TestForceSparesAGrantThatBeginsInTheLastMoment(t *testing.T) {
	for nth := range int64(3) {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			a := x.Actor()
			b := &board{t, x, relockweb.Handler(a.Client, relockweb.AllowForce(anybody))}
			first := b.hold("x", "a")
			form := b.asked("a")
			next := x.Begin(b.client("y").NewLock("a"))
			next.Waits()
			var sent atomic.Int64
			a.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
				if rig.ScriptSent(cmd.Args) != "" && sent.Add(1) == nth+1 {
					rig.Must(t, first.Release())
				}
				return redistest.Pass
			})
			code := b.post(form, nil).Code
			if sent.Swap(1<<30) <= nth {
				rig.WantIs(t, first.Release(), relock.ErrLost) // there are no so many scripts
			} else if code != http.StatusConflict {
				t.Errorf("before script %d: status %d, want 409", nth+1, code)
			}
			second := next.Holds()
			virtual.Sleep(time.Minute)
			rig.Must(t, second.Release())
		})
	}
}

// Two read, and the form names one of them.
func TestForceEndsTheChosenHolderAlone(t *testing.T) {
	run(t, func(b *board) {
		one := rig.MustAcquire(b, b.client("x").NewRWLock("a").RLocker())
		two := rig.MustAcquire(b, b.client("y").NewRWLock("a").RLocker())
		page := b.get("/force?name=a", http.StatusOK)
		b.has(page, fmt.Sprintf(`value="%d"`, one.Token()), fmt.Sprintf(`value="%d"`, two.Token()))
		b.lacks(page, "checked")
		form := b.asked("a")
		form["token"] = []string{fmt.Sprint(two.Token())}
		if w := b.post(form, nil); w.Code != http.StatusSeeOther {
			b.Errorf("status %d: %s", w.Code, w.Body)
		}
		<-two.Lost()
		rig.WantIs(b, two.Release(), relock.ErrLost)
		rig.Must(b, one.Err())
		delete(form, "token")
		if w := b.post(form, nil); w.Code != http.StatusConflict {
			b.Errorf("nobody was chosen: status %d", w.Code)
		}
		rig.Must(b, one.Release())
	}, relockweb.AllowForce(anybody))
}

// Who is asked to end one thing, and answers when a later grant has ended and rests, ends nothing:
// Once would run twice in one interval.
func TestForceSparesTheRestOfALaterGrant(t *testing.T) {
	for what, before := range map[string]func(b *board) (shown func()){
		"a grant":     func(b *board) func() { h := b.hold("x", "a"); return func() { rig.Must(b, h.Release()) } },
		"a free name": func(*board) func() { return func() {} },
		"a rest that has ended": func(b *board) func() {
			rig.Must(b, b.hold("x", "a", relock.AtLeast(time.Minute)).Release())
			return func() { virtual.Sleep(time.Minute) }
		},
		"a rest that was ended": func(b *board) func() {
			rig.Must(b, b.hold("x", "a", relock.AtLeast(time.Minute)).Release())
			return func() {
				_, err := b.x.Eye.NewLock("a").ForceUnlock(b.Context())
				rig.Must(b, err)
			}
		},
	} {
		run(t, func(b *board) {
			end := before(b)
			form := b.asked("a")
			end()
			if !b.once("y") {
				t.Errorf("%s was shown: Once has not run", what)
			}
			if w := b.post(form, nil); w.Code != http.StatusConflict {
				t.Errorf("%s was shown: status %d, want 409: %s", what, w.Code, w.Body)
			}
			if b.once("z") {
				t.Errorf("%s was shown: Once has run twice in one interval", what)
			}
		}, relockweb.AllowForce(anybody))
	}
}

// once is a job of another process, that is to run once a day.
func (b *board) once(label string) (ran bool) {
	b.Helper()
	ran, err := b.client(label).Once(b.Context(), "a", 24*time.Hour, func(context.Context) error { return nil })
	rig.Must(b, err)
	return ran
}

func TestForceSaysThatWhatWasShownHasEnded(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "a")
		form := b.asked("a")
		rig.Must(t, h.Release())
		w := b.post(form, nil)
		if w.Code != http.StatusConflict {
			t.Errorf("status %d, want 409", w.Code)
		}
		b.has(w.Body.String(), "on the page has ended; look again")
	}, relockweb.AllowForce(anybody))
}
