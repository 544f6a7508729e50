package real_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// Several locks at once: how many names there are, how often a process has had some of
// them, and by name the largest token that has been used.
const (
	multiNames = 12
	multiHad   = "multi had"
	multiUsed  = "multi used"
	multiTTL   = 500 * time.Millisecond
	// Nobody waits for so long whom the others leave a chance.
	multiPatience = 15 * time.Second
)

// useToken has a resource remember a token. KEYS: the tokens. ARGV: name, token. RETURNS 0
// where it has seen a larger one.
var useToken = redis.NewScript(`
if ARGV[2] < (redis.call('HGET', KEYS[1], ARGV[1]) or '') then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1`)

// subsets takes two to four of the locks together, in any order that it names them, until
// there has been enough of it.
func (a *agent) subsets(o order) response {
	ctx := context.Background()
	for a.rdb.Exists(ctx, enoughKey).Val() == 0 {
		var locks []*relock.Lock
		for _, i := range rand.Perm(multiNames)[:2+rand.IntN(3)] {
			locks = append(locks, a.client.NewLock(multiName(i), relock.TTL(o.TTL)))
		}
		h, err := relock.NewMulti(locks...).TryAcquire(ctx, multiPatience)
		if err != nil {
			return failure(fmt.Errorf("in a circle, it seems: %w", err))
		}
		for range 2 {
			if err := a.useAll(ctx, h); err != nil {
				return failure(err)
			}
			<-time.After(time.Duration(rand.IntN(3)) * time.Millisecond)
		}
		a.rdb.Incr(ctx, multiHad)
		_ = h.Release() // a lost one is an end too
	}
	return response{}
}

// useAll shows the tokens to the resource, which has seen none that is larger while they
// are trusted.
func (a *agent) useAll(ctx context.Context, h *relock.MultiHold) error {
	for name, token := range h.Tokens() {
		fits, err := useToken.Run(ctx, a.rdb, []string{multiUsed}, name, token).Int()
		if err == nil && fits == 0 && h.Err() == nil {
			err = fmt.Errorf("the token %d of %q was used after a larger one, and its hold is trusted", token, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func multiName(i int) string { return fmt.Sprintf("multi%d", i) }

// TestProcessesThatTakeSeveralLocksNeverWaitInACircle kills processes at random while all
// take random subsets of the same names, and sees in the end that no lock is left over.
func TestProcessesThatTakeSeveralLocksNeverWaitInACircle(t *testing.T) {
	srv := redistest.Real(t)
	rdb, rng := srv.Client(t), rand.New(rand.NewPCG(3, 4))
	children, reports := make([]*child, 8), make([]<-chan response, 8)
	run := func(i int) {
		children[i] = spawn(t, srv.Addr())
		reports[i] = children[i].begin(order{Do: "subsets", TTL: multiTTL})
	}
	for i := range children {
		run(i)
	}
	killed := 0
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for over := time.Now().Add(time.Duration(rig.Rounds(4, 30)) * time.Second); time.Now().Before(over); <-tick.C {
		if rng.IntN(10) == 0 {
			i := rng.IntN(len(children))
			children[i].kill()
			killed++
			run(i)
		}
	}
	had := wantProgress(t, rdb, tick.C) // nobody breaks a circle by dying any more
	rig.Must(t, rdb.Set(t.Context(), enoughKey, 1, 0).Err())
	for i, c := range children {
		if r := c.hear(reports[i]); r.Err != "" {
			t.Error(r.Err)
		}
	}
	if killed < 3 {
		t.Errorf("%d processes killed: that shows nothing", killed)
	}
	t.Logf("some of %d locks were had %d times, %d processes killed", multiNames, had, killed)
	look := rig.Open(t, rdb)
	for i := range multiNames {
		if got, err := look.NewLock(multiName(i)).TryLock(t.Context(), 3*multiTTL); !got || err != nil {
			t.Errorf("TryLock = %v, %v of %s after all leases, want true, nil", got, err, multiName(i))
		}
	}
}

// wantProgress fails the test unless locks are had thirty times more, and returns how
// often they were had in all.
func wantProgress(t *testing.T, rdb *redis.Client, tick <-chan time.Time) (had int) {
	t.Helper()
	before, _ := rdb.Get(t.Context(), multiHad).Int()
	for limit := time.Now().Add(multiPatience); had < before+30; <-tick {
		if had, _ = rdb.Get(t.Context(), multiHad).Int(); time.Now().After(limit) {
			t.Fatalf("some locks were had %d times in %v after the last process died: they wait in a circle", had-before, multiPatience)
		}
	}
	return had
}
