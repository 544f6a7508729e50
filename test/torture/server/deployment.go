package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// The forms a Deployment can have.
const (
	Standalone = "standalone" // one server
	Replicated = "replicated" // a primary and a replica, which the rig promotes
	Cluster    = "cluster"    // three primaries with a replica each
	Sentinel   = "sentinel"   // a primary with two replicas, which three Sentinels watch
	Skewed     = "skewed"     // a cluster of three primaries alone, whose clocks differ
)

// A Deployment is a set of servers that clients take for one Redis.
type Deployment struct {
	Name  string // unique in a run; the locks' names begin with it
	Form  string
	Nodes []*Redis
	dir   string
	clock *Clock

	watchers []*Redis // the Sentinels

	mu      sync.Mutex // serialises what changes the roles
	primary atomic.Pointer[Redis]
}

// Deploy starts the servers.
func Deploy(ctx context.Context, form, name, dir string, clock *Clock) (*Deployment, error) {
	d := &Deployment{Name: name, Form: form, dir: filepath.Join(dir, name), clock: clock}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	switch form {
	case Standalone:
		err = d.add(ctx, 1)
	case Replicated:
		if err = d.add(ctx, 2); err == nil {
			err = d.follow(ctx, d.Nodes[1], d.Nodes[0])
		}
	case Cluster:
		err = d.cluster(ctx)
	case Skewed:
		err = d.skewed(ctx)
	case Sentinel:
		err = d.sentinel(ctx)
	default:
		err = errors.New("no such form: " + form)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	d.primary.Store(d.Nodes[0])
	return d, nil
}

func (d *Deployment) add(ctx context.Context, n int, args ...string) error {
	for range n {
		if err := d.start(ctx, d.clock, args...); err != nil {
			return err
		}
	}
	return nil
}

// start adds a server.
func (d *Deployment) start(ctx context.Context, clock *Clock, args ...string) error {
	r, err := Start(ctx, d.dir, fmt.Sprintf("node%d", len(d.Nodes)), clock, args...)
	if err == nil {
		d.Nodes = append(d.Nodes, r)
	}
	return err
}

// Clustered says that the keys are spread over several primaries.
func (d *Deployment) Clustered() bool { return d.Form == Cluster || d.Form == Skewed }

// Resolve returns the address of what a client asks its link for.
func (d *Deployment) Resolve(name string) string {
	if name == "primary" {
		return d.primary.Load().Addr()
	}
	return name
}

// Primary is the server that takes writes; of a cluster, one of them.
func (d *Deployment) Primary() *Redis { return d.primary.Load() }

// Client returns a client past every proxy.
func (d *Deployment) Client() redis.UniversalClient {
	switch d.Form {
	case Cluster, Skewed:
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: d.Addrs(), ReadTimeout: quick, DialTimeout: quick, ClientName: ClientName})
	case Sentinel:
		return d.sentinelClient()
	}
	return redis.NewClient(&redis.Options{
		Addr: "primary:0", ReadTimeout: quick, DialTimeout: quick, DialerRetries: 1,
		Dialer: d.dial, ClientName: ClientName,
	})
}

func (d *Deployment) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, d.Primary().Addr())
}

// Addrs are the nodes' addresses.
func (d *Deployment) Addrs() (all []string) {
	for _, r := range d.Nodes {
		all = append(all, r.Addr())
	}
	return all
}

// Primaries returns the nodes that take writes now.
func (d *Deployment) Primaries(ctx context.Context) (all []*Redis) {
	for _, r := range d.Nodes {
		if isPrimary(ctx, r) {
			all = append(all, r)
		}
	}
	return all
}

func isPrimary(ctx context.Context, r *Redis) bool {
	is, err := r.IsPrimary(ctx)
	return err == nil && is
}

// IsPrimary asks the server what it takes itself for.
func (r *Redis) IsPrimary(ctx context.Context) (bool, error) {
	role, err := r.RDB.Do(ctx, "ROLE").Slice()
	return err == nil && len(role) > 0 && role[0] == "master", err
}

// FailsOver says that the servers choose a new primary by themselves.
func (d *Deployment) FailsOver() bool { return d.Form == Cluster || d.Form == Sentinel }

// Close ends all servers.
func (d *Deployment) Close() {
	for _, r := range slices.Concat(d.watchers, d.Nodes) {
		r.Close()
	}
}

// Own says that a line of CLIENT LIST is of a connection of the rig, of a Sentinel,
// or of a server that has migrated keys.
func Own(line string) bool {
	return strings.Contains(line, " name="+ClientName+" ") || strings.Contains(line, " name=sentinel-") || strings.Contains(line, " cmd=restore")
}

// follow makes replica one of primary, and waits until it has its data.
func (d *Deployment) follow(ctx context.Context, replica, primary *Redis) error {
	host, port, _ := strings.Cut(primary.Addr(), ":")
	return until(ctx, startWithin, func() error {
		if err := replica.RDB.Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
			return err
		}
		return until(ctx, 2*time.Second, func() error { return linked(ctx, replica) })
	})
}

func linked(ctx context.Context, replica *Redis) error {
	info, err := replica.RDB.Info(ctx, "replication").Result()
	if err == nil && !strings.Contains(info, "master_link_status:up") {
		err = errors.New("the replica's link is down")
	}
	return err
}

// until repeats f, until it succeeds or time is up.
func until(ctx context.Context, limit time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// Promote makes a replica the primary: what the old one had not yet passed on is
// lost. The old primary is killed before, or goes on until it is demoted.
func (d *Deployment) Promote(ctx context.Context, kill bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.Primary()
	next := d.Nodes[0]
	if next == old {
		next = d.Nodes[1]
	}
	if kill {
		old.Kill()
	}
	if err := next.RDB.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return err
	}
	d.primary.Store(next)
	if kill {
		if err := old.Restart(ctx, true); err != nil {
			return err
		}
	}
	// Its clients are on the wrong server now.
	if err := old.RDB.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err(); err != nil && !kill {
		return err
	}
	_ = old.RDB.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err()
	return d.follow(ctx, old, next)
}
