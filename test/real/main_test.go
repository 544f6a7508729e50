package real_test

import (
	"os"
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

// TestMain is rig.Main, but for a binary that is started with childEnv: that is not
// a test run but a process of its own that locks on order.
func TestMain(m *testing.M) {
	if addr := os.Getenv(childEnv); addr != "" {
		os.Exit(runChild(addr, os.Stdin, os.Stdout))
	}
	rig.Main(m)
}
