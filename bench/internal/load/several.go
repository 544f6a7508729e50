package load

import (
	"context"
	"strings"

	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/rival"
)

// Several measures one goroutine's lock and unlock of what is several locks: of three
// names on one server, and of one name on three.
func (b *Bench) Several(ctx context.Context) error {
	addrs := []string{b.Server.Addr()}
	for len(addrs) < 3 {
		s, err := host.StartServer(ctx)
		if err != nil {
			return err
		}
		defer s.Stop()
		addrs = append(addrs, s.Addr())
	}
	fleets, err := b.open([]rival.Rival{rival.Relock(), rival.RelockMulti()}, 1, addrs[0])
	defer func() { closeAll(fleets) }()
	if err != nil {
		return err
	}
	more, err := b.open([]rival.Rival{rival.RelockQuorum(), rival.RedsyncQuorum()}, 1, strings.Join(addrs, ","))
	if err != nil {
		return err
	}
	fleets = append(fleets, more...)
	return b.interleave(ctx, fleets, Sample{Workload: "several", Case: "1"}, func(ctx context.Context, f *fleet, s *Sample) error {
		return b.pairs(ctx, f, 1, s)
	})
}
