package cost_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/relockweb"
)

// A thousand locks are held, and ten wait for each, while five look at the list and at a lock
// without a pause: each is answered within a second, and the server spends less than 5 % of a
// core on it.
func TestDashboardCostsTheServerLittleAmongTenThousandWaiters(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client(t)
	crowd(t, rdb)
	c := rig.Open(t, server.Client(t))
	thrice(t, "an answer takes more than a second, or the server spends more than 5 % of a core", func() bool {
		idle := share(t, rdb, func(time.Time) {})
		h, slowest := relockweb.Handler(c), make([]time.Duration, 5) // which knows nothing yet
		busy := share(t, rdb, func(end time.Time) {
			var lookers sync.WaitGroup
			for i := range slowest {
				lookers.Go(func() { slowest[i] = look(t, h, end) })
			}
			lookers.Wait()
		})
		worst := max(slowest[0], slowest[1], slowest[2], slowest[3], slowest[4])
		t.Logf("%.1f %% of a core beside the %.1f %% without; the slowest answer took %v", 100*(busy-idle), 100*idle, worst)
		return busy-idle < 0.05 && worst < time.Second
	})
}

// crowd has 1,000 locks held and 10,000 calls wait for them until t ends.
func crowd(t *testing.T, rdb *redis.Client) {
	ctx, leave := context.WithCancel(context.Background())
	var gone sync.WaitGroup
	t.Cleanup(func() { leave(); gone.Wait() })
	holders, waiters := rig.Open(t, rdb, relock.Label("holder")), rig.Open(t, rdb, relock.Label("waiter"))
	terms := []relock.LockOption{relock.Fair(), relock.TTL(time.Hour)}
	for i := range 1_000 {
		name := fmt.Sprint("lock ", i)
		rig.MustAcquire(t, holders.NewLock(name, terms...))
		for range 10 {
			gone.Go(func() { _ = waiters.NewLock(name, terms...).Lock(ctx) })
		}
	}
	for i := range 1_000 {
		rig.Queued(t, holders.NewLock(fmt.Sprint("lock ", i)), 10)
	}
}

// look asks for pages, one after the other, until end, and returns how long the slowest took:
// an hour where one is no answer.
func look(t *testing.T, h http.Handler, end time.Time) (slowest time.Duration) {
	for i := 0; time.Now().Before(end); i++ {
		for _, address := range []string{"/", "/locks.json", fmt.Sprint("/lock?name=lock+", i%1_000)} {
			began := time.Now()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
			slowest = max(slowest, time.Since(began))
			if w.Code != http.StatusOK || address == "/" && !strings.Contains(w.Body.String(), `<b id="waiters">10000</b>`) {
				t.Logf("GET %s: status %d", address, w.Code)
				return time.Hour
			}
		}
		pause := time.NewTimer(200 * time.Millisecond) // a page looks every two seconds
		<-pause.C
	}
	return slowest
}

// share is how much of a core the server spends in ten seconds in which f runs.
func share(t *testing.T, rdb *redis.Client, f func(end time.Time)) float64 {
	before, began := spent(t, rdb), time.Now()
	end := began.Add(10 * time.Second)
	f(end)
	rest := time.NewTimer(time.Until(end))
	<-rest.C
	return (spent(t, rdb) - before) / time.Since(began).Seconds()
}

// spent is the server's processor time until now, in seconds.
func spent(t *testing.T, rdb *redis.Client) (seconds float64) {
	info, err := rdb.Info(context.Background(), "cpu").Result()
	rig.Must(t, err)
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if key == "used_cpu_user" || key == "used_cpu_sys" {
			n, err := strconv.ParseFloat(value, 64)
			rig.Must(t, err)
			seconds += n
		}
	}
	return seconds
}
