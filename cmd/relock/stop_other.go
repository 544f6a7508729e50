//go:build unix && !linux

package main

import "os"

const hearsStops = false

// Here a relock whose command does not have the terminal stops without its command.
func hearStops(chan<- os.Signal) {}

func letStop() (heed func()) { return func() {} }
