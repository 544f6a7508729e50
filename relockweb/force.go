package relockweb

import (
	"cmp"
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
	// forceWithin bounds what a request to end a grant does in Redis, and mostForm its size.
	forceWithin = 10 * time.Second
	mostForm    = 16 << 10
)

// askForce is the page that asks whether it is meant. It reads Redis itself: what it shows is
// what is agreed to.
func (s *site) askForce(w http.ResponseWriter, r *http.Request) {
	p := &page{Title: "End a grant", Status: http.StatusOK}
	now, status, problem := s.forcible(r)
	if problem != "" {
		p.Status, p.Problem = status, problem
	} else {
		p.Title = "End the grant of " + now.Name
		p.One = &detail{Lock: lockOf(now.Info, fewOf)}
		p.Seen, p.Rests = now.latest(), now.rests
	}
	show(w, "force.html", p)
}

// force ends what the page that asked has shown.
func (s *site) force(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	p := &page{Title: "End a grant"}
	if p.Status, p.Problem = sameOrigin(r); p.Problem == "" {
		p.Status, p.Problem, p.Removed = s.end(r)
	}
	if p.Problem == "" {
		// http.Redirect would make it absolute, by the path that StripPrefix has shortened.
		w.Header().Set("Location", "lock?name="+url.QueryEscape(p.Removed))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	show(w, "force.html", p)
}

// sameOrigin refuses what another site makes a browser send. A browser says where a request
// comes from; what says nothing of that has no use for a page that asks.
func sameOrigin(r *http.Request) (status int, problem string) {
	told := r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
	if err := http.NewCrossOriginProtection().Check(r); err != nil || !told {
		return http.StatusForbidden, "this comes from no page of this dashboard: open the lock there, and begin anew"
	}
	return http.StatusOK, ""
}

// end ends the grant, and returns the name of its lock.
func (s *site) end(r *http.Request) (status int, problem, name string) {
	now, status, problem := s.forcible(r)
	if problem != "" {
		return status, problem, ""
	}
	seen, err := strconv.ParseInt(r.PostFormValue("seen"), 10, 64)
	rests, none := strconv.ParseInt(r.PostFormValue("rests"), 10, 64)
	switch err = cmp.Or(err, none); {
	case err != nil || r.PostFormValue("confirm") != "yes":
		return http.StatusBadRequest, "nothing was done: it was not said that this is meant", ""
	case now.latest() > seen:
		return http.StatusConflict, "nothing was done: somebody else holds by now; look again", ""
	case now.latest() == 0 && seen > 0, now.rests != rests: // a rest may be that of a later grant
		return http.StatusConflict, "nothing was done: what was shown has ended; look again", ""
	}
	ctx, cancel := context.WithTimeout(r.Context(), forceWithin)
	defer cancel()
	if _, err := s.c.NewLock(now.Name).ForceUnlock(ctx); err != nil {
		return http.StatusBadGateway, fmt.Sprintf("it may or may not have been ended: %v", err), ""
	}
	s.each.expire(now.Name)
	s.locks.expire("")
	return http.StatusSeeOther, "", now.Name
}

// A state is what Redis knows of a lock, and by what that is told from what it knows later.
type state struct {
	relock.Info
	rests int64 // until when the name rests, by the server's clock in ms; 0: it does not
}

// latest is the largest token among the holders; 0: there are none.
func (s state) latest() (token int64) {
	for _, h := range s.Holders {
		token = max(token, h.Token)
	}
	return token
}

// forcible is what Redis knows now of the lock that a request may force, or else what to
// answer instead.
func (s *site) forcible(r *http.Request) (now state, status int, problem string) {
	if !s.may(r) {
		return state{}, http.StatusForbidden, "you may look, and end nothing"
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
