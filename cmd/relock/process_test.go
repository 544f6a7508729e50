//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
)

// A process is relock in a process of its own.
type process struct {
	w        *world
	cmd      *exec.Cmd
	lines    chan string // of standard output; closed at its end, when nobody has it open any more
	complain syncBuffer
}

func (w *world) start(args ...string) *process {
	w.Helper()
	return w.startAs(self(w.T), args...)
}

func (w *world) startAs(program string, args ...string) *process {
	w.Helper()
	out, theirs, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	p := &process{w: w, cmd: exec.Command(program, args...), lines: make(chan string, 1000)}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = w.env(beRelock), theirs, &p.complain
	p.cmd.WaitDelay = tooLong // whoever outlives relock has its standard error open
	p.launch(theirs, out)
	return p
}

// launch starts the process; theirs is its end of what out reads.
func (p *process) launch(theirs, out *os.File) {
	p.w.Helper()
	if err := p.cmd.Start(); err != nil {
		p.w.Fatal(err)
	}
	theirs.Close()
	p.w.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails where it has ended, as it should have
		out.Close()
	})
	go func() {
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			p.lines <- in.Text()
		}
	}()
}

// tooLong is for a test that hangs; nothing is judged by it.
const tooLong = time.Minute

// want reads standard output up to the given line.
func (p *process) want(line string) {
	p.w.Helper()
	over := time.After(tooLong)
	for {
		select {
		case got, open := <-p.lines:
			if got == line {
				return
			}
			if !open {
				p.w.Fatalf("the output ended before %q; complaints: %s", line, p.complain.String())
			}
		case <-over:
			p.w.Fatalf("no %q in the output", line)
		}
	}
}

// wantEnd waits until nobody has the output open any more: relock, the command
// and what that has started are gone.
func (p *process) wantEnd() (rest []string) {
	p.w.Helper()
	over := time.After(tooLong)
	for {
		select {
		case got, open := <-p.lines:
			if !open {
				return rest
			}
			rest = append(rest, got)
		case <-over:
			p.w.Fatalf("somebody still has the output open; so far: %q", rest)
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.w.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.w.Fatal(err)
	}
}

func (p *process) wantStatus(want int) {
	p.w.Helper()
	_ = p.cmd.Wait() // the status says more
	got := p.cmd.ProcessState.ExitCode()
	if ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() { // as a shell says it
		got = exitSignal + int(ws.Signal())
	}
	if got != want {
		p.w.Errorf("exit status %d, want %d; complaints: %s", got, want, p.complain.String())
	}
}

// wantComplaint waits until standard error has the text.
func (p *process) wantComplaint(text string) {
	p.w.Helper()
	for began := time.Now(); !strings.Contains(p.complain.String(), text); runtime.Gosched() {
		if time.Since(began) > tooLong {
			p.w.Fatalf("no %q in the complaints: %s", text, p.complain.String())
		}
	}
}

// fallSilent returns what has a server take requests and answer none until the test is over.
func fallSilent(t *testing.T, m *miniredis.Miniredis) (begin func()) {
	t.Helper()
	var quiet atomic.Bool
	over := make(chan struct{})
	m.Server().SetPreHook(func(*miniserver.Peer, string, ...string) bool {
		if quiet.Load() {
			<-over
		}
		return false
	})
	t.Cleanup(func() { close(over) })
	return func() { quiet.Store(true) }
}

// A syncBuffer may be read while it is written.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *syncBuffer) Len() int { return len(b.String()) }

// next is the next line of standard output.
func (p *process) next() string {
	p.w.Helper()
	select {
	case line, open := <-p.lines:
		if !open {
			p.w.Fatalf("the output has ended; complaints: %s", p.complain.String())
		}
		return line
	case <-time.After(tooLong):
		p.w.Fatal("no further line in the output")
	}
	return ""
}

// wantLike reads standard output up to a line that matches.
func (p *process) wantLike(pattern string) string {
	p.w.Helper()
	for re := regexp.MustCompile(pattern); ; {
		if line := p.next(); re.MatchString(line) {
			return line
		}
	}
}
