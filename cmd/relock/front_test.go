//go:build unix

package main

import (
	"net"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// What is typed first, before anything has been read.
func TestHelpAndVersionAreThereInEveryForm(t *testing.T) {
	w := newWorld(t)
	run, _ := verbOf("run")
	for _, row := range []struct {
		args string
		says string
	}{
		{"-h", usage()},
		{"--help", usage()},
		{"-help", usage()},
		{"help", usage()},
		{"-q --help", usage()},
		{"help run", run.help(&tool{})},
		{"run --help", run.help(&tool{})},
		{"run -h", run.help(&tool{})},
		{"help -- run", run.help(&tool{})},
		{"-version", version() + "\n"},
		{"--version", version() + "\n"},
		{"version", version() + "\n"},
	} {
		if status, out, complaint := w.relock(strings.Fields(row.args)...); status != 0 || out != row.says || complaint != "" {
			t.Errorf("%s: status %d, %q, complaint %q", row.args, status, out, complaint)
		}
	}
	for _, args := range []string{"help runn", "help run hold", "-json runn"} {
		status, _, complaint := w.relock(strings.Fields(args)...)
		if status != exitUsage || strings.HasPrefix(complaint, "{") != strings.HasPrefix(args, "-json") {
			t.Errorf("%s: status %d, complaint %q", args, status, complaint)
		}
	}
}

func TestANameMayBeginWithADash(t *testing.T) {
	w := newWorld(t)
	for _, args := range []string{
		"run -- -name echo ran", "run -- -name -- echo ran", "run -wait 1 -- -name -- echo ran", "run -- name echo ran",
		"run name -- echo ran", "run name echo ran", "run -- echo echo ran",
	} {
		if status, out, complaint := w.relock(strings.Fields(args)...); status != 0 || out != "ran\n" {
			t.Errorf("%s: status %d, %q, complaint %q", args, status, out, complaint)
		}
	}
	for _, args := range []string{"info -- -name", "hold -for .01 -- -name", "wait -- -name"} {
		if status, _, complaint := w.relock(strings.Fields(args)...); status != 0 {
			t.Errorf("%s: status %d, complaint %q", args, status, complaint)
		}
	}
}

// A value that a script has computed, and that is nothing.
func TestAValueOfNothingIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{
		{"run", "-every", "0", "x", "echo", "ran"},
		{"run", "-owner", "", "x", "echo", "ran"},
		{"top", "-looks", "0"},
		{"top", "-every", "0"},
		{"run", "-skipped", "3", "x", "echo", "ran"},
		{"run", "-every", "1h", "-skipped", "256", "x", "echo", "ran"},
	} {
		if status, out, _ := w.relock(args...); status != exitUsage || out != "" {
			t.Errorf("%q: status %d, %q", args, status, out)
		}
	}
}

func TestASkippedRunSaysWhy(t *testing.T) {
	w := newWorld(t)
	held := w.start("run", "-every", "8000h", "-label", "nightly", "x", "--", "sh", "-c", "echo started; exec sleep 60")
	held.want("started")
	skip := func(status int, says string, args ...string) {
		t.Helper()
		got, out, complaint := w.relock(append([]string{"run", "-every", "8000h", "x", "echo", "ran"}, args...)...)
		if got != status || out != "" || !regexp.MustCompile("^"+says+"$").MatchString(complaint) {
			t.Errorf("status %d, %q, complaint %q, want %q", got, out, complaint, says)
		}
	}
	skipped := func(args ...string) (status int, out, complaint string) {
		return w.relock(append(append([]string{"run", "-every", "8000h"}, args...), "x", "echo", "ran")...)
	}
	skip(0, `relock: skipped "x": it is still running, held by "nightly" for \d+s\n`)
	held.signal(syscall.SIGTERM)
	held.wantStatus(exitSignal + int(syscall.SIGTERM))
	skip(0, `relock: skipped "x": it has already run in this interval, which ends in \d+h\d+m\d+s\n`)
	if status, out, complaint := skipped("-skipped", "9"); status != 9 || out != "" || complaint == "" {
		t.Errorf("-skipped: status %d, %q, complaint %q", status, out, complaint)
	}
	if status, out, complaint := skipped("-q"); status != 0 || out != "" || complaint != "" {
		t.Errorf("-q: status %d, %q, complaint %q", status, out, complaint)
	}
	if _, _, complaint := skipped("-json"); !strings.HasPrefix(complaint, `{"note":"skipped \"x\": `) {
		t.Errorf("-json: complaint %q", complaint)
	}
}

