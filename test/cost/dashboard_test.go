package cost_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// waiting is the TTL of those who wait: they ask again each third of it.
const waiting = 15 * time.Second

// A thousand locks are held, and ten wait for each, while five look at the list and at a lock
// without a pause, and then while relock top runs: each is answered within a second, and the
// server spends less on it than on those who wait, a coarse bound: one round of heartbeats differs
// from another by 3 % of a core. How seldom each looks is shown in virtual time:
// TestReadsThatTakeLongComeSeldom, TestTopRestsNineteenTimesAsLongAsItLooks.
func TestDashboardAndTopCostTheServerLittleAmongTenThousandWaiters(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client(t)
	crowd(t, rdb)
	// All waiters ask again every third of their TTL: each time has one such round in it.
	const pulse = waiting / 3
	little := func(t *testing.T, looking func(end time.Time) (slowest time.Duration)) {
		repeatedly(t, "an answer takes more than a second, or the server spends more on it than on those who wait", func(minima) bool {
			var slowest time.Duration
			idle := share(t, rdb, pulse, func(time.Time) {}) // each time anew: another program may have come
			busy := share(t, rdb, pulse, func(end time.Time) { slowest = looking(end) })
			t.Logf("%.1f %% of a core beside the %.1f %% without; the slowest answer took %v", 100*(busy-idle), 100*idle, slowest)
			return busy < 2*idle && slowest < time.Second
		})
	}
	t.Run("dashboard", func(t *testing.T) {
		c := rig.Open(t, server.Client(t))
		little(t, func(end time.Time) time.Duration {
			h, slowest := relockweb.Handler(c), make([]time.Duration, 5) // which knows nothing yet
			var lookers sync.WaitGroup
			for i := range slowest {
				lookers.Go(func() { slowest[i] = look(t, h, end) })
			}
			lookers.Wait()
			return slices.Max(slowest)
		})
	})
	t.Run("top", func(t *testing.T) {
		relock := built(t)
		little(t, func(end time.Time) time.Duration { return top(t, relock, "redis://"+server.Addr(), end) })
	})
}

// built is the command.
func built(t *testing.T) (path string) {
	path = filepath.Join(t.TempDir(), "relock")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/relock-go/relock/cmd/relock").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return path
}

// top has relock look again and again until end, and returns how long the slowest look took,
// the first with all that comes before it: an hour where one is no answer.
func top(t *testing.T, relock, url string, end time.Time) (slowest time.Duration) {
	ctx, cancel := context.WithDeadline(t.Context(), end)
	defer cancel()
	cmd := exec.CommandContext(ctx, relock, "top", "-json", "-redis", url)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	rig.Must(t, err)
	began := time.Now()
	rig.Must(t, cmd.Start())
	defer func() { _ = cmd.Wait() }() // it was interrupted
	for in := json.NewDecoder(out); ; {
		var seen struct {
			Took  int64 `json:"took_ms"`
			Locks []struct{ Waiting int }
		}
		if err := in.Decode(&seen); err != nil {
			if slowest == 0 || ctx.Err() == nil {
				t.Logf("top has ended: %v", err)
				return time.Hour
			}
			return slowest
		}
		waiting := 0
		for _, l := range seen.Locks {
			waiting += l.Waiting
		}
		if len(seen.Locks) != 1_000 || waiting != 10_000 {
			t.Logf("top shows %d locks, %d waiters", len(seen.Locks), waiting)
			return time.Hour
		}
		if slowest == 0 {
			slowest = time.Since(began)
		}
		slowest = max(slowest, time.Duration(seen.Took)*time.Millisecond)
	}
}

// crowd has 1,000 locks held and 10,000 calls wait for them until t ends.
func crowd(t *testing.T, rdb *redis.Client) {
	ctx, leave := context.WithCancel(context.Background())
	var gone sync.WaitGroup
	t.Cleanup(func() { leave(); gone.Wait() })
	holders, waiters := rig.Open(t, rdb, relock.Label("holder")), rig.Open(t, rdb, relock.Label("waiter"))
	held, waits := []relock.LockOption{relock.Fair(), relock.TTL(time.Hour)}, []relock.LockOption{relock.Fair(), relock.TTL(waiting)}
	for i := range 1_000 {
		name := fmt.Sprint("lock ", i)
		rig.MustAcquire(t, holders.NewLock(name, held...))
		for range 10 {
			gone.Go(func() { _ = waiters.NewLock(name, waits...).Lock(ctx) })
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

// share is how much of a core the server spends in a time in which f runs.
func share(t *testing.T, rdb *redis.Client, long time.Duration, f func(end time.Time)) float64 {
	before, began := spent(t, rdb), time.Now()
	end := began.Add(long)
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
