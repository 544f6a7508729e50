package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// interactive are the shells as a user has them who has set up nothing, and what has them
// complete.
var interactive = []struct {
	shell string
	args  []string
	setup string
}{
	{"bash", []string{"--norc", "--noprofile", "-i"}, `eval "$(relock completion bash)"`},
	{"zsh", []string{"-f", "-i"}, `autoload -Uz compinit; compinit -u -D; eval "$(relock completion zsh)"`},
	{"fish", []string{"--no-config", "--private", "-i"}, `relock completion fish | source`},
}

// hostile is a name whose words would be commands.
const hostile = `it's $(touch pwned) "x"; touch pwned & a!b`

// typed are what a user types, Tab among it, and what is to be seen then.
var typed = []struct{ keys, seen string }{
	{"relock inf\t-js\tord\t\n", `\{"name":"orders/4711"`},
	{"relock info a:\t\n", `a:1 is held by`},
	{"relock info it\t\n", `it's \$\(touch pwned\) "x"; touch pwned & a!b is held by`},
	{"relock info 'b \t\n", `b c is held by`},
	{"relock run free gree\t\n", `hello of a command`},
	{"relock run free -wait 3 cat some\t\n", `within the file`},
}

// Each shell is typed at on a terminal, with Tab, and runs what it has completed.
func TestShellsCompleteVerbsFlagsAndNames(t *testing.T) {
	for _, sh := range interactive {
		t.Run(sh.shell, func(t *testing.T) {
			path, err := exec.LookPath(sh.shell)
			if err != nil {
				t.Skip("left out: there is no ", sh.shell)
			}
			w := newWorld(t)
			for _, name := range []string{"orders/4711", "a:1", "b c", hostile} {
				h := w.hold(name)
				defer func() { _ = h.Release() }()
			}
			p, user, dir := w.shellAtTerminal(path, sh.args...)
			w.key(user, sh.setup+"; echo ready\"\"now\n")
			p.wantLike("readynow")
			for _, row := range typed {
				w.key(user, row.keys)
				p.wantLike(row.seen)
			}
			w.key(user, "exit\n")
			p.wantEnd()
			if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
				t.Error("a lock's name was run as a command")
			}
		})
	}
}

// shellAtTerminal starts a shell whose user has relock and greet among its commands, and
// some.txt where it is.
func (w *world) shellAtTerminal(path string, args ...string) (p *process, user *os.File, dir string) {
	w.Helper()
	dir, bin := w.TempDir(), w.TempDir()
	for _, err := range []error{
		os.Symlink(self(w.T), filepath.Join(bin, "relock")),
		os.WriteFile(filepath.Join(bin, "greetings"), []byte("#!/bin/sh\necho hello of a command\n"), 0o700),
		os.WriteFile(filepath.Join(dir, "some.txt"), []byte("within the file\n"), 0o600),
	} {
		if err != nil {
			w.Fatal(err)
		}
	}
	user, programs := openTerminal(w.T)
	p = &process{w: w, cmd: exec.Command(path, args...), lines: make(chan string, 1000)}
	p.cmd.Dir = dir
	p.cmd.Env = w.env(beRelock, "PATH="+bin+":"+os.Getenv("PATH"), "TERM=xterm", "PS1=", "HOME="+dir, "INPUTRC=/dev/null")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = programs, programs, programs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.launch(programs, user)
	return p, user, dir
}
