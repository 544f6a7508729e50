package relock_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the package when a goroutine outlives its tests: every one
// that the library starts has an owner and an end.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
