package server

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

//go:embed shim/clock.c
var shim []byte

// Clock is the wall clock of servers, which can be stepped: that of all servers of
// a run, or of one of them, which differs from it. A nil Clock is the machine's.
type Clock struct {
	library, file string
	page          []byte
	differs       time.Duration
}

// NewClock compiles the library that shifts the clock of who preloads it.
func NewClock(dir string) (*Clock, error) {
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, shim, 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-o", library, source).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("gcc: %w\n%s", err, out)
	}
	path := filepath.Join(dir, "clock.offset")
	if err := os.WriteFile(path, make([]byte, 8), 0o600); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	page, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &Clock{library: library, file: path, page: page}, nil
}

func (c *Clock) env() []string {
	if c == nil {
		return nil
	}
	return []string{
		"LD_PRELOAD=" + c.library, "TORTURE_CLOCK=" + c.file, fmt.Sprintf("TORTURE_CLOCK_DIFFERS=%d", c.differs.Microseconds()),
	}
}

// Differing is the clock of a server that is always so far ahead of the others.
func (c *Clock) Differing(by time.Duration) *Clock {
	if c == nil {
		return nil
	}
	other := *c
	other.differs = by
	return &other
}

// Set puts the servers' clock so far ahead of the machine's.
func (c *Clock) Set(ahead time.Duration) {
	atomic.StoreInt64((*int64)(unsafe.Pointer(&c.page[0])), ahead.Microseconds())
}

// Close gives the mapping back. The servers have theirs.
func (c *Clock) Close() { _ = syscall.Munmap(c.page) }
