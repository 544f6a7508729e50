package relockweb_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/relockweb"
)

func TestMain(m *testing.M) { rig.Main(m) }

// A board is a dashboard in a lab.
type board struct {
	*testing.T
	x *rig.Lab
	http.Handler
}

// run runs f with a dashboard of the lab's eye.
func run(t *testing.T, f func(b *board), opts ...relockweb.Option) {
	t.Helper()
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		f(&board{t, x, relockweb.Handler(x.Eye, opts...)})
	})
}

func (b *board) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r.WithContext(b.Context()))
	return w
}

// get returns a page, which must have the status.
func (b *board) get(address string, status int) string {
	b.Helper()
	w := b.do(httptest.NewRequest(http.MethodGet, address, nil))
	if w.Code != status {
		b.Fatalf("GET %s: status %d, want %d: %s", address, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// json reads an answer into v, which must have all of its fields.
func (b *board) json(address string, v any) {
	b.Helper()
	d := json.NewDecoder(strings.NewReader(b.get(address, http.StatusOK)))
	d.DisallowUnknownFields()
	rig.Must(b, d.Decode(v))
	if _, err := d.Token(); err != io.EOF {
		b.Errorf("GET %s: %v behind the answer", address, err)
	}
}

// post sends a form as a page of the dashboard does, but for what with changes.
func (b *board) post(form url.Values, with func(r *http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/force", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+r.Host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if with != nil {
		with(r)
	}
	return b.do(r)
}

// client returns one as users make theirs, which says who it is, as no client of the lab does.
func (b *board) client(label string) *relock.Client {
	b.Helper()
	return rig.Open(b, b.x.Server.Client(b.T), relock.Label(label))
}

// hold acquires a lock by a client of its own, with that label.
func (b *board) hold(label, name string, opts ...relock.LockOption) *relock.Hold {
	b.Helper()
	h := rig.MustAcquire(b, b.client(label).NewLock(name, opts...))
	b.Cleanup(func() { _ = h.Release() })
	return h
}

// has fails unless the text has all of these.
func (b *board) has(text string, parts ...string) {
	b.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			b.Errorf("there is no %q in\n%s", p, text)
		}
	}
}

func (b *board) lacks(text string, parts ...string) {
	b.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			b.Errorf("there is %q in\n%s", p, text)
		}
	}
}
