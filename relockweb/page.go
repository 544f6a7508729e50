package relockweb

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"
)

// mostRows bounds the locks on one page.
const mostRows = 1_000

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"ms": since, "clock": func(t time.Time) string { return t.Format("15:04:05 MST") }, "words": words, "plain": plain, "visible": visible,
	"count": count,
}).ParseFS(static, "static/*.html"))

// A page is the data of the templates.
type page struct {
	Title  string
	Source string // which Redis, prefix or environment
	Stale  string // the age of the data, if it is too old
	// Unanswered is for how long Redis has been asked for newer data, if that is long.
	Unanswered string
	Live       int    // seconds between two reloads; 0: none
	Still      string // the address of the same page with reloads switched off or on
	Prefix     string
	Sort       string
	Sorts      []order
	List       *listing
	Beyond     int // locks without a row
	One        *detail
	Force      bool   // AllowForce lets the visitor end grants
	Rests      int64  // the end of the rest that the page shows, by the server's clock in ms
	Status     int    // of the answer
	Problem    string // shown instead of everything else
	Removed    string
}

// An order is a column by which the list can be sorted.
type order struct {
	By, Title, Link, Aria string
}

func (s *site) listPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := s.page(r, "Locks")
	p.Prefix, p.Sort = q.Get("prefix"), q.Get("sort")
	l, ok := s.list(r)
	if !ok {
		p.Problem, p.Status = notYet, http.StatusServiceUnavailable
		show(w, "list.html", p)
		return
	}
	l.Locks = sorted(l.Locks, p.Sort)
	p.age(s, l.ReadAt, l.worked, s.locks.running())
	if p.Beyond = len(l.Locks) - mostRows; p.Beyond > 0 {
		l.Locks = l.Locks[:mostRows]
	}
	p.List, p.Status = l, statusOf(l.ReadAt)
	for _, o := range []order{{By: "name", Title: "Lock"}, {By: "held", Title: "Held for"}, {By: "waiters", Title: "Waiting"}, {By: "lease", Title: "Lease left"}} {
		p.Sorts = append(p.Sorts, o.shown(q, p.Sort))
	}
	show(w, "list.html", p)
}

func (s *site) lockPage(w http.ResponseWriter, r *http.Request) {
	p := s.page(r, "Lock")
	p.One, p.Status, p.Problem = s.one(r)
	if p.One != nil {
		p.age(s, p.One.ReadAt, p.One.worked, s.each.running())
		p.Title = p.One.Lock.Name
		p.Force = s.may != nil && s.may(r) && (p.One.Lock.HolderCount > 0 || p.One.Lock.RestingMS > 0)
	}
	show(w, "lock.html", p)
}

// page returns the data that all reloading pages share.
func (s *site) page(r *http.Request, title string) *page {
	q := r.URL.Query()
	p := &page{Title: title, Source: s.source, Live: int((s.every + time.Second - 1) / time.Second)}
	at := map[bool]string{true: "./", false: "lock"}[title == "Locks"]
	if q.Get("live") == "off" {
		p.Live, p.Still = 0, address(at, q, "live", "")
	} else {
		p.Still = address(at, q, "live", "off")
	}
	return p
}

// address returns the address of the requested page with one parameter changed.
func address(at string, q url.Values, key, value string) string {
	with := url.Values{}
	for _, k := range []string{"name", "prefix", "sort", "live"} {
		if v := q.Get(k); v != "" {
			with.Set(k, v)
		}
	}
	with.Set(key, value)
	if value == "" {
		with.Del(key)
	}
	if len(with) == 0 {
		return at
	}
	return at + "?" + with.Encode()
}

// Hidden returns how many holders are not shown.
func (l lock) Hidden() int { return l.HolderCount - len(l.Holders) }

// Rows returns how many rows the lock takes in the list.
func (l lock) Rows() int { return max(1, len(l.Holders)+min(1, l.Hidden())) }

// Hidden returns how many waiters are not shown.
func (d *detail) Hidden() int { return d.Lock.WaiterCount - len(d.Queue) }

// since formats a duration in ms for people.
func since(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}

// failed reports whether the page shows that a read has failed, or that there has been none.
func (p *page) failed() bool {
	return p.Status == http.StatusServiceUnavailable ||
		p.List != nil && len(p.List.Problems) > 0 || p.One != nil && len(p.One.Problems) > 0
}

func show(w http.ResponseWriter, name string, p *page) {
	if p.failed() {
		p.Live = min(p.Live, int(retryLater/time.Second)) // a viewer sees the end of an outage without Refresh
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.Status)
	_, _ = w.Write(b.Bytes()) // a visitor who has left reads no more
}
