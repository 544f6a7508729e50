//go:build race

package relock_test

// underRace: the race detector drops what pools keep, so allocations say nothing.
const underRace = true
