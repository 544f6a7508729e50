//go:build unix && !linux

package main

import "os"

// reaps says whether processes whose parent has ended become relock's.
func reaps() bool { return os.Getpid() == 1 }

// onlyZombies is known on Linux alone.
func onlyZombies(int) bool { return false }
