package relockweb

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/relock-go/relock"
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
	info, status, problem := s.forcible(r)
	if problem != "" {
		p.Status, p.Problem = status, problem
	} else {
		p.Title = "End the grant of " + info.Name
		p.One = &detail{Lock: lockOf(info, fewOf)}
		p.Seen = latest(info)
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
	info, status, problem := s.forcible(r)
	if problem != "" {
		return status, problem, ""
	}
	seen, err := strconv.ParseInt(r.PostFormValue("seen"), 10, 64)
	switch {
	case err != nil || r.PostFormValue("confirm") != "yes":
		return http.StatusBadRequest, "nothing was done: it was not said that this is meant", ""
	case latest(info) > seen:
		return http.StatusConflict, "nothing was done: somebody else holds by now; look again", ""
	}
	ctx, cancel := context.WithTimeout(r.Context(), forceWithin)
	defer cancel()
	if _, err := s.c.NewLock(info.Name).ForceUnlock(ctx); err != nil {
		return http.StatusBadGateway, fmt.Sprintf("it may or may not have been ended: %v", err), ""
	}
	s.each.expire(info.Name)
	s.locks.expire("")
	return http.StatusSeeOther, "", info.Name
}

// forcible is what Redis knows now of the lock that a request may force, or else what to
// answer instead.
func (s *site) forcible(r *http.Request) (info relock.Info, status int, problem string) {
	if !s.may(r) {
		return info, http.StatusForbidden, "you may look, and end nothing"
	}
	name := r.FormValue("name")
	if status, problem = s.shows(name); problem != "" {
		return info, status, problem
	}
	ctx, cancel := context.WithTimeout(r.Context(), forceWithin)
	defer cancel()
	info, err := s.c.NewLock(name).Info(ctx)
	if err != nil {
		return info, http.StatusBadGateway, err.Error()
	}
	return info, http.StatusOK, ""
}

// latest is the largest token among the holders.
func latest(info relock.Info) (token int64) {
	for _, h := range info.Holders {
		token = max(token, h.Token)
	}
	return token
}
