// Package virtual has time go by in tests, and only in virtual time.
package virtual

import "time"

// started is in real time. In a bubble of testing/synctest it is the year 2000.
var started = time.Now().Unix()

// Sleep is time.Sleep in a bubble. Outside of one it panics: a test that waits in real time waits too short on a slow
// machine, and too long on every other.
func Sleep(d time.Duration) {
	if time.Now().Unix() >= started {
		panic("virtual: Sleep outside of a bubble of testing/synctest")
	}
	time.Sleep(d)
}
