package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// What a user types: interrupt, quit, suspend.
const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// The shell has job control, as one that a user types at.
func TestCtrlZStopsTheJobAndFgContinuesIt(t *testing.T) {
	w := newWorld(t)
	p, user := w.atTerminal(`trap : INT; set -m; "$0" run x cat; echo; echo "status $?"; read a; echo "got $a"; fg; s=$?; echo; echo "then $s"`)
	w.key(user, "hello\n")
	p.want("hello") // from the terminal
	p.want("hello") // from the command
	w.key(user, ctrlZ)
	p.wantLike("^status ")
	w.key(user, "shell\n") // has the terminal again
	p.want("got shell")
	w.key(user, "again\n")
	p.want("again")
	p.want("again") // the command has it
	w.key(user, ctrlC)
	p.want(fmt.Sprintf("then %d", exitSignal+int(syscall.SIGINT)))
	p.wantStatus(0)
	w.wantFree("x")
}

func TestBgLetsTheCommandGoOnWithoutTheTerminal(t *testing.T) {
	w := newWorld(t)
	// It starts nothing when Ctrl-Z comes: a shell that waits for the exec of a child which was
	// stopped before it cannot stop itself, whoever its parent is.
	p, user := w.atTerminal(`set -m; "$0" run x sh -c 'sleep 100 & trap "kill $!; echo bye; exit 3" TERM; echo started; wait'
		bg; read a; echo "got $a"; kill %1; wait %1; echo "status $?"`)
	p.want("started")
	w.key(user, ctrlZ)
	w.key(user, "mine\n")
	p.want("got mine")
	p.want("bye")
	p.want("status 3")
	p.wantStatus(0)
	w.wantFree("x")
}

// In the background a command that reads the terminal is stopped, and its job with it; fg
// gives it what it wants.
func TestFgGivesABackgroundCommandTheTerminal(t *testing.T) {
	w := newWorld(t)
	p, user := w.atTerminal(`set -m; "$0" run x sh -c 'read a; echo "command has $a"' &
		f=$(mktemp); until jobs >"$f"; grep -q Stopped "$f"; do :; done; rm "$f"; echo stopped; fg; echo "status $?"; read b; echo "shell has $b"`)
	p.want("stopped")
	w.key(user, "one\n")
	p.want("command has one")
	p.want("status 0")
	w.key(user, "two\n")
	p.want("shell has two")
	p.wantStatus(0)
}

func TestFgSaysThatALockWasLostMeanwhile(t *testing.T) {
	w := newWorld(t)
	p, user := w.atTerminal(`set -m; "$0" run -ttl 1 x sh -c 'echo started; read a; echo "worked on"'; echo; echo stopped; read a; fg; echo "status $?"`)
	p.want("started")
	w.key(user, ctrlZ)
	p.want("stopped")
	for len(w.info("x").Holders) > 0 && t.Context().Err() == nil { // nobody renews it
	}
	w.key(user, "on\n")
	if line := p.wantLike("^status |^worked on|lost the lock"); !strings.Contains(line, "lost the lock") {
		t.Errorf("after fg: %q, want it told that the lock is lost", line)
	}
	p.want(fmt.Sprintf("status %d", exitLost))
	p.wantStatus(0)
}

// The shell that has relock has no job control, and nobody would continue it.
func TestCtrlZWhereNobodyWouldContinueStopsNothing(t *testing.T) {
	w := newWorld(t)
	p, user := w.atTerminal(`trap : INT; "$0" run x cat; s=$?; echo; echo "status $s"`)
	w.key(user, "hello\n")
	p.want("hello")
	p.want("hello")
	w.key(user, ctrlZ)
	w.key(user, "again\n")
	p.wantLike("again$")
	p.want("again")
	w.key(user, ctrlC)
	p.want(fmt.Sprintf("status %d", exitSignal+int(syscall.SIGINT)))
	p.wantStatus(0)
}

