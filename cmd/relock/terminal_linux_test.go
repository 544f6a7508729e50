package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"
)

// openTerminal returns both ends of a new terminal.
func openTerminal(t *testing.T) (user, programs *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this machine has no terminals: ", err)
	}
	var number, unlocked int32
	raw, err := user.SyscallConn() // not by Fd, after which a Close ends no Read
	if err != nil {
		t.Fatal(err)
	}
	for request, value := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlocked} {
		var errno syscall.Errno
		err := raw.Control(func(fd uintptr) {
			_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value)))
		})
		if err != nil || errno != 0 {
			t.Fatal(err, errno)
		}
	}
	programs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return user, programs
}

// atTerminal starts a shell script that has a terminal, and relock as $0.
func (w *world) atTerminal(script string) (p *process, user *os.File) {
	w.Helper()
	user, programs := openTerminal(w.T)
	p = &process{w: w, cmd: exec.Command("sh", "-c", script, self(w.T)), lines: make(chan string, 1000)}
	p.cmd.Env = w.env(beRelock)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = programs, programs, programs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.launch(programs, user)
	return p, user
}

// key is what the user types.
func (w *world) key(user *os.File, keys string) {
	w.Helper()
	if _, err := user.WriteString(keys); err != nil {
		w.Fatal(err)
	}
}

func TestCommandHasTheTerminalAndGivesItBack(t *testing.T) {
	w := newWorld(t)
	p, user := w.atTerminal(`"$0" run x -- sh -c 'echo ask; read a; echo "got $a"'; echo again; read b; echo "then $b"`)
	p.want("ask")
	w.key(user, "one\n")
	p.want("got one")
	p.want("again")
	w.key(user, "two\n")
	p.want("then two")
	p.wantStatus(0)
}

func TestInterruptAtTheTerminalEndsTheCommand(t *testing.T) {
	w := newWorld(t)
	p, user := w.atTerminal(`trap : INT; "$0" run x -- cat; s=$?; echo; echo "status $s"`) // after the echoed ^C
	w.key(user, "hello\n")
	p.want("hello") // from the terminal
	p.want("hello") // from the command
	w.key(user, "\x03")
	p.want(fmt.Sprintf("status %d", exitSignal+int(syscall.SIGINT)))
	p.wantStatus(0)
	w.wantFree("x")
}

func TestBackgroundRunLeavesTheTerminalAlone(t *testing.T) {
	w := newWorld(t)
	p, user := w.atTerminal(`set -m; "$0" run x -- sh -c 'echo started; sleep 30' & read a; echo "got $a"; kill $!; wait $!; echo "status $?"`)
	p.want("started")
	w.key(user, "one\n")
	p.want("got one")
	p.want(fmt.Sprintf("status %d", exitSignal+int(syscall.SIGTERM)))
	p.wantStatus(0)
}

// The command has its group and the terminal before it turns out that it cannot be started. Fails when the script that
// goes on has no terminal.
func TestACommandThatCannotBeStartedLeavesTheTerminal(t *testing.T) {
	w := newWorld(t)
	command := filepath.Join(t.TempDir(), "no-program")
	if err := os.WriteFile(command, []byte("no #! here\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, user := w.atTerminal(`"$0" run x "` + command + `"; echo "status $?"; read a; echo "got $a"`)
	p.want(fmt.Sprintf("status %d", exitNotExecutable))
	w.key(user, "one\n")
	p.want("got one")
	p.wantStatus(0)
}
