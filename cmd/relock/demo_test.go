//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

func demo(t *testing.T, env ...string) (status int, out string) {
	t.Helper()
	return demoAt(t, nil, env...)
}

// demoAt plays the demonstration with these flags.
func demoAt(t *testing.T, flags []string, env ...string) (status int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env = append(os.Environ(), append(env, beRelock, noNap)...)
	status = run(t.Context(), append([]string{"demo"}, flags...), env, nil, &stdout, &stderr)
	if stderr.Len() > 0 {
		t.Errorf("the demo complains: %s", stderr.String())
	}
	return status, stdout.String()
}

// TestDemoShowsWhatItClaims runs without any Redis on the machine: PATH is empty. What it
// prints is what docs/demo.txt shows.
func TestDemoShowsWhatItClaims(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	status, out := demo(t, "PATH=", "NO_COLOR=")
	if status != 0 || strings.Count(out, "✓") != 20 || strings.Contains(out, "✗") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if strings.Contains(out, "\x1b") {
		t.Error("escape codes in an output that is no terminal")
	}
	if timeline := regexp.MustCompile(`(?m)^ +\d+\.\d\ds  second/\d+ +has the lock +token \d+$`); !timeline.MatchString(out) {
		t.Errorf("the timeline has no line like %v:\n%s", timeline, out)
	}
	if !t.Failed() {
		asRecorded(t, out)
	}
}

func TestDemoNoticesALostIncrement(t *testing.T) {
	was := afterCounting
	defer func() { afterCounting = was }()
	afterCounting = func(ctx context.Context, rdb redis.UniversalClient, counter string) { rdb.Decr(ctx, counter) }
	w, srv := newWorldOf(t)
	status, out := demoAt(t, []string{"-redis", w.url})
	if status != exitFailed || strings.Count(out, "✗") != 1 || !strings.Contains(out, "✗ no increment is lost") {
		t.Errorf("status %d:\n%s", status, out)
	}
	// This Redis is not the demo's own: fails when more is left there, or for longer, than the help says.
	if len(srv.Keys()) == 0 {
		t.Error("the demo has used another Redis")
	}
	for _, key := range srv.Keys() {
		if left := srv.TTL(key); left <= 0 || left > 15*time.Minute {
			t.Errorf("%s is there for another %v, want a quarter of an hour at most", key, left)
		}
	}
}

func TestInterruptedDemoFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, complaint bytes.Buffer
	if status := run(ctx, []string{"demo"}, append(os.Environ(), beRelock), nil, &out, &complaint); status == 0 {
		t.Errorf("status 0:\n%s", out.String())
	}
}

// What the scenes would have seen, had all gone well.

func at(ms int) time.Time { return time.UnixMilli(int64(1_000_000 + ms)) }

func count() counting {
	return counting{seen: []event{{N: 2, Token: 20}, {N: 1, Token: 10}, {N: 3, Token: 30}}, want: 3, final: 3}
}

func nest() nesting {
	return nesting{tokens: []int64{5, 5, 5}, counts: []int{1, 2, 3, 2, 1}, left: at(0), entered: at(1), token: 6}
}

func take() takeover {
	return takeover{before: 1, after: 2, asked: at(0), answered: at(2), lease: time.Second, entered: at(1100)}
}

func stop() pausing {
	return pausing{before: 1, after: 2, entered: at(0), woken: at(1), asked: event{Lost: true}, late: event{Token: 1}, stored: "second"}
}

func queue() queueing {
	return queueing{
		queued: []string{"B", "A"},
		visits: []visit{{"B", 1, at(0), at(1)}, {"A", 2, at(1), at(2)}},
	}
}

func share() shares {
	return shares{
		first: visit{"", 1, at(0), at(20)}, second: visit{"", 2, at(10), at(30)},
		writer: visit{"", 3, at(30), at(40)}, late: visit{"", 4, at(40), at(50)},
		lowered: 3, together: 2, joined: 2, looks: 1,
	}
}

