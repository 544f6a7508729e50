//go:build !race

package rig

// UnderRace says whether the race detector is on.
const UnderRace = false
