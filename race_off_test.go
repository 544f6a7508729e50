//go:build !race

package relock_test

const underRace = false
