//go:build !race

package rig

// UnderRace reports whether the race detector is on.
const UnderRace = false
