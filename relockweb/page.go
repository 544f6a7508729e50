package relockweb

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"
)

// mostRows is how many locks one page shows.
const mostRows = 1_000

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"ms": since, "clock": func(t time.Time) string { return t.Format("15:04:05 MST") }, "words": words, "plain": plain, "visible": visible,
	"count": count,
}).ParseFS(static, "static/*.html"))

// A page is what the templates show.
type page struct {
	Title   string
	Source  string // which Redis, prefix or environment
	Stale   string // how old what is shown is, where it is too old
	Live    int    // seconds between two looks; 0: it stays as it is
	Still   string // the address of the page that stays, or that goes on
	Prefix  string
	Sort    string
	Sorts   []order
	List    *listing
	Beyond  int // locks that have no row
	One     *detail
	Force   bool   // is offered
	Rests   int64  // until when the name rests that it shows, by the server's clock in ms
	Status  int    // of the answer
	Problem string // instead of all else
	Removed string
}

// An order is a column by which the list can be ordered.
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
	p.age(s, l.ReadAt, l.TookMS)
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
		p.age(s, p.One.ReadAt, p.One.TookMS)
		p.Title = p.One.Lock.Name
		p.Force = s.may != nil && s.may(r) && (p.One.Lock.HolderCount > 0 || p.One.Lock.RestingMS > 0)
	}
	show(w, "lock.html", p)
}

// page is what all pages that renew themselves have in common.
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

// address is that of a page like the one that was asked for, but for one thing.
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

// heldFor is how long the oldest of the holders that are known has held, in ms.
func (l lock) heldFor() (longest int64) {
	for _, h := range l.Holders {
		longest = max(longest, h.HeldMS)
	}
	return longest
}

// Hidden is how many holders are not among those that are told.
func (l lock) Hidden() int { return l.HolderCount - len(l.Holders) }

// Rows is how many rows of the list the lock takes.
func (l lock) Rows() int { return max(1, len(l.Holders)+min(1, l.Hidden())) }

// Hidden is how many of the queue are not told.
func (d *detail) Hidden() int { return d.Lock.WaiterCount - len(d.Queue) }

// since is a time in ms for people.
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

func show(w http.ResponseWriter, name string, p *page) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.Status)
	_, _ = w.Write(b.Bytes()) // who has left reads no more
}
