package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

// TestVerdictBefallsOneCommandOfAPipeline sends INCR a, b, c in one write and
// judges b.
func TestVerdictBefallsOneCommandOfAPipeline(t *testing.T) {
	for _, tt := range []struct {
		name    string
		verdict redistest.Verdict
		replies []string
		counts  []int
	}{
		{"pass", redistest.Pass, []string{answered, answered, answered}, []int{1, 1, 1}},
		{"swallow reply", redistest.SwallowReply, []string{answered, timeout, timeout}, []int{1, 1, 1}},
		{"cut reply", redistest.CutReply, []string{answered, closed, closed}, []int{1, 1, 0}},
		{"lose", redistest.Lose, []string{answered, timeout, timeout}, []int{1, 0, 0}},
		{"cut before", redistest.CutBefore, []string{answered, closed, closed}, []int{1, 0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s site) {
				s.on("b", tt.verdict)
				conn := dialRaw(t, s.link)
				keys := []string{"a", "b", "c"}
				conn.write(t, encode("incr", "a")+encode("incr", "b")+encode("incr", "c"))
				for i, key := range keys {
					_ = conn.SetReadDeadline(time.Now().Add(patience))
					line, err := conn.lines.ReadString('\n')
					if got := outcomeOf(err); got != tt.replies[i] {
						t.Errorf("INCR %s %s with %q, want %s", key, got, line, tt.replies[i])
					}
					s.await(t, key, tt.counts[i])
				}
			})
		})
	}
}

func TestVerdictOnFirstCommandOfAConnection(t *testing.T) {
	for verdict, want := range map[redistest.Verdict]string{
		redistest.CutBefore: closed, redistest.Lose: timeout,
	} {
		everywhere(t, func(t *testing.T, s site) {
			conn := dialRaw(t, s.link)
			s.on("n", verdict)
			conn.send(t, "incr", "n")
			_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err := conn.Read(make([]byte, 1)); outcomeOf(err) != want {
				t.Errorf("connection %s, want %s", outcomeOf(err), want)
			}
			s.has(t, "n", 0)
		})
	}
}

func TestRetriesOfTheClientExecuteTwiceOnALostReply(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		c := s.client(t, func(o *redis.Options) { o.MaxRetries = 0 }) // the default, three retries
		first := true
		s.link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("incr") && first {
				first = false
				return redistest.SwallowReply
			}
			return redistest.Pass
		})
		if n, err := c.Incr(t.Context(), "n").Result(); n != 2 || err != nil {
			t.Errorf("INCR = %d, %v, want 2, nil", n, err)
		}
		if got := s.link.Commands()["incr"]; got != 2 {
			t.Errorf("%d INCR on the link, want 2", got)
		}
	})
}
