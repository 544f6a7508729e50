package relock_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// TestMain fails the package when a goroutine outlives its tests: every one
// that the library starts has an owner and an end. Started with childEnv, the
// binary is not a test run but a process of its own that locks on order.
func TestMain(m *testing.M) {
	if addr := os.Getenv(childEnv); addr != "" {
		os.Exit(runChild(addr, os.Stdin, os.Stdout))
	}
	redis.SetLogger(quiet{}) // tests break its connections on purpose
	goleak.VerifyTestMain(m)
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
