package server

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// clusterArgs make nodes that hold an election soon after one is lost.
var clusterArgs = []string{
	"--cluster-enabled", "yes", "--cluster-node-timeout", "800", "--cluster-replica-validity-factor", "0",
	"--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no",
}

// cluster starts six nodes, and joins them with redis-cli.
func (d *Deployment) cluster(ctx context.Context) error {
	if err := d.add(ctx, 6, clusterArgs...); err != nil {
		return err
	}
	return d.join(ctx, "1")
}

// differences are how far the clocks of a skewed cluster's nodes are ahead: by
// more than a request may be late, and behind by more than one may be early.
var differences = []time.Duration{0, 30 * time.Second, -90 * time.Second}

// skewed starts three nodes whose clocks differ.
func (d *Deployment) skewed(ctx context.Context) error {
	for _, by := range differences {
		if err := d.start(ctx, d.clock.Differing(by), clusterArgs...); err != nil {
			return err
		}
	}
	return d.join(ctx, "0")
}

// join makes a cluster of the nodes.
func (d *Deployment) join(ctx context.Context, replicas string) error {
	args := append([]string{"--cluster", "create"}, d.Addrs()...)
	args = append(args, "--cluster-replicas", replicas, "--cluster-yes")
	ctx, cancel := context.WithTimeout(ctx, 2*startWithin)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "redis-cli", args...).CombinedOutput(); err != nil {
		return errors.New(string(out))
	}
	return d.Settled(ctx)
}

// Settled waits until every slot is served and every replica is linked.
func (d *Deployment) Settled(ctx context.Context) error {
	if d.Form == Sentinel {
		return until(ctx, startWithin, func() error {
			primary, err := d.agreed(ctx)
			if err == nil {
				d.primary.Store(primary)
			}
			return err
		})
	}
	return until(ctx, startWithin, func() error {
		primaries := 0
		for _, r := range d.Nodes {
			if isPrimary(ctx, r) {
				primaries++
			} else if err := linked(ctx, r); err != nil {
				return err
			}
			if !d.Clustered() {
				continue
			}
			info, err := r.RDB.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") {
				return errors.New("slots are not covered")
			}
		}
		if d.Clustered() && primaries != 3 {
			return errors.New("there are not three primaries")
		}
		return nil
	})
}

// TakeOver kills the primary of one shard, has its replica promoted, and starts
// the old one again as a replica. forced: the replica does not wait for an election.
func (d *Deployment) TakeOver(ctx context.Context, shard int, forced bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	primaries := d.Primaries(ctx)
	if len(primaries) == 0 {
		return errors.New("no primary")
	}
	old := primaries[shard%len(primaries)]
	replica := d.replicaOf(ctx, old)
	if replica == nil {
		return errors.New("no replica")
	}
	old.Kill()
	err := until(ctx, startWithin, func() error {
		if isPrimary(ctx, replica) {
			return nil
		}
		if forced {
			_ = replica.RDB.Do(ctx, "CLUSTER", "FAILOVER", "TAKEOVER").Err()
		}
		return errors.New("the replica has not been promoted")
	})
	return errors.Join(err, old.Restart(ctx, true), d.Settled(ctx))
}

func (d *Deployment) replicaOf(ctx context.Context, primary *Redis) *Redis {
	id, err := primary.RDB.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		return nil
	}
	nodes, err := primary.RDB.ClusterNodes(ctx).Result()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != id {
			continue
		}
		addr, _, _ := strings.Cut(fields[1], "@")
		if i := slices.IndexFunc(d.Nodes, func(r *Redis) bool { return r.Addr() == addr }); i >= 0 {
			return d.Nodes[i]
		}
	}
	return nil
}

// Migrate moves the slot of a key from its primary to another one, key by key
// and not in a hurry.
func (d *Deployment) Migrate(ctx context.Context, key string, pause time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	primaries := d.Primaries(ctx)
	if len(primaries) < 2 {
		return errors.New("no two primaries")
	}
	slot, err := primaries[0].RDB.ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return err
	}
	from, to, err := d.sides(ctx, primaries, int(slot))
	if err != nil {
		return err
	}
	fromID, toID := nodeID(ctx, from), nodeID(ctx, to)
	if err := to.RDB.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID).Err(); err != nil {
		return err
	}
	if err := from.RDB.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID).Err(); err != nil {
		return err
	}
	moved := d.moveKeys(ctx, from, to, int(slot), pause)
	if moved != nil {
		toID = fromID // give up: the slot stays, and what has moved comes back
		from, to = to, from
		_ = d.moveKeys(ctx, from, to, int(slot), 0)
	}
	for _, r := range append([]*Redis{to, from}, primaries...) {
		_ = r.RDB.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", toID).Err() // the others hear of it by gossip as well
	}
	return moved
}

func nodeID(ctx context.Context, r *Redis) string {
	id, _ := r.RDB.Do(ctx, "CLUSTER", "MYID").Text()
	return id
}

// sides returns who serves a slot, and who is to.
func (d *Deployment) sides(ctx context.Context, primaries []*Redis, slot int) (from, to *Redis, err error) {
	for i, p := range primaries {
		nodes, err := p.RDB.ClusterNodes(ctx).Result()
		if err != nil {
			return nil, nil, err
		}
		for line := range strings.Lines(nodes) {
			if fields := strings.Fields(line); len(fields) > 8 && strings.Contains(fields[2], "myself") && serves(fields[8:], slot) {
				return p, primaries[(i+1)%len(primaries)], nil
			}
		}
	}
	return nil, nil, errors.New("nobody serves the slot")
}

// serves says whether a slot is in one of the ranges that CLUSTER NODES shows.
func serves(ranges []string, slot int) bool {
	return slices.ContainsFunc(ranges, func(r string) bool {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		return err == nil && err2 == nil && from <= slot && slot <= to
	})
}

// moveKeys moves the keys of a slot one by one, with a pause before each: in
// between, a lock's two keys are on two nodes.
func (d *Deployment) moveKeys(ctx context.Context, from, to *Redis, slot int, pause time.Duration) error {
	return until(ctx, startWithin, func() error {
		keys, err := from.RDB.ClusterGetKeysInSlot(ctx, slot, 10).Result()
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			wait(ctx, pause)
			host, port, _ := strings.Cut(to.Addr(), ":")
			err := from.RDB.Do(ctx, "MIGRATE", host, port, key, 0, 1000).Err()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
		}
		return errors.New("keys are left")
	})
}

func wait(ctx context.Context, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}
