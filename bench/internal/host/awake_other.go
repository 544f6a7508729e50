//go:build !linux

package host

import "errors"

// SpinFlag is what a spinner would be called with.
const SpinFlag = "-spin"

// A Spinner would keep every core from sleeping.
type Spinner struct{}

// KeepAwake is for Linux only.
func KeepAwake() (*Spinner, error) {
	return nil, errors.New("no scheduling policy for idle time on this system")
}

// Stop does nothing.
func (*Spinner) Stop() {}

// Spin does nothing.
func Spin(string) error { return nil }
