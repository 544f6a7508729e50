package relockweb

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/relock-go/relock/internal/key"
)

const notYet = "nothing has been read from Redis yet; try again in a moment"

// list returns the locks whose names begin as the request says.
func (s *site) list(r *http.Request) (l *listing, ok bool) {
	l, ok = s.locks.get(r.Context(), "")
	if !ok {
		return nil, false
	}
	return l.begins(r.URL.Query().Get("prefix")), true
}

// one returns the lock that the request names, or the status and the problem to answer.
func (s *site) one(r *http.Request) (d *detail, status int, problem string) {
	name := r.FormValue("name")
	if status, problem = s.shows(name); problem != "" {
		return nil, status, problem
	}
	d, ok := s.each.get(r.Context(), name)
	if !ok {
		return nil, http.StatusServiceUnavailable, notYet
	}
	return d, statusOf(d.ReadAt), ""
}

// shows returns what is wrong with a name: it is invalid, or Match does not allow it.
func (s *site) shows(name string) (status int, problem string) {
	if err := key.CheckName(name); err != nil {
		return http.StatusBadRequest, "name the lock with ?name=NAME: " + err.Error()
	}
	if !s.allowed.Name(name) {
		return http.StatusNotFound, "this dashboard does not show locks with that name"
	}
	return http.StatusOK, ""
}

// statusOf returns the HTTP status of data that was read at that time, or never.
func statusOf(at time.Time) int {
	if at.IsZero() {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

func (s *site) listJSON(w http.ResponseWriter, r *http.Request) {
	l, ok := s.list(r)
	if !ok {
		failJSON(w, http.StatusServiceUnavailable, notYet)
		return
	}
	sendJSON(w, statusOf(l.ReadAt), l)
}

func (s *site) lockJSON(w http.ResponseWriter, r *http.Request) {
	d, status, problem := s.one(r)
	if problem != "" {
		failJSON(w, status, problem)
		return
	}
	sendJSON(w, status, d)
}

func failJSON(w http.ResponseWriter, status int, problem string) {
	sendJSON(w, status, map[string][]string{"problems": {problem}})
}

func sendJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil { // escapes <, > and &
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a visitor who has left reads no more
}
