package redistest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

// wantAnswer fails unless a command is answered with that: the text of an error, or of a reply.
func wantAnswer(t *testing.T, rdb *redis.Client, want string, args ...any) {
	t.Helper()
	reply, err := rdb.Do(t.Context(), args...).Result()
	got := fmt.Sprint(reply)
	if err != nil {
		got = err.Error()
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("%v was answered %q, want %q", args, got, want)
	}
}

func TestHostedRefusesInScriptsWhatItRefusesToClients(t *testing.T) {
	rdb := redistest.Host(t, redistest.Hosting{Refuses: []string{"config", "script|load", "time"}}).Client(t)
	wantAnswer(t, rdb, "ERR unknown command", "CONFIG", "GET", "save")
	wantAnswer(t, rdb, "ERR unknown command", "SCRIPT", "LOAD", "return 1")
	wantAnswer(t, rdb, "[0]", "SCRIPT", "EXISTS", "none")
	wantAnswer(t, rdb, "ERR unknown command", "TIME")
	for _, way := range []string{"call", "pcall"} {
		wantAnswer(t, rdb, "ERR unknown command", "EVAL", "return redis."+way+"('time')", "0")
		wantAnswer(t, rdb, "OK", "EVAL", "return redis."+way+"('SET', KEYS[1], 'v')", "1", "k")
	}
}

func TestHostedFindsByItsSHAWhatWasSentInFull(t *testing.T) {
	srv := redistest.Host(t, redistest.Hosting{SlotPublish: true})
	rdb, s := srv.Client(t), redis.NewScript("return KEYS[1]")
	wantAnswer(t, rdb, "NOSCRIPT", "EVALSHA", s.Hash(), "1", "k")
	for range 2 {
		if got, err := s.Run(t.Context(), rdb, []string{"k"}).Text(); got != "k" || err != nil {
			t.Errorf("the script returns %q, %v", got, err)
		}
	}
	wantAnswer(t, rdb, "k", "EVALSHA", s.Hash(), "1", "k")
}

// TestHostedPublishesInTheSlotOnly has names whose slots a server of a Cluster counts too.
func TestHostedPublishesInTheSlotOnly(t *testing.T) {
	srv := redistest.HostCluster(t, redistest.Hosting{SlotPublish: true})
	rdb := srv.Client(t)
	for _, key := range []string{"a", "{a}", "x{a}y", "{b}", "job", "relock:h:{job}", "é", "x{}y"} {
		for _, channel := range []string{"a", "inbox:{a}me", "inbox:me", "{b}", "{job}", "{é}x", "x{}y"} {
			slots := [2]int64{rdb.ClusterKeySlot(t.Context(), key).Val(), rdb.ClusterKeySlot(t.Context(), channel).Val()}
			want := "0"
			if slots[0] != slots[1] {
				want = "ERR Script attempted to access keys that do not hash to the same slot"
			}
			wantAnswer(t, rdb, want, "EVAL", "return redis.call('PUBLISH', ARGV[1], 'm')", "1", key, channel)
			wantAnswer(t, rdb, want, "EVAL", "return redis.pcall('SPUBLISH', ARGV[1], 'm')", "1", key, channel)
		}
	}
}

func TestHostedCountsNobody(t *testing.T) {
	srv := redistest.Host(t, redistest.Hosting{Uncounted: true})
	rdb := srv.Client(t)
	sub := rdb.Subscribe(t.Context(), "c")
	defer func() { _ = sub.Close() }()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, rdb, "[c 0]", "PUBSUB", "NUMSUB", "c")
	wantAnswer(t, rdb, "0", "EVAL", "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]", "0", "c")
	wantAnswer(t, srv.RealServer.Client(t), "1", "EVAL", "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]", "0", "c")
}

func TestHostedKeepsRepliesInOrder(t *testing.T) {
	rdb := redistest.Host(t, redistest.Hosting{Refuses: []string{"time"}, OneDatabase: true, KeyNeeded: true}).Client(t)
	p := rdb.Pipeline()
	p.Do(t.Context(), "ECHO", "first")
	p.Do(t.Context(), "TIME")
	p.Do(t.Context(), "SELECT", "1")
	p.Do(t.Context(), "EVAL", "return 1", "0")
	p.Do(t.Context(), "ECHO", "last")
	cmds, _ := p.Exec(t.Context())
	for i, want := range []string{"first", "unknown command", "SELECT is not allowed", "without any input keys", "last"} {
		if got := fmt.Sprint(cmds[i]); !strings.Contains(got, want) {
			t.Errorf("reply %d is %q, want %q", i, got, want)
		}
	}
}
