package transport

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// New tells the kind of a client by its methods. A decorator that embeds a *redis.Client or *redis.ClusterClient has
// the methods of that client. One that embeds the interface [redis.UniversalClient] lacks them, so its kind is unknown.

// A server is a client of one server, or of the primary that Sentinel names.
type server interface {
	redis.UniversalClient
	Options() *redis.Options
	Conn() *redis.Conn
}

// A cluster is a client of a Cluster.
type cluster interface {
	redis.UniversalClient
	Options() *redis.ClusterOptions
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	ForEachMaster(ctx context.Context, fn func(ctx context.Context, master *redis.Client) error) error
	ReloadState(ctx context.Context)
}

// CanListen reports whether the client can make a subscription without naming a channel, as the inbox does. A Ring
// panics there, also inside a decorator, because it chooses the server by the name of the channel.
func CanListen(rdb redis.UniversalClient) (ok bool) {
	defer func() { ok = recover() == nil }()
	if ps := rdb.Subscribe(context.Background()); ps != nil { // no I/O
		_ = ps.Close()
	}
	return true
}