func TestWaitSaysAtATerminalForWhom(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	before := w.start("run", "x", "true")
	w.waitForQueue("x", 1)
	p, _ := w.atTerminal(`"$0" run x echo ran`)
	line := p.wantLike("^relock: waiting")
	if !strings.Contains(line, `waiting for "x", held by "`) || !strings.HasSuffix(line, "; 1 ahead in the queue") {
		t.Errorf("it says %q", line)
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	p.want("ran")
	p.wantStatus(0)
	before.wantStatus(0)
}

func TestQuietWaitSaysNothing(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	p, _ := w.atTerminal(`"$0" run -q -wait 1.5 x echo ran; echo "status $?"`)
	if line := p.next(); line != fmt.Sprintf("status %d", exitNotAcquired) {
		t.Errorf("it says %q", line)
	}
	p.wantStatus(0)
	if err := h.Release(); err != nil {
		t.Error(err)
	}
}

// Fails when one long name makes every row wrap, or when an empty list is silence.
func TestAListFitsATerminalAndSaysThatItIsEmpty(t *testing.T) {
	w := newWorld(t)
	p, _ := w.atTerminal(`"$0" ls`)
	p.want("no lock is in use")
	p.wantStatus(0)
	long := strings.Repeat("n", 400)
	for _, name := range []string{"x", long} {
		h := w.hold(name)
		defer func() { _ = h.Release() }()
	}
	p, _ = w.atTerminal(`"$0" ls`)
	p.wantLike("^NAME")
	if line := p.wantLike("^nnn"); strings.Contains(line, strings.Repeat("n", 64)) || !strings.Contains(line, "n… ") {
		t.Errorf("a row of a terminal is %q", line)
	}
	p.wantLike("^x ")
	p.wantStatus(0)
	if _, out, _ := w.relock("ls"); !strings.Contains(out, long+" ") {
		t.Errorf("a program reads %q, want the whole name", out)
	}
}

// The terminal tells only the command of a Ctrl-C. Fails when the script goes on, as it does after a program that exits
// with 130.
func TestCtrlCEndsTheScriptToo(t *testing.T) {
	for what, script := range map[string]string{
		"a command":                  `"$0" run x sh -c 'echo started; exec sleep 100'; echo went on`,
		"a wait":                     `"$0" run x sh -c 'echo started; exec "$0" wait x' "$0"; echo went on`,
		"a command beside a program": `"$0" run x sh -c 'echo started >&2; exec sleep 100' | (sleep 100; echo went on)`,
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			p, user := w.atTerminal(script)
			p.want("started")
			w.key(user, ctrlC)
			for _, line := range p.wantEnd() {
				if strings.Contains(line, "went on") {
					t.Error("after a Ctrl-C the script went on")
				}
			}
			p.wantStatus(exitSignal + int(syscall.SIGINT))
			w.wantFree("x")
		})
	}
}

// A pager behind a pipe reads from the terminal, and may set it before. Fails when that stops relock, which would not
// renew the lock, or when the pager does not get the terminal.
func TestAProgramBesideRelockGetsTheTerminal(t *testing.T) {
	for _, first := range []string{"", "stty -echo </dev/tty; stty echo </dev/tty;"} {
		w := newWorld(t)
		p, user := w.atTerminal(`set -m; "$0" run x sh -c 'echo out; exec sleep 100' |
			sh -c 'read a; ` + first + ` echo ready; read b </dev/tty; echo "pager has $a and $b"'`)
		p.want("ready")
		w.key(user, "one\n")
		p.want("pager has out and one")
		if len(w.info("x").Holders) != 1 {
			t.Error("the lock is not held while its command runs")
		}
		w.key(user, ctrlC)
		p.wantEnd()
		w.wantFree("x")
	}
}

// The command's input is a pipe. Fails when it waits for ever for the terminal, with the lock.
func TestACommandGetsTheTerminalThoughItsInputIsAPipe(t *testing.T) {
	w := newWorld(t)
	p, user := w.atTerminal(`set -m; echo in | "$0" run x sh -c 'read b; echo "input $b"; read a </dev/tty; echo "command has $a"'
		read a; echo "shell has $a"`)
	p.want("input in")
	w.key(user, "one\n")
	p.want("command has one")
	w.key(user, "two\n")
	p.want("shell has two")
	p.wantStatus(0)
}
