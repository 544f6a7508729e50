package recipes_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/relocktest"
)

// editing serves POST /orders/{id}: one at a time edits an order, over all processes.
func editing(client *relock.Client, edit func(ctx context.Context, order string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		order := r.PathValue("id")
		late := r.Context().Err() != nil // then TryDo asks nobody
		var failed error                 // of the edit alone
		ran, err := client.NewLock("orders/"+order).TryDo(r.Context(), 2*time.Second, func(ctx context.Context) error {
			failed = edit(ctx, order)
			return failed
		})
		switch {
		case ran && failed == nil && (err == nil || errors.Is(err, relock.ErrUnconfirmed)):
			w.WriteHeader(http.StatusNoContent) // edited, also where Redis did not confirm the unlock
		case err == nil: // taken for the whole wait
			refuse(w, http.StatusLocked, "somebody else edits this order")
		case errors.Is(err, relock.ErrInvalidName): // the name came from the URL
			http.Error(w, "no such order", http.StatusBadRequest)
		case errors.Is(err, relock.ErrLost): // while it was edited: who knows how far that got
			refuse(w, http.StatusServiceUnavailable, "interrupted")
		case !ran && (late || errors.Is(err, relock.ErrUnavailable) || errors.Is(err, relock.ErrClosed) || errors.Is(err, relock.ErrReplicas)):
			refuse(w, http.StatusServiceUnavailable, "try again")
		case !ran && errors.Is(err, r.Context().Err()): // taken until the deadline
			refuse(w, http.StatusLocked, "somebody else edits this order")
		case ran && r.Context().Err() != nil: // the deadline passed during the edit
			http.Error(w, "too late", http.StatusGatewayTimeout)
		default:
			http.Error(w, "not edited", http.StatusInternalServerError)
		}
	}
}

// refuse says that the same request may succeed later.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Retry-After", "2")
	http.Error(w, text, status)
}

func fine(context.Context, string) error { return nil }

func untilItEnds(ctx context.Context, _ string) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// forASecond edits for long enough that an outage can begin meanwhile.
func forASecond(context.Context, string) error {
	virtual.Sleep(time.Second)
	return nil
}

func forAMinute(context.Context, string) error {
	virtual.Sleep(time.Minute)
	return nil
}

func brokenAfterASecond(ctx context.Context, order string) error {
	return errors.Join(forASecond(ctx, order), errors.New("broken"))
}

func holdFair(srv *relocktest.Server) { srv.Hold("orders/17", relock.Fair()) }

var statuses = map[string]struct {
	path           string
	edit           func(context.Context, string) error
	opts           []relock.Option
	before, during func(srv *relocktest.Server)
	want           int
	retry          bool
	deadline       time.Duration // of the request; a minute unless set
}{
	"free":                      {path: "/orders/17", edit: fine, want: 204},
	"taken":                     {path: "/orders/17", edit: fine, before: func(srv *relocktest.Server) { srv.Hold("orders/17") }, want: 423, retry: true},
	"bad name":                  {path: "/orders/%0A", edit: fine, want: 400},
	"no UTF-8":                  {path: "/orders/%FF", edit: fine, want: 400},
	"long name":                 {path: "/orders/" + strings.Repeat("7", 512), edit: fine, want: 400},
	"outage":                    {path: "/orders/17", edit: fine, before: func(srv *relocktest.Server) { srv.Outage() }, want: 503, retry: true},
	"cut off":                   {path: "/orders/17", edit: fine, before: func(srv *relocktest.Server) { srv.Partition() }, want: 503, retry: true},
	"lost":                      {path: "/orders/17", edit: untilItEnds, during: func(srv *relocktest.Server) { srv.Lose("orders/17") }, want: 503, retry: true},
	"late":                      {path: "/orders/17", edit: untilItEnds, want: 504},
	"late before the call":      {path: "/orders/17", edit: fine, want: 503, retry: true, deadline: -time.Second},
	"taken until the deadline":  {path: "/orders/17", edit: fine, before: func(srv *relocktest.Server) { srv.Hold("orders/17") }, want: 423, retry: true, deadline: time.Second},
	"silent until the deadline": {path: "/orders/17", edit: fine, before: func(srv *relocktest.Server) { srv.Partition() }, want: 503, retry: true, deadline: time.Second},
	"broken":                    {path: "/orders/17", edit: brokenAfterASecond, want: 500},

	"another kind of lock": {path: "/orders/17", edit: fine, before: holdFair, want: 500},
	"another kind as the deadline passes": {path: "/orders/17", edit: fine, before: holdFair, want: 500, deadline: time.Second, opts: []relock.Option{
		relock.Trace(relock.Hooks{GaveUp: func(ctx context.Context, _ relock.Event) { <-ctx.Done() }}),
	}},

	"outage meanwhile":            {path: "/orders/17", edit: forASecond, during: func(srv *relocktest.Server) { srv.Outage() }, want: 204},
	"outage beyond the lease":     {path: "/orders/17", edit: forAMinute, during: func(srv *relocktest.Server) { srv.Outage() }, want: 503, retry: true, deadline: time.Hour},
	"cut off meanwhile":           {path: "/orders/17", edit: forASecond, during: func(srv *relocktest.Server) { srv.Partition() }, want: 204},
	"broken, and outage as well":  {path: "/orders/17", edit: brokenAfterASecond, during: func(srv *relocktest.Server) { srv.Outage() }, want: 500},
	"broken, and cut off as well": {path: "/orders/17", edit: brokenAfterASecond, during: func(srv *relocktest.Server) { srv.Partition() }, want: 500},
}

func TestStatusSaysWhatBecameOfTheLock(t *testing.T) {
	for name, row := range statuses {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := relocktest.New(t)
				client := srv.Client(row.opts...)
				if row.before != nil {
					row.before(srv)
				}
				served := make(chan *httptest.ResponseRecorder, 1)
				go func() { served <- post(t, editing(client, row.edit), row.path, cmp.Or(row.deadline, time.Minute)) }()
				if row.during != nil {
					synctest.Wait()
					row.during(srv)
				}
				answer := <-served
				if answer.Code != row.want || (answer.Header().Get("Retry-After") != "") != row.retry {
					t.Errorf("status %d, headers %v; want %d", answer.Code, answer.Header(), row.want)
				}
			})
		})
	}
}

func post(t *testing.T, handler http.Handler, path string, deadline time.Duration) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", handler)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, path, nil))
	return answer
}
