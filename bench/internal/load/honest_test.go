package load_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/bench/internal/load"
	"github.com/relock-go/relock/bench/internal/rival"
)

func regexpOf(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// TestCommandsOfAPairAreThoseThatMonitorSees guards the figures of network commands:
// the server's statistics count the commands inside scripts as well.
func TestCommandsOfAPairAreThoseThatMonitorSees(t *testing.T) {
	for _, r := range append(rival.All(), rival.RelockRW()) {
		t.Run(r.Name, func(t *testing.T) {
			b, _ := small(t)
			c, err := r.Open(b.Server.Addr(), rival.Setup{TTL: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			l := c.Lock("seen")
			lockUnlock(t, l, 2) // connects, loads scripts
			seen := monitor(t, b)
			before, err := b.Server.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			lockUnlock(t, l, 25)
			after, err := b.Server.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := seen()
			if got := after.Since(before).Commands(r.Sends); got != want || got < 50 {
				t.Errorf("25 pairs: counted %d commands, MONITOR saw %d from the network", got, want)
			}
		})
	}
}

func lockUnlock(t *testing.T, l rival.Lock, times int) {
	t.Helper()
	for range times {
		if err := l.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
}

// monitor begins to watch; the function it returns tells how many commands came
// over the network since, but for those that read statistics.
func monitor(t *testing.T, b *load.Bench) func() int64 {
	t.Helper()
	conn, err := net.Dial("tcp", b.Server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	lines := bufio.NewReader(conn)
	if _, err := fmt.Fprintf(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	if ok, err := lines.ReadString('\n'); err != nil || ok != "+OK\r\n" {
		t.Fatalf("MONITOR: %q, %v", ok, err)
	}
	return func() (n int64) {
		if err := b.Server.Admin.Echo(t.Context(), "the end").Err(); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.Contains(line, `"the end"`):
				return n
			case !strings.Contains(line, " lua] ") && !strings.Contains(line, `"info"`):
				n++
			}
		}
	}
}

// fake is a rival that does as told.
func fake(lock, unlock func() error) rival.Rival {
	return rival.Rival{Name: "fake", Open: func(string, rival.Setup) (rival.Client, error) { return fakeClient{lock, unlock}, nil }}
}

type fakeClient struct{ lock, unlock func() error }

func (f fakeClient) Lock(string) rival.Lock { return fakeLock(f) }
func (f fakeClient) Close() error           { return nil }
func (f fakeLock) Unlock() error            { return f.unlock() }

type fakeLock fakeClient

// Lock takes the time of a server's answer: with none, whoever asks again is all
// that runs.
func (f fakeLock) Lock(ctx context.Context) error {
	select {
	case <-time.After(100 * time.Microsecond):
		return f.lock()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestErrorsAreCounted(t *testing.T) {
	fine := func() error { return nil }
	fails := func() error { return errors.New("out of order") }
	for name, r := range map[string]rival.Rival{"lock": fake(fails, fine), "unlock": fake(fine, fails)} {
		for workload, run := range map[string]func(b *load.Bench) error{
			"pair": func(b *load.Bench) error { return b.Pairs(t.Context(), 1) },
			"hot":  func(b *load.Bench) error { return b.HotLock(t.Context(), load.Hot{Clients: 1, Each: 1}) },
			"rw": func(b *load.Bench) error {
				return b.ReadMostly(t.Context(), load.RW{Clients: 1, Each: 1, WriteEvery: 2})
			},
			"link": func(b *load.Bench) error { return b.HandOff(t.Context(), time.Millisecond) },
		} {
			t.Run(workload+" "+name, func(t *testing.T) {
				b, samples := small(t)
				b.Rivals = []rival.Rival{r}
				if err := run(b); err != nil {
					t.Fatal(err)
				}
				for _, s := range *samples {
					if s.Rival != r.Name {
						continue
					}
					if s.Errors == 0 || !strings.Contains(s.Err, "out of order") {
						t.Errorf("%d errors, the first: %q", s.Errors, s.Err)
					}
					if name == "lock" && !s.Few {
						t.Error("what never got a lock is not marked")
					}
				}
			})
		}
	}
}

func TestALockThatDoesNotExcludeIsReported(t *testing.T) {
	fine := func() error { return nil }
	b, samples := small(t)
	b.Rivals = []rival.Rival{fake(fine, fine)}
	if err := b.HotLock(t.Context(), load.Hot{Clients: 2, Each: 2, Section: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if s := (*samples)[0]; s.Errors == 0 || !strings.Contains(s.Err, "while another held") {
		t.Errorf("%d errors, the first: %q", s.Errors, s.Err)
	}
}
