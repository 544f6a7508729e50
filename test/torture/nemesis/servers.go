package nemesis

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/server"
)

// command is a fault that a command to every primary makes.
func (s *Site) command(ctx context.Context, step Step, e history.Event) error {
	var reached int
	for _, r := range s.Deployment.Primaries(ctx) {
		if s.say(ctx, r.RDB, step) == nil {
			reached++
		}
	}
	if step.Kind == history.Maxmemory {
		sleep(ctx, step.For)
		for _, r := range s.Deployment.Nodes {
			if err := r.RDB.ConfigSet(ctx, "maxmemory", "0").Err(); err != nil && reached > 0 {
				return err
			}
		}
	}
	if reached > 0 {
		s.note(e) // else the servers are down: that is another fault's
	}
	return nil
}

func (s *Site) say(ctx context.Context, rdb *redis.Client, step Step) error {
	switch step.Kind {
	case history.ClientKill:
		kind := []string{"normal", "pubsub"}[step.Arg%2]
		return rdb.Do(ctx, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").Err()
	case history.ScriptFlush:
		return rdb.ScriptFlush(ctx).Err()
	case history.FlushAll:
		return rdb.FlushAll(ctx).Err()
	}
	return rdb.ConfigSet(ctx, "maxmemory", "1").Err()
}

// server is a fault of a server process, or of the roles that servers have.
func (s *Site) server(ctx context.Context, step Step, e history.Event) error {
	d := s.Deployment
	switch {
	case step.Kind == history.Failover && d.Form == server.Cluster:
		err := d.TakeOver(ctx, step.Target, step.Arg%2 == 0)
		s.note(e)
		return err
	case step.Kind == history.Failover && d.Form == server.Sentinel:
		err := d.FailOver(ctx, step.Arg)
		s.note(e)
		return err
	case step.Kind == history.Failover:
		err := d.Promote(ctx, step.Arg%2 == 0)
		s.note(e)
		return err
	case step.Kind == history.Migrate:
		lock := s.Locks[step.Target%len(s.Locks)]
		e.Lock = lock.Name()
		err := d.Migrate(ctx, HashKey(lock.Name()), step.For)
		s.note(e)
		return err
	}
	primaries := d.Primaries(ctx)
	if len(primaries) == 0 {
		return errors.New("no primary")
	}
	return s.process(ctx, step, e, primaries[step.Target%len(primaries)])
}

// process stops or kills one primary. Its replica may take over meanwhile: then
// that was the fault.
func (s *Site) process(ctx context.Context, step Step, e history.Event, r *server.Redis) (err error) {
	d := s.Deployment
	if step.Kind == history.StopServer {
		r.Stop()
		sleep(ctx, step.For)
		r.Continue()
	} else {
		r.Kill()
		sleep(ctx, step.For)
		err = r.Restart(ctx, step.Kind == history.KillServer)
	}
	if d.Form != server.Standalone {
		err = errors.Join(err, d.Settled(ctx))
	}
	if d.FailsOver() && !slices.Contains(d.Primaries(ctx), r) {
		e.Fault = history.Failover
	}
	s.note(e)
	return err
}
