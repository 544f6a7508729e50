// Package relockweb shows in a browser which locks are held, by whom, for how long, and the queues.
// It is an [http.Handler] with a page that renews itself, and serves the same as JSON.
//
//	mux.Handle("/locks/", http.StripPrefix("/locks", relockweb.Handler(client)))
//
// It has no authentication: everybody who reaches it sees the names of locks, owners and labels.
// Put it behind the same protection as your other pages for operators. Where that is the network alone, name the
// [Hosts] too. It changes nothing, unless [AllowForce] lets it.
//
// All visitors share what is read. After a read for which Redis worked for d, the next read of that
// kind begins 24 d later at the earliest. A lock of which nothing is known yet is read within 400 ms, or
// after the read that is in progress. Such a lock waits as others do while these reads have taken more than half a
// second of the last minute. So over minutes the list, and all pages of locks, each use less than 5 % of a server's
// core, with any number of visitors.
//
// The user of the client needs +scan in addition to what locks need.
package relockweb

import (
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
)

// An Option changes what a [Handler] shows or allows. If one is nil or bad, every answer of the Handler is an error of
// status 500 that says so.
type Option func(*site) error

// AllowForce lets a request end the grant of a holder, as [relock.Lock.ForceUnlockHolder] does, if may returns true for
// it. Others get status 403. Without the option nobody can end anything. If may is nil, every answer is an error.
//
// Such a request must come from a page of the same origin, after a page that asks whether it is meant. It ends the
// grants that were chosen on that page, by their tokens, and nothing else. If nobody holds the lock, it ends the rest
// of the name that was shown (AtLeast, Once). It also ends a rest that ends in the same millisecond, such as that of a
// next run of Once in the interval. Each of these requests reads from Redis, as does the page that asks.
//
// may must check who sends the request. It is also called for each view of a lock's page, which offers the button only
// to those who may. So it must not use up a code, and its calls are no attempts to end a grant.
//
// Without [Hosts] a web site that has let its own name resolve to the dashboard counts as the same origin. Then may must
// check what a browser sends to your host alone, such as a cookie, and not only who can reach the dashboard.
func AllowForce(may func(r *http.Request) bool) Option {
	return func(s *site) error {
		if may == nil {
			return errors.New("AllowForce(nil): pass a function that says who may end grants")
		}
		s.may = may
		return nil
	}
}

// Hosts names the hosts under which the dashboard is served, such as "locks.example.com"; their ports do not matter. IP
// addresses and localhost need no name. Requests for other hosts get status 421. Behind a proxy, name the host that the
// proxy passes on.
//
// Without the option, a web site can let its own name resolve to the dashboard's address (DNS rebinding). A browser that
// reaches the dashboard then lets scripts of that site read it, and post to it.
func Hosts(names ...string) Option {
	return func(s *site) error {
		if s.hosts == nil {
			s.hosts = map[string]bool{"localhost": true}
		}
		for _, name := range names {
			s.hosts[hostname(name)] = true
		}
		return nil
	}
}

// Match shows only the locks whose names match the pattern, in which * and ? stand for any text and any character, as
// [relock.Client.Locks] says. By default it shows all. Other locks have no page of their own either. With a bad pattern
// every answer is an error.
func Match(pattern string) Option {
	return func(s *site) (err error) {
		s.match = pattern
		s.allowed, err = key.NewMatch(pattern)
		return err
	}
}

// Refresh sets how old the data may be, and how often a page renews itself: 2 s by default, from 250 ms to an hour.
// Slow reads make the data older. Pages round every up to whole seconds. Out of bounds every answer is an error.
func Refresh(every time.Duration) Option {
	return func(s *site) error {
		if every < minEvery || every > maxEvery {
			return fmt.Errorf("Refresh(%v): must be from %v to %v", every, minEvery, maxEvery)
		}
		s.every = every
		return nil
	}
}

// Source says for people which Redis, prefix or environment the locks are in, such as "production, eu-1". It is shown
// at the top of every page and in its title, and nowhere by default. It must not have a password in it.
func Source(text string) Option {
	return func(s *site) error {
		s.source = text
		return nil
	}
}

const (
	defaultEvery = 2 * time.Second
	minEvery     = 250 * time.Millisecond
	maxEvery     = time.Hour
)

// A site is the dashboard of one Handler.
type site struct {
	c       *relock.Client
	match   string
	allowed key.Match
	every   time.Duration
	source  string
	may     func(r *http.Request) bool // nil: nobody may
	hosts   map[string]bool            // nil: every host
	locks   *reads[*listing]           // the only key is ""
	each    *reads[*detail]            // by name
}

// Handler returns the dashboard of the locks of c. It serves the root of an address: use [http.StripPrefix] to mount it
// elsewhere. It does no I/O until it is asked, and needs no closing: a read ends within ten seconds, or when c is
// closed. It has no authentication. With a nil client or a bad option every answer is that error, with status 500.
//
// The status is 400 for a bad name, and 404 for a name that Match excludes. It is 421 for a host that Hosts excludes, and
// 503 if nothing has been read yet. A list has at most 10,000 locks, and a page 1,000. The answer for one lock has at
// most 1,000 holders and 1,000 waiters.
//
// GET answers at
//
//	/                the page; ?prefix=TEXT shows names that begin with TEXT; ?sort= orders by name, waiters,
//	                 held or lease, and a leading - reverses the order; ?live=off switches reloading off
//	/lock?name=NAME  one lock, with its queue
//	/locks.json      what the page shows, with ?prefix=TEXT; docs/operations.md has the form
//	/lock.json?name=NAME
func Handler(c *relock.Client, opts ...Option) http.Handler {
	s := &site{c: c, every: defaultEvery}
	if c == nil {
		return broken(errors.New("the client is nil; make one with relock.New"))
	}
	for _, o := range append([]Option{Match("")}, opts...) {
		if o == nil {
			return broken(errors.New("an option is nil"))
		}
		if err := o(s); err != nil {
			return broken(err)
		}
	}
	s.locks = newReads(s.every, s.readList)
	s.each = newReads(s.every, s.readLock)
	return guarded(s.hosted(s.routes()))
}

//go:embed static
var static embed.FS

func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.listPage)
	mux.HandleFunc("GET /lock", s.lockPage)
	mux.HandleFunc("GET /locks.json", s.listJSON)
	mux.HandleFunc("GET /lock.json", s.lockJSON)
	for name, kind := range map[string]string{"app.js": "text/javascript", "app.css": "text/css", "icon.svg": "image/svg+xml"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind+"; charset=utf-8")
			http.ServeFileFS(w, r, static, "static/"+name)
		})
	}
	if s.may != nil {
		mux.HandleFunc("GET /force", s.askForce)
		mux.HandleFunc("POST /force", s.force)
	}
	return mux
}

// hosted refuses requests for hosts that Hosts does not name. IP addresses pass: no site can let one resolve to another.
func (s *site) hosted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostname(r.Host)
		if _, err := netip.ParseAddr(host); s.hosts != nil && err != nil && !s.hosts[host] {
			http.Error(w, fmt.Sprintf("relockweb: the dashboard is not served as %q: name that host with Hosts, or relock serve -host", host), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hostname returns the name or address of a host, without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// policy lets a page load only what this handler serves: no inline script, no frame, no form that goes
// elsewhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guarded sets the security headers of each answer.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

// broken answers every request with the error.
func broken(err error) http.Handler {
	return guarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "relockweb: "+err.Error(), http.StatusInternalServerError)
	}))
}
