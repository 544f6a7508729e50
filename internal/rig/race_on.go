//go:build race

package rig

// UnderRace: the race detector drops what pools keep, so allocations say nothing, and makes everything slow.
const UnderRace = true
