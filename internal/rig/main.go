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
	// A pool of go-redis that could not dial has a goroutine that looks once a second
	// whether it was closed: longer than leaks are waited for.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
