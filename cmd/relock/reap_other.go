//go:build unix && !linux

package main

import "os"

// reaps reports whether orphaned processes become relock's children.
func reaps() bool { return os.Getpid() == 1 }

// onlyZombies is only known on Linux.
func onlyZombies(int) bool { return false }
