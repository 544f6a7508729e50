package recipes_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/relocktest"
)

func ready(client *relock.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := client.Check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

func TestAProbeIsReadyWhileLocksWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := relocktest.New(t)
		client := srv.Client()
		ask := func() int {
			w := httptest.NewRecorder()
			ready(client)(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ready", http.NoBody))
			return w.Code
		}
		if code := ask(); code != http.StatusOK {
			t.Errorf("status %d, want 200", code)
		}
		end := srv.Outage(client)
		if code := ask(); code != http.StatusServiceUnavailable {
			t.Errorf("status %d in an outage, want 503", code)
		}
		end()
	})
}
