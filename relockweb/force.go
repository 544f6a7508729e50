package relockweb

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/seam"
)

const (
	// forceWithin bounds the time of a request to end a grant in Redis. mostForm bounds its size.
	forceWithin = 10 * time.Second
	mostForm    = 16 << 10
	// mostForced is how many holders one form can name. Each takes less than 30 bytes of it.
	mostForced = 500
)

// askForce shows the page that asks for confirmation. It reads Redis itself, so that the operator confirms
// what is true now.
func (s *site) askForce(w http.ResponseWriter, r *http.Request) {
	p := &page{Title: "End a grant", Source: s.source, Status: http.StatusOK}
	now, status, problem := s.forcible(r)
	if problem != "" {
		p.Status, p.Problem = status, problem
	} else {
		p.Title = "End the grant of " + now.Name
		p.One = &detail{Lock: lockOf(now.Info, mostForced)}
		p.Rests = now.rests
	}
	show(w, "force.html", p)
}

// force ends what the confirmation page has shown.
func (s *site) force(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	p := &page{Title: "End a grant", Source: s.source}
	if p.Status, p.Problem = sameOrigin(r); p.Problem == "" {
		p.Status, p.Problem, p.Removed = s.end(r)
	}
	if p.Problem == "" {
		// http.Redirect would make the location absolute, using the path that StripPrefix has shortened.
		w.Header().Set("Location", "lock?name="+url.QueryEscape(p.Removed))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	show(w, "force.html", p)
}

// sameOrigin refuses requests that another site makes a browser send. A browser says where a request comes from. A
// program that does not say it is refused too: it can call ForceUnlockHolder.
func sameOrigin(r *http.Request) (status int, problem string) {
	told := r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
	if err := http.NewCrossOriginProtection().Check(r); err != nil || !told {
		return http.StatusForbidden, "this request does not come from a page of this dashboard: open the lock there, and try again"
	}
	return http.StatusOK, ""
}

const (
	nothingChosen = "nothing was changed: choose a grant to end, and tick the confirmation"
	othersHold    = "nothing was changed: the grant or rest on the page has ended, and somebody else holds the lock now; look again"
	hasEnded      = "nothing was changed: the grant or rest on the page has ended; look again"
)

// end ends the grants that the form names, and no others. It returns the name of their lock.
func (s *site) end(r *http.Request) (status int, problem, name string) {
	now, status, problem := s.forcible(r)
	if problem != "" {
		return status, problem, ""
	}
	tokens, rests, ok := chosen(r)
	if !ok {
		return http.StatusBadRequest, nothingChosen, ""
	}
	ctx, cancel := context.WithTimeout(r.Context(), forceWithin)
	defer cancel()
	removed, err := s.endThese(ctx, now, tokens, rests)
	switch {
	case err != nil:
		return http.StatusBadGateway, fmt.Sprintf("the grant or rest may or may not have ended: %v", err), ""
	case !removed && len(now.Holders) > 0:
		return http.StatusConflict, othersHold, ""
	case !removed:
		return http.StatusConflict, hasEnded, ""
	}
	s.each.expire(now.Name)
	s.locks.expire("")
	return http.StatusSeeOther, "", now.Name
}

// chosen reads from the form the tokens of the grants to end, or the end of the rest.
func chosen(r *http.Request) (tokens map[int64]bool, rests int64, ok bool) {
	tokens = map[int64]bool{}
	for _, text := range r.PostForm["token"] {
		token, err := strconv.ParseInt(text, 10, 64)
		if err != nil || token <= 0 {
			return nil, 0, false
		}
		tokens[token] = true
	}
	rests, err := strconv.ParseInt(r.PostFormValue("rests"), 10, 64)
	return tokens, rests, err == nil && r.PostFormValue("confirm") == "yes"
}

// endThese ends the grants with these tokens, or the rest that ends at that time. Redis compares each of them
// in the same step.
func (s *site) endThese(ctx context.Context, now state, tokens map[int64]bool, rests int64) (removed bool, err error) {
	l := s.c.NewLock(now.Name)
	if len(tokens) == 0 && rests > 0 {
		return seam.ForceRest(ctx, l, rests)
	}
	for _, h := range now.Holders {
		if !tokens[h.Token] {
			continue
		}
		one, err := l.ForceUnlockHolder(ctx, h)
		removed = removed || one
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// A state is the current state of a lock in Redis.
type state struct {
	relock.Info
	rests int64 // the end of the rest by the server's clock, in ms; 0: no rest
}

// forcible returns the current state of the lock that a request may force, or the status and the problem to
// answer.
func (s *site) forcible(r *http.Request) (now state, status int, problem string) {
	if !s.may(r) {
		return state{}, http.StatusForbidden, "you can look at locks, but you are not allowed to end grants"
	}
	name := r.FormValue("name")
	if status, problem = s.shows(name); problem != "" {
		return state{}, status, problem
	}
	ctx, cancel := context.WithTimeout(r.Context(), forceWithin)
	defer cancel()
	info, at, err := seam.Info(ctx, s.c.NewLock(name))
	if err != nil {
		return state{}, http.StatusBadGateway, err.Error()
	}
	if now.Info = info.(relock.Info); now.Resting > 0 {
		now.rests = at + now.Resting.Milliseconds()
	}
	return now, http.StatusOK, ""
}
