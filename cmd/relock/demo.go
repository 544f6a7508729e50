//go:build unix

package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

const (
	demoAbout = `Without -redis, the demo runs its own Redis in memory. The exit status is 0 only if
every check passed.
`
	// sceneLimit ends a scene in which something expected does not happen.
	sceneLimit = 12 * time.Second
	// demoTTL is short so that nobody waits long for a dead holder's lease.
	demoTTL  = 1500 * time.Millisecond
	demoKeep = time.Minute
)

var errTooLong = fmt.Errorf("the scene took longer than %v", sceneLimit)

// afterCounting runs when the counter's workers have ended. A test corrupts the counter here, and checks that
// the demo notices.
var afterCounting = func(context.Context, redis.UniversalClient, string) {}

// A scene plays one thing that can happen to a lock, and reports what it has seen.
type scene struct {
	title string
	play  func(*stage) []check
}

var scenes = []scene{
	{"Contention: four processes, one counter, no atomic increment", contention},
	{"Reentrancy: one workflow locks three levels deep, another process stays out", reentrancy},
	{"Crash: the holder is killed, the next process takes over when the lease ends", crash},
	{"Pause: the holder is stopped past its lease, and wakes up unaware", pause},
	{"Fair: five processes queue, and get the lock in exactly that order", fairness},
	{"Read/write: readers share, none overtakes a waiting writer, and the writer downgrades to a reader", sharing},
}

// A check is one claim, and whether it was seen to hold.
type check struct {
	claim string
	ok    bool
	saw   string
}

func (t *tool) demo(fs *flags) action {
	var at string
	fs.StringVar(&at, "redis", "", "URL: use this Redis; the demo's data there expires after a quarter of an hour")
	return t.takesNothing("demo", func(ctx context.Context) int { return t.demonstrate(ctx, at) })
}

// demonstrate plays the demonstration on the Redis at that URL, or on one that it starts itself.
func (t *tool) demonstrate(ctx context.Context, at string) (status int) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	kind := "Redis"
	if at == "" {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true) // otherwise the lease of a dead holder would never end
		if err := m.Start(); err != nil {
			return t.fail(err)
		}
		defer m.Close()
		kind = "an in-memory Redis"
		at = "redis://" + m.Addr()
	}
	d := server{url: at, prefix: "relock-demo-" + uuid.NewString()}
	l, err := d.connect(ctx, relock.TokenKeep(demoKeep))
	if err != nil {
		return t.fail(err)
	}
	defer l.close()
	return t.perform(ctx, d, l, kind+" at "+l.addr)
}

// perform plays all scenes and sums up the checks.
func (t *tool) perform(ctx context.Context, at server, l *link, where string) int {
	p := &printer{say: t.say, color: colored(t.out, t.env), began: time.Now()}
	p.title(fmt.Sprintf("relock demo: real processes, leases of %v, %s", demoTTL, where))
	var all []check
	for i, sc := range scenes {
		p.title(fmt.Sprintf("%d. %s", i+1, sc.title))
		all = append(all, play(sc, newStage(ctx, t, at, l, p, fmt.Sprintf("demo-%d", i+1)))...)
	}
	failed := 0
	p.title("What was checked")
	for _, c := range all {
		p.check(c)
		if !c.ok {
			failed++
		}
	}
	if failed > 0 {
		p.title(fmt.Sprintf("%d of %d checks failed.", failed, len(all)))
		return exitFailed
	}
	p.title(fmt.Sprintf("All %d checks passed, in %.0f s.", len(all), time.Since(p.began).Seconds()))
	return 0
}

// play plays one scene with its own workers, which have all ended when it returns. A scene that was
// interrupted proves nothing.
func play(sc scene, s *stage) []check {
	defer s.close()
	checks := sc.play(s)
	if s.err != nil {
		return []check{{claim: sc.title, saw: s.err.Error()}}
	}
	return checks
}
