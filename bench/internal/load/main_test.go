package load_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/load"
	"github.com/relock-go/relock/bench/internal/rival"
)

// TestMain lets the test binary be the processes that the workloads start.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		var err error
		switch os.Args[1] {
		case load.HoldFlag:
			err = load.Hold(context.Background(), os.Args[2], os.Stdin, os.Stdout)
		case load.TurnFlag:
			err = load.Turn(context.Background(), os.Args[2], os.Stdin, os.Stdout)
		case host.SpinFlag:
			err = host.Spin(os.Args[2])
		default:
			os.Exit(m.Run())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// small is a bench that takes no time, and where it keeps its samples.
func small(t *testing.T) (*load.Bench, *[]load.Sample) {
	t.Helper()
	server, err := host.StartServer(t.Context())
	if errors.Is(err, host.ErrNoServer) && os.Getenv("RELOCK_TEST_REQUIRE") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	samples := new([]load.Sample)
	return &load.Bench{
		Server: server, Rivals: rival.All(), Rounds: 1, Window: 50 * time.Millisecond, Regime: load.Asleep,
		Callers: []int{1, 16, 256, 1024}, HeldSizes: []int{200}, HeldTTL: 300 * time.Millisecond,
		Keep: func(s load.Sample) { *samples = append(*samples, s) },
		Note: t.Logf,
	}, samples
}
