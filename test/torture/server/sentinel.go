package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/redis/go-redis/v9"
)

// MasterName is what the Sentinels call the primary.
const MasterName = "main"

// sentinelConf has a primary count as down soon, and a failover tried again soon.
const sentinelConf = `port %s
bind 127.0.0.1
dir %s
sentinel monitor ` + MasterName + ` 127.0.0.1 %s 2
sentinel down-after-milliseconds ` + MasterName + ` 700
sentinel failover-timeout ` + MasterName + ` 2500
sentinel parallel-syncs ` + MasterName + ` 2
`

// sentinel starts a primary, two replicas and three Sentinels.
func (d *Deployment) sentinel(ctx context.Context) error {
	if err := d.add(ctx, 3); err != nil {
		return err
	}
	for _, replica := range d.Nodes[1:] {
		if err := d.follow(ctx, replica, d.Nodes[0]); err != nil {
			return err
		}
	}
	for i := range 3 {
		w, err := startWatcher(ctx, d.dir, fmt.Sprintf("sentinel%d", i), d.Nodes[0].port)
		if err != nil {
			return err
		}
		d.watchers = append(d.watchers, w)
	}
	d.primary.Store(d.Nodes[0])
	return d.Settled(ctx)
}

// startWatcher starts a Sentinel. Its clock is the machine's: it would do nothing
// for long after a step.
func startWatcher(ctx context.Context, dir, name, primary string) (*Redis, error) {
	w := &Redis{Name: name, dir: filepath.Join(dir, name)}
	w.command = func() ([]string, error) {
		conf := filepath.Join(w.dir, "sentinel.conf")
		return []string{conf, "--sentinel", "--logfile", filepath.Join(w.dir, "log")},
			os.WriteFile(conf, fmt.Appendf(nil, sentinelConf, w.port, w.dir, primary), 0o600)
	}
	if err := w.launch(ctx); err != nil {
		return nil, err
	}
	// Its own rhythm is made faster. It trusts what a replica has said of itself for
	// five pings, and asks that once a second.
	return w, w.RDB.Do(ctx, "SENTINEL", "DEBUG", "info-period", "200", "publish-period", "200", "ask-period", "200",
		"ping-period", "250", "tilt-trigger", "60000").Err()
}

// watched is the primary by the word of one Sentinel, and whether that one knows
// everybody and has nothing to do.
func (d *Deployment) watched(ctx context.Context, w *Redis) (primary *Redis, settled bool, err error) {
	known, err := w.RDB.Do(ctx, "SENTINEL", "MASTER", MasterName).Result()
	if err != nil {
		return nil, false, err
	}
	says := pairs(known)
	addr := net.JoinHostPort(says["ip"], says["port"])
	i := slices.IndexFunc(d.Nodes, func(r *Redis) bool { return r.Addr() == addr })
	if i < 0 {
		return nil, false, errors.New("a Sentinel has an unknown primary: " + addr)
	}
	settled = says["flags"] == "master" && says["num-slaves"] == "2" && says["num-other-sentinels"] == "2"
	return d.Nodes[i], settled, nil
}

// pairs reads a reply of names and values, of either protocol.
func pairs(reply any) map[string]string {
	all := map[string]string{}
	switch reply := reply.(type) {
	case map[any]any:
		for name, value := range reply {
			all[fmt.Sprint(name)] = fmt.Sprint(value)
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			all[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
		}
	}
	return all
}

// agreed is the primary by the word of all Sentinels and by its own, when all
// others follow it.
func (d *Deployment) agreed(ctx context.Context) (*Redis, error) {
	var primary *Redis
	for _, w := range d.watchers {
		says, settled, err := d.watched(ctx, w)
		switch {
		case err != nil:
			return nil, err
		case !settled || primary != nil && says != primary:
			return nil, errors.New("the Sentinels do not agree")
		}
		primary = says
	}
	for _, r := range d.Nodes {
		if r == primary {
			if !isPrimary(ctx, r) {
				return nil, errors.New("the primary is none")
			}
			continue
		}
		if err := linked(ctx, r); err != nil {
			return nil, err
		}
	}
	return primary, nil
}

// The ways in which a primary that Sentinels watch stops being one. Half of the
// times it is relieved in order, and serves until it is told: so that two hold.
const (
	killed = iota
	hung   // it goes on when another one has been promoted, and does not know
	ways   = 4
)

// FailOver ends a primary in one of these ways, and returns when another has its place.
func (d *Deployment) FailOver(ctx context.Context, way int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.Primary()
	switch way % ways {
	case killed:
		old.Kill()
	case hung:
		old.Stop()
	}
	err := until(ctx, startWithin, func() error {
		if way := way % ways; way != killed && way != hung {
			d.relieve(ctx, old)
		}
		return d.promoted(ctx, old)
	})
	switch way % ways {
	case killed:
		err = errors.Join(err, old.Restart(ctx, true))
	case hung:
		old.Continue()
	}
	return errors.Join(err, d.Settled(ctx))
}

// relieve asks for a failover, unless one is under way or has been: a Sentinel
// gives it up in silence where it does not know yet how a replica is.
func (d *Deployment) relieve(ctx context.Context, old *Redis) {
	if primary, settled, err := d.watched(ctx, d.watchers[0]); err == nil && settled && primary == old {
		_ = d.watchers[0].RDB.Do(ctx, "SENTINEL", "FAILOVER", MasterName).Err()
	}
}

func (d *Deployment) promoted(ctx context.Context, old *Redis) error {
	for _, w := range d.watchers {
		next, _, err := d.watched(ctx, w)
		switch {
		case err != nil:
			return err
		case next == old:
			return errors.New("nobody has been promoted")
		case !isPrimary(ctx, next):
			return errors.New("who was promoted is no primary yet")
		}
	}
	return nil
}

func (d *Deployment) sentinelClient() redis.UniversalClient {
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: MasterName, SentinelAddrs: d.WatcherAddrs(), ReadTimeout: quick, DialTimeout: quick, ClientName: ClientName,
	})
}

// WatcherAddrs are the Sentinels' addresses.
func (d *Deployment) WatcherAddrs() (all []string) {
	for _, w := range d.watchers {
		all = append(all, w.Addr())
	}
	return all
}
