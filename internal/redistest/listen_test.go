package redistest_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

func TestListenIsTheSameLink(t *testing.T) {
	r := redistest.Real(t)
	s := site{redistest.NewLink(t, r.Dial), r.Client(t)}
	addr := s.link.Listen(t)
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	s.on("n", redistest.CutReply)
	if got := outcomeOf(c.Incr(t.Context(), "n").Err()); got != closed {
		t.Errorf("INCR %s, want %s", got, closed)
	}
	s.has(t, "n", 1)
	s.link.OnCommand(nil)
	heal := s.link.Cut()
	if err := c.Incr(t.Context(), "n").Err(); err == nil {
		t.Error("INCR crossed a cut link")
	}
	heal()
	if n, err := c.Incr(t.Context(), "n").Result(); n != 2 || err != nil {
		t.Errorf("INCR = %d, %v, want 2, nil", n, err)
	}
	if got := s.link.Commands()["incr"]; !strings.HasPrefix(addr, "127.0.0.1:") || got != 2 {
		t.Errorf("%d INCR on the link at %s, want 2", got, addr)
	}
}
