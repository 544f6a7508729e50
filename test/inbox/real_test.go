package inbox_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/redistest"
)

const patience = 20 * time.Second

// open subscribes over rdb and returns what Deliver and Linked report.
func open(t *testing.T, rdb redis.UniversalClient) (b *inbox.Inbox, events chan string) {
	t.Helper()
	events = make(chan string, 100)
	b = inbox.New(inbox.Config{
		Subscribe: rdb.Subscribe,
		Channel:   channel,
		Refused:   refused,
		Failed:    func(error) {},
		Deliver:   func(payload string) { events <- payload },
		Linked:    func(bool) { events <- "linked" },
	})
	t.Cleanup(b.Close)
	return b, events
}

func next(t *testing.T, events <-chan string, want string) {
	t.Helper()
	select {
	case got := <-events:
		if got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("no event %q within %v", want, patience)
	}
}

func ready(t *testing.T, b *inbox.Inbox) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return b.Ready(ctx)
}

func TestRealServerRestartLinksAgain(t *testing.T) {
	srv := redistest.Real(t)
	rdb := srv.Client(t)
	b, events := open(t, rdb)
	if err := ready(t, b); err != nil {
		t.Fatal(err)
	}
	next(t, events, "linked")
	srv.Restart()
	next(t, events, "linked")
	rdb.Publish(t.Context(), channel, "m1")
	next(t, events, "m1")
}

func TestRealServerRefuses(t *testing.T) {
	srv := redistest.Real(t)
	for _, rule := range [][]any{
		{"acl", "setuser", "guest", "on", ">guest", "+@all", "~*", "resetchannels", "&other:*"},
		{"acl", "setuser", "default", "resetpass", ">secret"},
	} {
		if err := srv.Client(t).Do(t.Context(), rule...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct{ user, password, text string }{
		"no password":    {text: "NOAUTH"},
		"wrong password": {password: "guess", text: "WRONGPASS"},
		"no channel":     {user: "guest", password: "guest", text: "NOPERM"},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := srv.Client(t, func(o *redis.Options) { o.Username, o.Password = row.user, row.password })
			b, _ := open(t, rdb)
			begin := time.Now()
			wantText(t, ready(t, b), row.text)
			if time.Since(begin) >= patience {
				t.Error("waited for what waiting does not mend")
			}
		})
	}
}

func TestClosedClusterClientIsTerminal(t *testing.T) {
	srv := redistest.Real(t, "--cluster-enabled", "yes")
	single := srv.Client(t)
	if err := single.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{srv.Addr()}})
	defer func() { _ = rdb.Close() }()
	b, events := open(t, rdb)
	if err := ready(t, b); err != nil {
		t.Fatal(err)
	}
	next(t, events, "linked")
	single.Publish(t.Context(), channel, "m1")
	next(t, events, "m1")

	_ = rdb.Close()
	for end := time.Now().Add(patience); b.Up() && time.Now().Before(end); {
		runtime.Gosched()
	}
	wantText(t, ready(t, b), redis.ErrClosed.Error())
}