func TestAWaitThatEndsSaysWhoHolds(t *testing.T) {
	w := newWorld(t)
	held := w.start("run", "-label", "deploy by anna", "-at-least", "1h", "x", "--", "sh", "-c", "echo started; exec sleep 60")
	held.want("started")
	for _, args := range []string{"run -wait 0 x true", "run -wait 1 x true", "hold -wait 0 x", "wait -wait 0 x"} {
		status, _, complaint := w.relock(strings.Fields(args)...)
		if status != exitNotAcquired || !strings.Contains(complaint, `held by "deploy by anna" for `) || strings.Count(complaint, "\n") != 1 {
			t.Errorf("%s: status %d, complaint %q", args, status, complaint)
		}
		if _, _, complaint = w.relock(append([]string{"-json"}, strings.Fields(args)...)...); !strings.Contains(complaint, `"label":"deploy by anna","permits":0}],"resting_ms":0}`) {
			t.Errorf("%s: %q", args, complaint)
		}
	}
	held.signal(syscall.SIGTERM)
	held.wantStatus(exitSignal + int(syscall.SIGTERM))
	for _, args := range []string{"run -wait 0 x true", "wait -wait 0 x"} {
		if _, _, complaint := w.relock(strings.Fields(args)...); !strings.Contains(complaint, "taken for another ") || strings.Contains(complaint, "held") {
			t.Errorf("%s: complaint %q", args, complaint)
		}
	}
}

// A signal that ends the wait says all that there is: the status does.
func TestQuietIsSilentAfterASignal(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	defer func() { _ = h.Release() }()
	for _, quiet := range []string{"-q", "-fair=false"} {
		p := w.start("run", quiet, "-owner", "me", "x", "true")
		w.waitForQueue("x", 1)
		p.signal(syscall.SIGTERM)
		p.wantStatus(exitSignal + int(syscall.SIGTERM))
		if got := p.complain.String(); (got == "") != (quiet == "-q") {
			t.Errorf("%s: complaint %q", quiet, got)
		}
	}
}

func TestPrefixIsTakenFromTheEnvironment(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	defer func() { _ = h.Release() }()
	for _, row := range []struct {
		env  string
		args []string
		free bool
	}{
		{"RELOCK_PREFIX=other", nil, true}, {"RELOCK_PREFIX=relock", nil, false}, {"RELOCK_PREFIX=other", []string{"-prefix", "relock"}, false},
	} {
		_, out, complaint := w.relockEnv([]string{row.env}, append([]string{"info", "x"}, row.args...)...)
		if strings.HasPrefix(out, "x is free") != row.free {
			t.Errorf("%s %q: %q, complaint %q", row.env, row.args, out, complaint)
		}
	}
}

func TestServeAnswersForEachHostThatIsNamed(t *testing.T) {
	w := newWorld(t)
	served := w.start("serve", "-listen", "127.0.0.1:0", "-host", "a.example", "-host", "B.example")
	address := served.address()
	for host, want := range map[string]int{
		"a.example": 200, "b.example": 200, "c.example": 421,
		"localhost": 200, "LOCALHOST:7365": 200, "[::1]:7365": 200, "192.0.2.7": 200, "localhost.example": 421,
	} {
		if status, _ := w.get(address, host); status != want {
			t.Errorf("%s: status %d, want %d", host, status, want)
		}
	}
	served.signal(syscall.SIGTERM)
	served.wantStatus(0)
}

// The port may be free another time: the arguments are right.
func TestAPortInUseIsNoWrongArgument(t *testing.T) {
	w := newWorld(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if status, _, complaint := w.relock("serve", "-listen", taken.Addr().String()); status != exitUnavailable {
		t.Errorf("status %d, complaint %q", status, complaint)
	}
}

// What the help says of a default is what the flag has, and it says so of each.
func TestTheHelpSaysTheDefaults(t *testing.T) {
	says := regexp.MustCompile(`\(default ([^)]+)\)`)
	for _, v := range verbs() {
		fs, _ := v.flags(&tool{})
		for _, row := range fs.rows() {
			f := fs.Lookup(row.name)
			has := strings.TrimSuffix(f.DefValue, "m0s")
			if has != f.DefValue {
				has += "m"
			}
			said := says.FindStringSubmatch(f.Usage)
			switch {
			case said != nil && said[1] != has && row.name != "label" && has != "":
				t.Errorf("%s -%s: the help says %q, and it is %q", v.name, row.name, said[1], has)
			case has != "" && has != "0s" && has != "0" && has != "false" && !strings.Contains(f.Usage, has):
				t.Errorf("%s -%s: the help does not say %q", v.name, row.name, has)
			}
		}
	}
	serve, _ := verbOf("serve")
	fs, _ := serve.flags(&tool{})
	host, _, err := net.SplitHostPort(fs.Lookup("listen").DefValue)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("the page is at %q by default, want this machine alone", fs.Lookup("listen").DefValue)
	}
}

// The Redis is of another kind than the URL says, or is not there: the complaint says which.
func TestUnreachableRedisIsToldWithItsReason(t *testing.T) {
	w := newWorld(t)
	plain := strings.TrimPrefix(w.url, "redis://")
	for url, want := range map[string]string{"rediss://" + plain: "TLS", "redis://127.0.0.1:1": "connection refused"} {
		status, _, complaint := w.relock("run", "-wait", "0", "-redis", url, "x", "true")
		if status != exitUnavailable || !strings.Contains(complaint, want) {
			t.Errorf("%s: status %d, complaint %q, want %q in it", url, status, complaint, want)
		}
	}
}