var (
	scenesThatHold = map[string][]check{
		"counting":        count().checks(),
		"nesting":         nest().checks(),
		"takeover":        take().checks(),
		"pausing":         stop().checks(),
		"queueing":        queue().checks(),
		"sharing":         share().checks(),
		"late by a stall": spoil(take(), func(c *takeover) { c.entered, c.stalled = at(1253), time.Millisecond }).checks(),
	}

	// scenesThatDoNot are spoilt in one way each, with a part of the one claim that fails for it.
	scenesThatDoNot = map[string]spoilt{
		"overtaken":        {spoil(queue(), func(q *queueing) { q.queued = []string{"A", "B"} }).checks(), "order of the queue"},
		"beside another":   {spoil(queue(), func(q *queueing) { q.visits[1].in = at(0) }).checks(), "has left"},
		"one reader":       {spoil(share(), func(f *shares) { f.together = 1 }).checks(), "readers share"},
		"reader by reader": {spoil(share(), func(f *shares) { f.second.in = at(21) }).checks(), "readers share"},
		"early writer":     {spoil(share(), func(f *shares) { f.writer.in = at(29) }).checks(), "last reader leaves"},
		"passing reader":   {spoil(share(), func(f *shares) { f.late.in = at(39) }).checks(), "overtakes"},
		"mixed":            {spoil(share(), func(f *shares) { f.mixed = 1 }).checks(), "never a writer"},
		"never looked":     {spoil(share(), func(f *shares) { f.looks = 0 }).checks(), "never a writer"},
		"not joined":       {spoil(share(), func(f *shares) { f.joined = 1 }).checks(), "joins"},
		"another grant":    {spoil(share(), func(f *shares) { f.lowered = 4 }).checks(), "joins"},
		"late's token":     {spoil(share(), func(f *shares) { f.late.token = 3 }).checks(), "grow alike"},
		"no read token":    {spoil(share(), func(f *shares) { f.first.token = 0 }).checks(), "grow alike"},
		"counter":          {spoil(count(), func(c *counting) { c.final-- }).checks(), "no increment"},
		"equal tokens":     {spoil(count(), func(c *counting) { c.seen[0].Token = 10 }).checks(), "tokens grow"},
		"no token":         {spoil(count(), func(c *counting) { c.seen[1].Token = 0 }).checks(), "tokens grow"},
		"count":            {spoil(nest(), func(n *nesting) { n.counts[3] = 1 }).checks(), "Info counts"},
		"own token":        {spoil(nest(), func(n *nesting) { n.tokens[2] = 6 }).checks(), "share"},
		"too early":        {spoil(nest(), func(n *nesting) { n.entered = at(-1) }).checks(), "stays out"},
		"smaller":          {spoil(nest(), func(n *nesting) { n.token = 4 }).checks(), "larger"},
		"late":             {spoil(take(), func(c *takeover) { c.entered = at(1253) }).checks(), "ends the wait"},
		"before the lease": {spoil(take(), func(c *takeover) { c.entered = at(998) }).checks(), "before"},
		"same token":       {spoil(take(), func(c *takeover) { c.after = 1 }).checks(), "larger"},
		"waited for":       {spoil(stop(), func(p *pausing) { p.entered = at(2) }).checks(), "another process"},
		"same grant":       {spoil(stop(), func(p *pausing) { p.after = 1 }).checks(), "another process"},
		"believes":         {spoil(stop(), func(p *pausing) { p.asked.Lost = false }).checks(), "first check"},
		"accepted":         {spoil(stop(), func(p *pausing) { p.late.OK = true }).checks(), "refused"},
		"overwritten":      {spoil(stop(), func(p *pausing) { p.stored = "late" }).checks(), "refused"},
	}
)

// spoilt is what a scene has seen, and a part of the claim that must fail.
type spoilt struct {
	checks []check
	failed string
}

func TestNoCheckFailsWhereAllGoesWell(t *testing.T) {
	for name, checks := range scenesThatHold {
		if got := failing(checks); len(got) > 0 {
			t.Errorf("%s: failed: %q", name, got)
		}
	}
}

// TestEachCheckCanFail spoils what a scene has seen in one way, and expects
// one check to fail for it.
func TestEachCheckCanFail(t *testing.T) {
	for name, c := range scenesThatDoNot {
		if got := failing(c.checks); len(got) != 1 || !strings.Contains(got[0], c.failed) {
			t.Errorf("%s: failed: %q, want %q", name, got, c.failed)
		}
	}
}

// failing are the claims that do not hold.
func failing(checks []check) (claims []string) {
	for _, got := range checks {
		if !got.ok {
			claims = append(claims, got.claim)
		}
	}
	return claims
}

func TestWriterInCompanyIsNoticed(t *testing.T) {
	reader, writer := relock.Holder{Read: true}, relock.Holder{}
	for _, c := range []struct {
		holders []relock.Holder
		want    bool
	}{
		{nil, false},
		{[]relock.Holder{writer}, false},
		{[]relock.Holder{reader, reader}, false},
		{[]relock.Holder{reader, writer}, true},
		{[]relock.Holder{writer, writer}, true},
	} {
		if got := writerInCompany(c.holders); got != c.want {
			t.Errorf("%+v: %v, want %v", c.holders, got, c.want)
		}
	}
}

func spoil[T any](facts T, how func(*T)) T {
	how(&facts)
	return facts
}

func TestLostIncrementFailsBothCountingChecks(t *testing.T) {
	// Two workers have written the same value.
	c := counting{seen: []event{{N: 1, Token: 10}, {N: 1, Token: 20}}, want: 2, final: 1}
	for _, got := range c.checks() {
		if got.ok {
			t.Errorf("%s: seen to hold", got.claim)
		}
	}
}

func TestColorIsForTerminalsThatWantIt(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for env, want := range map[string]bool{"": true, "NO_COLOR=": true, "NO_COLOR=1": false, "TERM=dumb": false, "TERM=xterm": true} {
		if got := colored(null, []string{env}); got != want {
			t.Errorf("colored with %q: %v, want %v", env, got, want)
		}
	}
	if colored(&bytes.Buffer{}, nil) {
		t.Error("colored without a terminal")
	}
}
