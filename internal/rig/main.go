package rig

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// Main runs a package's tests, and fails it when a goroutine outlives them: every one
// that the library starts has an owner and an end.
func Main(m *testing.M) {
	redis.SetLogger(quiet{}) // tests break its connections on purpose
	// If a pool of go-redis could not dial, it has a goroutine that checks once a second whether the pool was
	// closed. That is longer than the wait for leaked goroutines.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