// The command has ended, and Redis does not answer its release: a signal ends that.
func TestSignalEndsTheLastWaitForASilentRedis(t *testing.T) {
	for _, flags := range []string{"", "-every 8000h"} {
		w, m := newWorldOf(t)
		silent := fallSilent(t, m)
		args := append(append([]string{"run"}, strings.Fields(flags)...), "x", "--", "sh", "-c", `trap 'exit 3' USR1; echo $$; `+naps)
		p := w.start(args...)
		command, err := strconv.Atoi(p.next())
		if err != nil {
			t.Fatal(err)
		}
		silent()
		p.signal(syscall.SIGUSR1)
		for began := time.Now(); syscall.Kill(command, 0) == nil; runtime.Gosched() { // until relock has waited for it
			if time.Since(began) > tooLong {
				t.Fatal("the command does not end")
			}
		}
		p.signal(syscall.SIGTERM)
		p.wantStatus(3)
		if got := p.complain.String(); !strings.Contains(got, "closed") || !strings.Contains(got, "the hold ends with its lease") {
			t.Errorf("%q: complaint %q, want that the release was cut short", flags, got)
		}
	}
}

// Redis falls silent during a wait, and that is said also where nobody looks at a terminal.
func TestAWaitSaysThatRedisDoesNotAnswer(t *testing.T) {
	w, m := newWorldOf(t)
	h := w.hold("x")
	defer func() { _ = h.Release() }()
	silent := fallSilent(t, m)
	p := w.start("run", "-json", "x", "true")
	w.waitForQueue("x", 1)
	silent()
	p.wantComplaint(`"note":"waiting for \"x\": Redis has not answered for `)
	p.signal(syscall.SIGTERM)
	p.wantStatus(exitSignal + int(syscall.SIGTERM))
}

// Nobody looks at a terminal. Fails when a silent Redis is not told of after half a minute, and each half minute then.
func TestAWaitSaysEachHalfMinuteThatRedisDoesNotAnswer(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var said syncBuffer
		j := &job{tool: &tool{err: &said}, name: "x"}
		c, link := x.Linked()
		defer link.Hole()()
		defer j.announce(t.Context(), c.NewLock("x"))()
		for _, want := range []int{0, 1, 2, 3} { // it has 5 s to answer
			if n := strings.Count(said.String(), "Redis has not answered"); n != want {
				t.Errorf("after %v it was said %d times, want %d: %s", x.Now(), n, want, said.String())
			}
			virtual.Sleep(36 * time.Second)
		}
	})
}

// Fails when -q hides what no exit status says: a wait that may have no end.
func TestQuietStillSaysThatRedisDoesNotAnswer(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := rig.MustAcquire(t, x.Lock("x"))
		for _, json := range []bool{false, true} {
			var said syncBuffer
			j := &job{tool: &tool{err: &said, quiet: true, json: json}, name: "x"}
			c, link := x.Linked()
			stop := j.announce(t.Context(), c.NewLock("x"))
			virtual.Sleep(2*noticeEvery + time.Minute)
			if said.Len() > 0 {
				t.Errorf("of a wait for a holder it says %q, want nothing", said.String())
			}
			heal := link.Hole()
			virtual.Sleep(noticeEvery + 6*time.Second)
			if n := strings.Count(said.String(), "Redis has not answered"); n != 1 {
				t.Errorf("of a silent Redis it says %q, want one line", said.String())
			}
			stop()
			heal()
		}
		rig.Must(t, h.Release())
	})
}

// The status is that of the command. Fails when -q hides that the lock stays taken.
func TestQuietStillSaysThatAReleaseIsNotConfirmed(t *testing.T) {
	for _, flags := range [][]string{{"-q"}, {"-q", "-every", "8000h"}} {
		w, m := newWorldOf(t)
		p := w.start(slices.Concat([]string{"run"}, flags, []string{"x", "--", "sh", "-c", "trap 'exit 0' USR1; echo started; " + naps})...)
		p.want("started")
		m.SetError("ERR refused")
		p.signal(syscall.SIGUSR1)
		p.wantStatus(0)
		if got := p.complain.String(); !strings.Contains(got, "the hold ends with its lease") {
			t.Errorf("%q: complaint %q, want that the hold is not released", flags, got)
		}
		m.SetError("")
	}
}

// What was joined is one line, and nothing is said twice.
func TestAComplaintIsOneLine(t *testing.T) {
	for _, row := range []struct{ err, want string }{
		{"relock: a", "a"}, {"a\nrelock: b: a", "b: a"}, {"b: a\na", "b: a"}, {"a\nb", "a; b"},
	} {
		if got := trimName(textError(row.err)); got != row.want {
			t.Errorf("%q: %q, want %q", row.err, got, row.want)
		}
	}
}

type textError string

func (e textError) Error() string { return string(e) }
