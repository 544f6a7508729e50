package nemesis

import (
	"context"
	"sync"
	"time"

	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/server"
)

// span is when a failover was, as it was noted.
type span struct{ from, to int64 }

// watchRoles notes the failovers that nobody injected: a cluster or Sentinels hold
// one when the machine was busy, or late, when the stop of a server is over.
func (s *Site) watchRoles(ctx context.Context) {
	var running sync.WaitGroup
	for _, r := range s.Deployment.Nodes {
		running.Go(func() { s.watchRole(ctx, r) })
	}
	running.Wait()
}

func (s *Site) watchRole(ctx context.Context, r *server.Redis) {
	var follows int64 // when it was last known to
	for sleep(ctx, 50*time.Millisecond) {
		at := history.Now()
		switch primary, err := r.IsPrimary(ctx); {
		case err != nil:
		case !primary:
			follows = at
		case follows != 0:
			s.promoted(context.WithoutCancel(ctx), follows)
			follows = 0
		}
	}
}

// promoted notes a failover that began after an instant, unless a step did.
func (s *Site) promoted(ctx context.Context, since int64) {
	now := history.Now()
	s.turn <- struct{}{} // a step that is under way has ended
	defer func() { <-s.turn }()
	s.mu.Lock()
	known := false
	for _, f := range s.failovers {
		known = known || f.from <= now && f.to >= since
	}
	s.mu.Unlock()
	if known {
		return
	}
	if err := s.Deployment.Settled(ctx); err != nil {
		s.fail(Step{Kind: history.Failover}, err)
	}
	s.note(history.Event{T: since, Fault: history.Failover, On: s.Deployment.Name, Err: "by itself"})
}
