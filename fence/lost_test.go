package fence_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/fence"
	"github.com/relock-go/relock/internal/redistest"
)

// push leaves an element each time that it runs.
var push = fence.NewScript("return redis.call('RPUSH', KEYS[1], ARGV[1])")

// loseReply gives the first command of this name the verdict.
func loseReply(link *redistest.Link, name string, verdict redistest.Verdict) {
	lost := false
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if lost || !cmd.Is(name) {
			return redistest.Pass
		}
		lost = true
		return verdict
	})
}

// wantRunOnce runs push where the reply is lost. Fails when the source runs twice, or when Run does not say that it
// knows nothing.
func wantRunOnce(t *testing.T, rdb redis.Scripter, eye redis.Cmdable, key string) {
	t.Helper()
	reply, err := push.Run(t.Context(), rdb, key+":fence", 7, []string{key}, "written")
	if err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("%v, %v; want the error of go-redis", reply, err)
	}
	if n := eye.LLen(t.Context(), key).Val(); n != 1 {
		t.Errorf("the source ran %d times, want once", n)
	}
}

// The first Run sends EVALSHA and EVAL, as Redis does not know the script; the second sends EVALSHA.
func TestASourceWhoseReplyIsLostDoesNotRunAgain(t *testing.T) {
	for _, verdict := range []redistest.Verdict{redistest.CutReply, redistest.SwallowReply} {
		synctest.Test(t, func(t *testing.T) {
			s := redistest.Start(t)
			link := redistest.NewLink(t, s.Dial)
			rdb, eye := s.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }), s.Client(t)
			loseReply(link, "eval", verdict)
			wantRunOnce(t, rdb, eye, "{a}")
			loseReply(link, "evalsha", verdict)
			wantRunOnce(t, rdb, eye, "{b}")
		})
	}
}

// A Cluster client has a loop of its own that sends a command again.
func TestASourceWhoseReplyIsLostDoesNotRunAgainInACluster(t *testing.T) {
	c := redistest.StartSteadyCluster(t)
	link := redistest.NewLink(t, (&net.Dialer{}).DialContext)
	rdb, eye := c.Client(t, func(o *redis.ClusterOptions) { o.Dialer = link.Dial }), c.Client(t)
	loseReply(link, "eval", redistest.CutReply)
	wantRunOnce(t, rdb, eye, "{a}")
	if _, err := push.Run(t.Context(), rdb, "{a}:fence", 7, []string{"{a}"}, "again"); err != nil {
		t.Errorf("after the loss of a reply: %v", err)
	}
}

// Fails when an error of the source's own is taken for a refusal: the source has run.
func TestAnErrorOfTheSourceIsNoRefusal(t *testing.T) {
	rdb := redistest.Real(t).Client(t)
	own := fence.NewScript("redis.call('SET', KEYS[1], ARGV[1]) return redis.error_reply('STALE 8')")
	_, err := own.Run(t.Context(), rdb, "{v}:fence", 7, []string{"{v}"}, "written")
	if answer, is := errors.AsType[redis.Error](err); !is || errors.Is(err, fence.ErrStale) || answer.Error() != "STALE 8" {
		t.Errorf("%v, want the error of the source", err)
	}
}

// Fails when Run reports what a pipeline has only queued.
func TestAPipelineIsRefusedBeforeAnythingIsQueued(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no connection is needed")
	}})
	defer func() { _ = rdb.Close() }()
	for _, pipe := range []redis.Pipeliner{rdb.Pipeline(), rdb.TxPipeline(), struct{ redis.Pipeliner }{rdb.Pipeline()}} {
		reply, err := set.Run(t.Context(), pipe, "{v}:fence", 7, []string{"{v}"}, 1)
		if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "pass a client") {
			t.Errorf("%v, %v; want that a client is needed", reply, err)
		}
		if n := pipe.Len(); n != 0 {
			t.Errorf("%d commands are queued", n)
		}
	}
}

// Fails when what has only the methods of a Scripter cannot run a script.
func TestAScripterThatSendsNoOtherCommandsRunsAScript(t *testing.T) {
	rdb := redistest.Real(t).Client(t)
	only := struct{ redis.Scripter }{rdb}
	for range 2 {
		if _, err := set.Run(t.Context(), only, "{v}:fence", 7, []string{"{v}"}, "written"); err != nil {
			t.Error(err)
		}
	}
	if _, err := set.Run(t.Context(), only, "{v}:fence", 6, []string{"{v}"}, "late"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v, want ErrStale", err)
	}
	if got := rdb.Get(t.Context(), "{v}").Val(); got != "written" {
		t.Errorf("the value is %q", got)
	}
}
