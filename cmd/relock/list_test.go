//go:build unix

package main

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

func TestLsShowsTheLocksOfAPrefix(t *testing.T) {
	w := newWorld(t)
	if status, out, complaint := w.relock("ls"); status != 0 || out != "" || complaint != "" {
		t.Errorf("of no locks: status %d, %q, %q", status, out, complaint)
	}
	for _, name := range []string{"a/2", "a/1", "a*", "b c"} {
		h := w.hold(name)
		defer func() { _ = h.Release() }()
	}
	waits := w.start("run", "a/2", "true")
	w.waitForQueue("a/2", 1)
	status, out, _ := w.relock("ls", "a/")
	lines := strings.Split(out, "\n")
	line := regexp.MustCompile(`^a/2 +plain +\S+:\d+ +\d+s +\d+s +1$`)
	if status != 0 || len(lines) != 4 || !strings.HasPrefix(lines[0], "NAME") || !strings.HasPrefix(lines[1], "a/1 ") || !line.MatchString(lines[2]) {
		t.Errorf("ls a/: status %d, %q", status, out)
	}
	if _, out, _ = w.relock("ls", "a*", "-json"); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, `{"name":"a*","kind":"plain","holders":[{`) {
		t.Errorf("ls 'a*': %q, want the one that is called so", out)
	}
	if _, out, _ = w.relock("ls", "b"); !strings.Contains(out, `"b c"`) {
		t.Errorf("ls b: %q, want a name of two words in quotes", out)
	}
	waits.signal(15)
	waits.wantStatus(exitSignal + 15)
}

// Nobody holds the lock, and one waits on a condition of it.
func TestLsAndInfoShowWaitersOnConditions(t *testing.T) {
	w := newWorld(t)
	l := w.locks.NewLock("x")
	if err := l.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() { waits <- l.NewCond("c").Wait(ctx) }()
	for w.info("x").CondWaiters == 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	if _, out, _ := w.relock("ls"); !regexp.MustCompile(`\nx +plain +nobody \(1 waiting on conditions\) +- +- +0\n$`).MatchString(out) {
		t.Errorf("ls: %q", out)
	}
	if _, out, _ := w.relock("info", "x"); out != "x is free\nkind: plain\n0 waiting\n1 waiting on conditions\n" {
		t.Errorf("info: %q", out)
	}
	if _, out, _ := w.relock("info", "x", "-json"); !strings.Contains(out, `"waiting":0,"cond_waiting":1,`) {
		t.Errorf("info -json: %q", out)
	}
	stop()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestTopShowsTheLongestQueueFirst(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b"} {
		h := w.hold(name)
		defer func() { _ = h.Release() }()
	}
	waits := w.start("run", "b", "true")
	w.waitForQueue("b", 1)
	status, out, complaint := w.relock("top", "-looks", "2", "-every", ".01")
	if status != 0 || complaint != "" || strings.Count(out, " 2 locks, 2 held, 1 waiting; ") != 2 || strings.Index(out, "\nb ") > strings.Index(out, "\na ") || strings.Contains(out, "\x1b") {
		t.Errorf("top: status %d, %q, %q", status, out, complaint)
	}
	if status, out, _ := w.relock("top", "-looks", "1", "-json"); status != 0 || !strings.Contains(out, `"locks":[{"name":"b",`) {
		t.Errorf("top -json: status %d, %q", status, out)
	}
	waits.signal(15)
	waits.wantStatus(exitSignal + 15)
}

func TestTopRestsNineteenTimesAsLongAsItLooks(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: 999 * time.Millisecond, 50 * time.Millisecond: 950 * time.Millisecond, time.Second: 19 * time.Second,
	} {
		if got := restAfter(took, time.Second); got != want {
			t.Errorf("after a look of %v it rests for %v, want %v", took, got, want)
		}
	}
}

