package redistest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

func TestHeldCommandLandsAfterItsClientHasGone(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		free := make(chan struct{})
		s.on("a", redistest.Hold(free))
		c := s.client(t)
		cmds, _ := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Incr(t.Context(), "a")
			p.Incr(t.Context(), "b")
			return nil
		})
		if got := outcomeOf(cmds[0].Err()); got != timeout {
			t.Errorf("held INCR %s, want %s", got, timeout)
		}
		_ = c.Close()
		s.has(t, "a", 0)
		s.has(t, "b", 0)
		close(free)
		if err := s.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.await(t, "a", 1)
		s.await(t, "b", 1)
	})
}

func TestHeldCommandIsAnsweredToAClientThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server) {
		s := site{redistest.NewLink(t, srv.Dial), srv.Client(t)}
		free := make(chan struct{})
		s.on("n", redistest.Hold(free))
		time.AfterFunc(150*time.Millisecond, func() { close(free) })
		begin := time.Now()
		c := s.client(t)
		if n, err := c.Incr(t.Context(), "n").Result(); n != 1 || err != nil {
			t.Errorf("INCR = %d, %v, want 1, nil", n, err)
		}
		if err := s.link.Settle(t.Context()); err != nil || s.link.Conns() != 1 {
			t.Errorf("Settle = %v with %d connections, want nil with 1", err, s.link.Conns())
		}
		if got, want := time.Since(begin), 150*time.Millisecond; got != want {
			t.Errorf("answered after %v, want %v", got, want)
		}
	})
}

func TestHeldCommandIsLostInACut(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		free := make(chan struct{})
		s.on("n", redistest.Hold(free))
		_ = s.client(t).Incr(t.Context(), "n")
		s.link.Cut()
		close(free)
		if err := s.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.has(t, "n", 0)
	})
}

func TestHeldCommandIsLostInAHole(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		free := make(chan struct{})
		s.on("n", redistest.Hold(free))
		_ = s.client(t).Incr(t.Context(), "n")
		s.link.Hole()
		close(free)
		if err := s.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.has(t, "n", 0)
	})
}

func TestHeldCommandBehindALostOneIsLost(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		free := make(chan struct{})
		s.link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("ping") {
				return redistest.Lose
			}
			return redistest.Hold(free)
		})
		conn := dialRaw(t, s.link)
		conn.write(t, encode("ping")+encode("incr", "n"))
		conn.expectEnd(t, timeout)
		if err := s.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(free)
		s.has(t, "n", 0)
	})
}

func TestDuplicateExecutesAgainLater(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		again := make(chan struct{})
		s.on("n", redistest.Duplicate(again))
		c := s.client(t)
		if n, err := c.Incr(t.Context(), "n").Result(); n != 1 || err != nil {
			t.Fatalf("INCR = %d, %v, want 1, nil", n, err)
		}
		s.has(t, "n", 1)
		s.link.Cut()
		close(again)
		if err := s.link.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.has(t, "n", 2)
		if got := s.link.Commands()["incr"]; got != 1 {
			t.Errorf("the link counts %d INCR, want 1", got)
		}
	})
}

func TestLinkEndsWithCommandsStillLate(t *testing.T) {
	everywhere(t, func(t *testing.T, s site) {
		never := make(chan struct{})
		s.on("n", redistest.Hold(never))
		_ = s.client(t).Incr(t.Context(), "n")
		s.on("n", redistest.Duplicate(never))
		_ = s.client(t).Incr(t.Context(), "n")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := s.link.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Settle = %v with two commands late, want %v", err, context.DeadlineExceeded)
		}
	})
}
