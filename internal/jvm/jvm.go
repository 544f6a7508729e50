// Package jvm runs the program of redisson/interop, which does with a real Redisson what
// it is told. Tests and measurements use it.
package jvm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/spawn"
)

// A JVM is a process with Redisson's clients.
type JVM struct {
	cmd    *exec.Cmd
	exited <-chan struct{}

	mu    sync.Mutex
	in    io.Writer
	last  int
	calls map[string]chan string
}

// errBuild is what helps where the program is not there or is not whole.
var errBuild = errors.New("java has ended at once: run make interop, which builds its program")

// Start starts the program that was built in dir. It ends with Kill, or with this process.
func Start(dir string) (*JVM, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	j := &JVM{calls: make(map[string]chan string)}
	j.cmd = exec.Command("java", "-Xmx256m", "-cp", filepath.Join(dir, "classes")+":"+filepath.Join(dir, "lib", "*"), "interop.Driver")
	j.cmd.Stderr = os.Stderr
	if j.in, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if j.exited, err = spawn.Start(j.cmd); err != nil {
		return nil, fmt.Errorf("java does not start: %w; it needs Java 17", err)
	}
	ready := make(chan struct{})
	go j.read(bufio.NewScanner(out), ready)
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-ready:
		return j, nil
	case <-j.exited:
		err = errBuild
	case <-limit.C:
		err = errors.New("java has not begun within a minute")
	}
	j.Kill()
	return nil, err
}

// Kill ends the process as nobody can survive it.
func (j *JVM) Kill() {
	_ = j.cmd.Process.Kill() // fails only if it is gone already
	<-j.exited
}

// Exited is closed when the process has gone.
func (j *JVM) Exited() <-chan struct{} { return j.exited }

// read hands out answers. It ends with the process, whose output is at its end then.
func (j *JVM) read(out *bufio.Scanner, ready chan struct{}) {
	for out.Scan() {
		id, said, _ := strings.Cut(out.Text(), " ")
		if id == "ready" {
			close(ready)
			continue
		}
		j.mu.Lock()
		if done := j.calls[id]; done != nil {
			done <- said
			delete(j.calls, id)
		}
		j.mu.Unlock()
	}
}

// Tell begins a command of a thread of a client, which runs after those that the thread
// was told before. What it comes to is sent once: "ok VALUE" or "error WHAT".
func (j *JVM) Tell(client string, thread int, op string, args ...any) (said <-chan string, err error) {
	words := []string{"", client, strconv.Itoa(thread), op}
	for _, a := range args {
		words = append(words, fmt.Sprint(a))
	}
	answer := make(chan string, 1)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	words[0] = strconv.Itoa(j.last)
	j.calls[words[0]] = answer
	_, err = fmt.Fprintln(j.in, strings.Join(words, " "))
	return answer, err
}

// Value is what an answer says, or its error.
func Value(said string) (string, error) {
	value, ok := strings.CutPrefix(said+" ", "ok ")
	if !ok {
		return "", fmt.Errorf("java: %s", strings.TrimSpace(value))
	}
	return strings.TrimSpace(value), nil
}
