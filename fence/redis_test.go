package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/fence"
	"github.com/relock-go/relock/internal/redistest"
)

var set = fence.NewScript("return redis.call('SET', KEYS[1], ARGV[1])")

func TestRedisRefusesATokenThatIsOlder(t *testing.T) {
	rdb := redistest.Real(t).Client(t)
	for _, row := range []struct {
		token int64
		stale bool
	}{
		{9, false}, {9, false}, {10, false}, {9, true}, {99, false}, {100, false}, {99, true}, // not by their texts alone
		{1753999999999999999, false}, {1754000000000000001, false}, {1754000000000000000, true}, // one apart: not as Lua's numbers
		{math.MaxInt64, false}, {math.MaxInt64 - 1, true},
	} {
		_, err := set.Run(t.Context(), rdb, "{job}:fence", row.token, []string{"{job}"}, row.token)
		if errors.Is(err, fence.ErrStale) != row.stale || (err != nil) != row.stale {
			t.Errorf("token %d: %v, want it refused: %v", row.token, err, row.stale)
		}
	}
	if got := rdb.Get(t.Context(), "{job}").Val(); got != strconv.FormatInt(math.MaxInt64, 10) {
		t.Errorf("the value is %s", got)
	}
	_, err := set.Run(t.Context(), rdb, "{job}:fence", 7, []string{"{job}"}, 7)
	for _, says := range []string{"{job}:fence", "token 7 ", "token 9223372036854775807 "} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q in it", err, says)
		}
	}
}

func TestRedisRefusesWhatIsNoToken(t *testing.T) {
	rdb := redistest.Real(t).Client(t)
	for _, token := range []int64{0, -1, math.MinInt64} {
		if _, err := set.Run(t.Context(), rdb, "f", token, []string{"v"}, 1); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d: %v", token, err)
		}
	}
	for _, other := range []string{"a value of another", "0", "-8", "07", "7 apples", "12:30", "8.5", ""} {
		rdb.Set(t.Context(), "f", other, 0)
		if _, err := set.Run(t.Context(), rdb, "f", 7, []string{"v"}, 1); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("over %q: %v, want that it is no token", other, err)
		}
		if got := rdb.Get(t.Context(), "f").Val(); got != other {
			t.Errorf("%q was overwritten with %q", other, got)
		}
	}
	if n := rdb.Exists(t.Context(), "v").Val(); n != 0 {
		t.Error("a value was written without a token")
	}
}

func TestAScriptHasItsOwnKeysArgumentsAndReply(t *testing.T) {
	rdb := redistest.Real(t).Client(t)
	echo := fence.NewScript("return { #KEYS, KEYS[1], KEYS[2], #ARGV, ARGV[1] }")
	got, err := echo.Run(t.Context(), rdb, "{a}f", 5, []string{"{a}1", "{a}2"}, "x")
	if want := "[2 {a}1 {a}2 1 x]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	if _, err := fence.NewScript("return nil").Run(t.Context(), rdb, "f", 5, nil); !errors.Is(err, redis.Nil) {
		t.Errorf("%v, want redis.Nil", err)
	}
	if _, err := fence.NewScript("return redis.call('NOSUCH')").Run(t.Context(), rdb, "f", 5, nil); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("%v, want the error of the script", err)
	}
	if _, err := fence.NewScript("").Run(t.Context(), rdb, "f", 4, nil); !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v, want that a script without a source compares too", err)
	}
}

// Eight writers, whose writes come late and in any order. Unguarded, the value goes back.
func TestRedisNeverGoesBackToAnOlderToken(t *testing.T) {
	rdb := redistest.Real(t).Client(t)
	late := func(write func(ctx context.Context, token int64) error) (wentBack bool) {
		rdb.Del(t.Context(), "{v}f", "{v}", "{v}log")
		tokens := rand.Perm(400)
		var wg sync.WaitGroup
		for writer := range 8 {
			wg.Go(func() {
				for i := writer; i < len(tokens); i += 8 {
					if err := write(t.Context(), int64(tokens[i])+1); err != nil && !errors.Is(err, fence.ErrStale) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		largest := 0
		for _, text := range rdb.LRange(t.Context(), "{v}log", 0, -1).Val() {
			n, _ := strconv.Atoi(text)
			wentBack = wentBack || n < largest
			largest = max(largest, n)
		}
		return wentBack
	}
	append1 := fence.NewScript("return redis.call('RPUSH', KEYS[1], ARGV[1])")
	if late(func(ctx context.Context, token int64) error {
		_, err := append1.Run(ctx, rdb, "{v}f", token, []string{"{v}log"}, token)
		return err
	}) {
		t.Error("an older token was written after a newer one")
	}
	if !late(func(ctx context.Context, token int64) error { return rdb.RPush(ctx, "{v}log", token).Err() }) {
		t.Error("unguarded, the value does not go back: the test shows nothing")
	}
}

// Fails when the error of the source is lost in Run's, or when what it wrote before, or the token, does not stay.
func TestAScriptThatFailsLeavesWhatItWroteAndItsToken(t *testing.T) {
	rdb := redistest.Real(t).Client(t)
	half := fence.NewScript("redis.call('SET', KEYS[1], ARGV[1]) return redis.error_reply('HALF done')")
	_, err := half.Run(t.Context(), rdb, "{v}f", 7, []string{"{v}"}, "written")
	if answer, is := errors.AsType[redis.Error](err); !is || answer.Error() != "HALF done" {
		t.Errorf("%v, want the error of the source in it", err)
	}
	if got := rdb.Get(t.Context(), "{v}").Val(); got != "written" {
		t.Errorf("the value is %q, want what the source wrote", got)
	}
	if _, err := set.Run(t.Context(), rdb, "{v}f", 6, []string{"{v}"}, "older"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v, want the token to stay", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := set.Run(ctx, rdb, "{v}f", 8, []string{"{v}"}, "late"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that its context has ended", err)
	}
}

// Fails when a script uses another key than its fence and its keys, or does not name one of them to the Cluster.
func TestAScriptRunsInAClusterIfItsKeysHaveOneHashTag(t *testing.T) {
	rdb := redistest.StartSteadyCluster(t).Client(t)
	alone := fence.NewScript("return 1")
	for i := range 8 { // on all its servers
		name := fmt.Sprint("job ", i)
		if _, err := alone.Run(t.Context(), rdb, name, 7, nil); err != nil {
			t.Errorf("without keys: %v", err)
		}
		if _, err := alone.Run(t.Context(), rdb, name, 6, nil); !errors.Is(err, fence.ErrStale) {
			t.Errorf("without keys, for an older token: %v, want ErrStale", err)
		}
		tagged, value := "{"+name+"}:fence", "{"+name+"}"
		if _, err := set.Run(t.Context(), rdb, tagged, 7, []string{value}, "written"); err != nil {
			t.Errorf("with one hash tag: %v", err)
		}
		if got := rdb.Get(t.Context(), value).Val(); got != "written" {
			t.Errorf("the value is %q", got)
		}
	}
	if _, err := set.Run(t.Context(), rdb, "{job}:fence", 7, []string{"{other}"}, 1); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("with two hash tags: %v, want an error", err)
	}
}
