package logqueue_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/logqueue"
	"github.com/relock-go/relock/internal/virtual"
)

// A gate is a handler that does not return until it is opened.
type gate struct {
	slog.Handler
	open chan struct{}
}

func (g *gate) Handle(ctx context.Context, r slog.Record) error {
	<-g.open
	return g.Handler.Handle(ctx, r)
}

// written returns a handler without times, and what it has written.
func written(level slog.Level) (slog.Handler, *bytes.Buffer) {
	var out bytes.Buffer
	return slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}), &out
}

func TestRecordsComeAsIfTheHandlerHadBeenCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		use := func(l *slog.Logger) {
			l.Debug("not enabled")
			l.Warn("first", slog.Int("n", 1))
			l.With(slog.String("of", "a")).WithGroup("g").Error("second", slog.Int("n", 2))
			l.Info("third")
		}
		direct, want := written(slog.LevelInfo)
		use(slog.New(direct))
		var q logqueue.Queue
		behind, got := written(slog.LevelInfo)
		use(slog.New(q.Handler(behind)))
		synctest.Wait()
		if got.String() != want.String() {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// Fails when a handler that hangs holds up who logs, when records are lost in silence, or when
// they come in another order.
func TestRecordsThatAreDroppedAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q logqueue.Queue
		to, out := written(slog.LevelInfo)
		g := &gate{to, make(chan struct{})}
		l := slog.New(q.Handler(g))
		say := func(from, to int) {
			for i := from; i < to; i++ {
				l.Info(fmt.Sprintf("n%d", i))
			}
		}
		say(0, 1)
		synctest.Wait() // the handler has it
		say(1, 1030)    // five too many
		g.open <- struct{}{}
		synctest.Wait()
		say(1030, 1032) // one too many
		close(g.open)
		synctest.Wait()
		var want strings.Builder
		line := func(level, msg, more string) { fmt.Fprintf(&want, "level=%s msg=%s%s\n", level, msg, more) }
		lost := `"log records dropped: the handler takes too long"`
		for i := range 1025 {
			line("INFO", fmt.Sprintf("n%d", i), "")
		}
		line("WARN", lost, " records=5")
		line("INFO", "n1030", "")
		line("WARN", lost, " records=1")
		if out.String() != want.String() {
			t.Errorf("got %d lines that end in\n%s", strings.Count(out.String(), "\n"), tail(out.String()))
		}
	})
}

func tail(s string) string { return s[max(0, len(s)-300):] }

// Fails when Close waits for ever, or returns before a handler that works has all records.
func TestCloseWaitsForTheHandlerButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, takes := range map[string]time.Duration{"nothing is left": 30 * time.Millisecond, "it hangs": time.Hour} {
			var q logqueue.Queue
			to, out := written(slog.LevelInfo)
			l := slog.New(q.Handler(&slow{to, takes}))
			q.Close(time.Minute) // there is nothing to wait for
			for range 3 {
				l.Info("x")
			}
			began := time.Now()
			q.Close(100 * time.Millisecond)
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("%s: closed after %v", name, took)
			}
			virtual.Sleep(10 * time.Hour)
			synctest.Wait()
			if got, want := strings.Count(out.String(), "msg=x"), map[bool]int{true: 3, false: 1}[takes < time.Hour]; got != want {
				t.Errorf("%s: %d records, want %d", name, got, want)
			}
			l.Info("later")
			virtual.Sleep(10 * time.Hour)
			synctest.Wait()
			if !strings.Contains(out.String(), "later") {
				t.Errorf("%s: a record that came after Close is lost", name)
			}
		}
	})
}

// A slow handler takes so long for a record.
type slow struct {
	slog.Handler
	takes time.Duration
}

func (s *slow) Handle(ctx context.Context, r slog.Record) error {
	virtual.Sleep(s.takes)
	return s.Handler.Handle(ctx, r)
}

func TestAHandlerThatEndsItsGoroutineIsCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q logqueue.Queue
		to, out := written(slog.LevelInfo)
		l := slog.New(q.Handler(&quits{Handler: to}))
		l.Info("a")
		l.Info("b")
		synctest.Wait()
		if !strings.Contains(out.String(), "msg=b") {
			t.Errorf("got %q, want the second record", out)
		}
	})
}

// quits is a handler that ends its goroutine at the first record.
type quits struct {
	slog.Handler
	once sync.Once
}

func (h *quits) Handle(ctx context.Context, r slog.Record) error {
	quit := false
	h.once.Do(func() { quit = true })
	if quit {
		runtime.Goexit()
	}
	return h.Handler.Handle(ctx, r)
}
