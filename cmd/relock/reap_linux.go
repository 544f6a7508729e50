package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"
)

// reaps reports whether orphaned processes become relock's children: relock is the first process, as in a
// container, or was made a reaper.
func reaps() bool {
	const getChildSubreaper = 37 // PR_GET_CHILD_SUBREAPER
	var is int32
	_, _, errno := syscall.Syscall(syscall.SYS_PRCTL, getChildSubreaper, uintptr(unsafe.Pointer(&is)), 0)
	return os.Getpid() == 1 || errno == 0 && is != 0
}

// onlyZombies reports whether all processes of a group are zombies, as far as /proc shows.
func onlyZombies(group int) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	found := false
	for _, path := range all {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name is in parentheses, and may have some of its own.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if state := string(fields[0]); state != "Z" && state != "X" {
			return false
		}
		found = true
	}
	return found
}
