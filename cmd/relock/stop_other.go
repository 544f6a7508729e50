//go:build unix && !linux

package main

import "os"

// Elsewhere relock stops alone where its input is no terminal.
func hearStops(chan<- os.Signal) {}

func letStop() (heed func()) { return func() {} }
