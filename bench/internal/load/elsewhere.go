package load

import (
	"context"
	"strconv"

	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/rival"
)

// Elsewhere measures uncontended pairs of relock on one server, on the same server by Sentinel, and on a Cluster.
func (b *Bench) Elsewhere(ctx context.Context, goroutines int) error {
	sentinel, err := b.Server.StartSentinel(ctx)
	if err != nil {
		return err
	}
	defer sentinel.Stop()
	cluster, err := host.StartCluster(ctx)
	if err != nil {
		return err
	}
	defer cluster.Stop()
	var all []*fleet
	defer func() { closeAll(all) }()
	for _, on := range []struct {
		rival rival.Rival
		addr  string
	}{
		{rival.Relock(), b.Server.Addr()},
		{rival.RelockSentinel(), sentinel.Addr()},
		{rival.RelockCluster(), cluster.Addr()},
	} {
		fleets, err := b.open([]rival.Rival{on.rival}, 1, on.addr)
		if err != nil {
			return err
		}
		all = append(all, fleets...)
	}
	s := Sample{Workload: "elsewhere", Case: strconv.Itoa(goroutines)}
	return b.interleave(ctx, all, s, func(ctx context.Context, f *fleet, s *Sample) error {
		return b.pairs(ctx, f, goroutines, s)
	})
}
