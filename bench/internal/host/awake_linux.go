package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/relock-go/relock/internal/spawn"
)

// SpinFlag makes this program a spinner on the core that follows.
const SpinFlag = "-spin"

// schedIdle is the policy for what runs only where nothing else wants to.
const schedIdle = 5

// A Spinner keeps every core from sleeping, at no cost to whoever wants the core:
// a core that has to be woken adds tens of microseconds to each message.
type Spinner struct {
	cmds   []*exec.Cmd
	exited []<-chan struct{}
}

// KeepAwake starts one process for each core.
func KeepAwake() (*Spinner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &Spinner{}
	for core := range runtime.NumCPU() {
		cmd := exec.Command(self, SpinFlag, strconv.Itoa(core))
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off")
		cmd.Stderr = os.Stderr
		exited, err := spawn.Start(cmd)
		if err != nil {
			s.Stop()
			return nil, fmt.Errorf("keeping core %d awake: %w", core, err)
		}
		s.cmds, s.exited = append(s.cmds, cmd), append(s.exited, exited)
	}
	return s, nil
}

// Stop lets the cores sleep again.
func (s *Spinner) Stop() {
	for i, cmd := range s.cmds {
		_ = cmd.Process.Kill() // fails only if it is gone already
		<-s.exited[i]
	}
}

// Spin is the spinner's main; it ends with its parent.
func Spin(core string) error {
	n, err := strconv.Atoi(core)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(n)
	// Without a core of its own it would keep awake whichever it is given: good enough.
	_ = unix.SchedSetaffinity(0, &set)
	var param struct{ priority int32 }
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, schedIdle, uintptr(unsafe.Pointer(&param)))
	if errno != 0 {
		return errors.Join(errors.New("SCHED_IDLE refused; a spinner would take time from what is measured"), errno)
	}
	parent := os.Getppid()
	for i := 0; ; i++ {
		if i%(1<<24) == 0 && os.Getppid() != parent {
			return nil
		}
	}
}