func TestATicketIsShownAsOne(t *testing.T) {
	w := newWorld(t)
	ticket, err := w.hold("x").Detach(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, out, _ := w.relock("info", "x"); !strings.Contains(out, " by a ticket that nobody has resumed") {
		t.Errorf("info says %q", out)
	}
	if _, out, _ := w.relock("ls"); !strings.Contains(out, "  a ticket  ") {
		t.Errorf("ls says %q", out)
	}
	h, err := w.locks.Resume(t.Context(), ticket)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
}

func TestTheCommandShowsAStickyHolderAsOne(t *testing.T) {
	w := newWorld(t)
	lock := w.locks.NewLock("x", relock.Sticky(10*time.Second))
	for range 2 { // the first grant of a name is not kept
		if err := lock.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
	if _, out, _ := w.relock("info", "x"); !strings.Contains(out, " (sticky: may be idle)") {
		t.Errorf("info says %q", out)
	}
	if _, out, _ := w.relock("ls"); !strings.Contains(out, " (sticky)  ") {
		t.Errorf("ls says %q", out)
	}
}

// One key is none of relock's, and one lock is held. Fails when top or serve end for that.
func TestTopAndServeShowTheRestBesideAKeyThatCannotBeRead(t *testing.T) {
	w, srv := newWorldOf(t)
	h := w.hold("b")
	defer func() { _ = h.Release() }()
	if err := srv.Set("relock:h:{a}", "theirs"); err != nil {
		t.Fatal(err)
	}
	status, out, complaint := w.relock("top", "-looks", "1")
	if status != 0 || !strings.Contains(out, "b ") || !strings.Contains(complaint, `"a"`) {
		t.Errorf("top: status %d, %q, complaint %q", status, out, complaint)
	}
	served := w.start("serve", "-listen", "127.0.0.1:0")
	if status, page := w.get(served.address(), ""); status != 200 || !strings.Contains(page, "<bdi>b</bdi>") {
		t.Errorf("serve: status %d, %s", status, page)
	}
	served.signal(15)
	served.wantStatus(0)
}

// Fails when what ls could read is not shown because it could not read all.
func TestLsShowsTheRestBesideAKeyThatCannotBeRead(t *testing.T) {
	w, srv := newWorldOf(t)
	h := w.hold("b")
	defer func() { _ = h.Release() }()
	if err := srv.Set("relock:h:{a}", "theirs"); err != nil {
		t.Fatal(err)
	}
	for flag, shows := range map[string]string{"-prefix=relock": "\nb ", "-json": `{"name":"b",`} {
		status, out, complaint := w.relock("ls", flag)
		if status != exitUnavailable || !strings.Contains(out, shows) || !strings.Contains(complaint, `a`) {
			t.Errorf("%s: status %d, %q, complaint %q, want b and the error", flag, status, out, complaint)
		}
	}
}

// A real Redis tells of its keys in no order.
func TestLsShowsLocksByTheirNames(t *testing.T) {
	srv := redistest.Real(t)
	c, err := relock.New(srv.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := &world{T: t, url: "redis://" + srv.Addr(), locks: c}
	for name := range strings.SplitSeq("hdbgiaefcj", "") {
		h := w.hold(name)
		defer func() { _ = h.Release() }()
	}
	status, out, complaint := w.relock("ls")
	names := ""
	for line := range strings.Lines(out) {
		names += line[:1]
	}
	if status != 0 || names != "Nabcdefghij" { // the first is NAME
		t.Errorf("status %d, %q, complaint %q, want them by their names", status, out, complaint)
	}
}

// What a label has in it moves no cursor. Fails when ls or top prints it as it is.
func TestLabelsAndOwnersAreEscapedInAList(t *testing.T) {
	for _, h := range []relock.Holder{{Label: "a\x1b[2Jb"}, {Owner: "a\x1b[2Jb"}} {
		got := holding(relock.Info{Holders: []relock.Holder{h}})
		if strings.Contains(got, "\x1b") || !strings.Contains(got, `"a\x1b[2Jb"`) {
			t.Errorf("%+v is shown as %q", h, got)
		}
	}
}

// The only key is none of relock's. Fails when top ends for that: beside a lock that can be read it goes on.
func TestTopGoesOnThoughNothingButAKeyThatCannotBeReadIsThere(t *testing.T) {
	w, srv := newWorldOf(t)
	if err := srv.Set("relock:h:{a}", "theirs"); err != nil {
		t.Fatal(err)
	}
	status, out, complaint := w.relock("top", "-looks", "1")
	if status != 0 || !strings.Contains(out, "0 locks") || !strings.Contains(complaint, `"a"`) {
		t.Errorf("status %d, %q, complaint %q", status, out, complaint)
	}
}

// Go calls these printable, and nobody sees them.
func TestNamesWithWhatNobodySeesAreEscaped(t *testing.T) {
	for _, r := range "\ufe0f\u034f\u115f\u3164\uffa0\u180b\u2800\U000e0100" {
		if got := shown("a" + string(r)); strings.ContainsRune(got, r) || !strings.HasPrefix(got, `"a\`) {
			t.Errorf("%U is shown as it is: %s", r, got)
		}
	}
	if one, other := shown("a\u200b"), shown(`"a\u200b"`); one == other {
		t.Errorf("two names are shown as %s", one)
	}
}
