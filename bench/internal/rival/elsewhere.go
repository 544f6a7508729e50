package rival

import (
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/bench/internal/host"
)

// RelockSentinel is the plain lock by a client that asks the Sentinel at the address for the primary.
func RelockSentinel() Rival {
	return elsewhere("relock by Sentinel", "the plain lock, `redis.NewFailoverClient`", func(addr string) redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: host.MasterName, SentinelAddrs: []string{addr}})
	})
}

// RelockCluster is the plain lock on a Cluster. Its nodes' addresses are divided by commas.
func RelockCluster() Rival {
	return elsewhere("relock on a Cluster", "the plain lock, `redis.NewClusterClient`, three primaries", func(addrs string) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(addrs, ",")})
	})
}

func elsewhere(name, settings string, dial func(addr string) redis.UniversalClient) Rival {
	return Rival{
		Name:     name,
		Settings: settings,
		Open: func(addr string, s Setup) (Client, error) {
			rdb := dial(addr)
			c, err := newRelock(rdb, s)
			if err != nil {
				return nil, err
			}
			return &clients{lock: func(name string) Lock { return c.NewLock(name) }, shut: []func() error{c.Close, rdb.Close}}, nil
		},
	}
}
