package relockweb_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relockweb"
)

// hostile are texts that a browser would obey where they are not escaped.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' autofocus onfocus='alert(1)`, `javascript:alert(1)`,
	`</title><svg onload=alert(1)>`, `{{.}}{{template "foot"}}`, `&lt;b&gt;`, `../force?confirm=yes&x=`, "a\u202egnp.exe", `</main><main>`, `%3Cscript%3E`, `a#b?c=d&e`,
}

var tag = regexp.MustCompile(`<[a-zA-Z!/][^>]*>`)

// Names, owners, labels, and what stands in the address, are text, wherever they are shown.
func TestHostileNamesAreTextAndNothingElse(t *testing.T) {
	run(t, func(b *board) {
		plain := tags(b, "harmless")
		for _, text := range hostile {
			got := tags(b, text)
			if len(got) != len(plain) {
				t.Errorf("%q makes %d tags of %d", text, len(got), len(plain))
			}
		}
	}, relockweb.AllowForce(func(*http.Request) bool { return true }))
}

// tags are those of all pages while a lock of that name is held and waited for by such
// owners and labels.
func tags(b *board, text string) (all []string) {
	b.Helper()
	h, err := b.client(text).NewLock(text, relock.Owner(text)).Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = h.Release(); virtual.Sleep(time.Second) }()
	virtual.Sleep(10 * time.Second)
	q := url.QueryEscape(text)
	for _, address := range []string{"/?prefix=" + q + "&sort=" + q, "/lock?name=" + q, "/force?name=" + q} {
		page := b.get(address, http.StatusOK)
		shown := text
		if strings.Contains(text, "\u202e") || text[0] == '"' { // which would turn the rest around, or look like such text
			shown = strconv.Quote(text)
		}
		b.has(page, "<bdi>"+template(shown)+"</bdi>")
		for _, one := range tag.FindAllString(page, -1) {
			all = append(all, strings.Fields(one)[0])
			if strings.Contains(strings.ToLower(html.UnescapeString(one)), `href="javascript:`) {
				b.Errorf("%q: there is the link %s", text, one)
			}
		}
		if address[1] != 'l' { // all but the page of the lock have a link to it
			b.links(page, text)
		}
	}
	b.lacks(b.get("/locks.json", http.StatusOK)+b.get("/lock.json?name="+q, http.StatusOK), "<", ">")
	return all
}

var named = regexp.MustCompile(`href="lock\?name=([^"]*)"`)

// links fails unless a page has one link to a lock, and to that one.
func (b *board) links(page, name string) {
	b.Helper()
	found := named.FindAllStringSubmatch(page, -1)
	if len(found) != 1 {
		b.Errorf("%q: %d links to locks, want one", name, len(found))
		return
	}
	if got, err := url.QueryUnescape(html.UnescapeString(found[0][1])); got != name || err != nil {
		b.Errorf("a link to %q, %v, want %q", got, err, name)
	}
}

// template is how text stands in a page.
func template(text string) string { return strings.ReplaceAll(html.EscapeString(text), "+", "&#43;") }

func TestEveryAnswerHasAStrictPolicy(t *testing.T) {
	run(t, func(b *board) {
		for _, r := range []*http.Request{
			httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRequest(http.MethodGet, "/lock?name=a", nil),
			httptest.NewRequest(http.MethodGet, "/locks.json", nil), httptest.NewRequest(http.MethodGet, "/lock.json", nil),
			httptest.NewRequest(http.MethodGet, "/app.js", nil), httptest.NewRequest(http.MethodGet, "/other", nil),
			httptest.NewRequest(http.MethodPost, "/force", nil),
		} {
			w := b.do(r)
			policy := w.Header().Get("Content-Security-Policy")
			b.has(policy, "default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'")
			b.lacks(policy, "unsafe", "*", "data:")
			for key, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "same-origin",
			} {
				if got := w.Header().Get(key); got != want {
					t.Errorf("%s %s: %s is %q, want %q", r.Method, r.URL, key, got, want)
				}
			}
		}
		// What the policy forbids a page has none of.
		b.hold("x", "a")
		for _, address := range []string{"/", "/lock?name=a"} {
			page := b.get(address, http.StatusOK)
			b.lacks(page, "style=", "<style", " onclick", " onload", "javascript:")
			if inline := regexp.MustCompile(`<script(?: [^>]*)?>[^<]`).FindString(page); inline != "" {
				t.Errorf("%s has an inline script: %s", address, inline)
			}
		}
	})
}

// A web site has let its own name resolve to the dashboard: to a browser its pages are of the dashboard's origin. Fails
// when they read it, or end a grant.
func TestOnlyTheHostsThatAreNamedAreServed(t *testing.T) {
	run(t, func(b *board) {
		h := b.hold("x", "a")
		to := func(host string) func(r *http.Request) {
			return func(r *http.Request) {
				r.Host = host
				r.Header.Set("Origin", "http://"+host)
			}
		}
		form := url.Values{"name": {"a"}, "token": {strconv.FormatInt(h.Token(), 10)}, "rests": {"0"}, "confirm": {"yes"}}
		for _, host := range []string{"evil.example", "evil.example:80", "locks.example.evil", "", "127.0.0.1.evil.example"} {
			for _, address := range []string{"/", "/lock?name=a", "/locks.json", "/force?name=a", "/app.js"} {
				r := httptest.NewRequest(http.MethodGet, address, nil)
				to(host)(r)
				w := b.do(r)
				if w.Code != http.StatusMisdirectedRequest || w.Header().Get("Content-Security-Policy") == "" {
					t.Errorf("GET %s of %q: status %d", address, host, w.Code)
				}
			}
			if w := b.post(form, to(host)); w.Code != http.StatusMisdirectedRequest {
				t.Errorf("POST to %q: status %d", host, w.Code)
			}
		}
		rig.Must(t, h.Err())
		for _, host := range []string{"Locks.Example:8080", "other.example", "localhost", "LOCALHOST:7365", "192.0.2.7", "[::1]:7365"} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if to(host)(r); b.do(r).Code != http.StatusOK {
				t.Errorf("the dashboard is not served as %q", host)
			}
		}
		if w := b.post(form, to("locks.example")); w.Code != http.StatusSeeOther {
			t.Errorf("POST to locks.example: status %d: %s", w.Code, w.Body)
		}
		<-h.Lost()
	}, relockweb.Hosts("LOCKS.example"), relockweb.Hosts("other.example:443"), relockweb.AllowForce(anybody))
}

// Fails when naming no host serves every host.
func TestHostsWithoutANameAreAddresses(t *testing.T) {
	run(t, func(b *board) {
		b.get("/", http.StatusMisdirectedRequest)
		b.get("http://127.0.0.1:8080/", http.StatusOK)
	}, relockweb.Hosts())
}
