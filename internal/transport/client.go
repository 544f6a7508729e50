package transport

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// The methods of a client tell its kind. A decorator that embeds one of go-redis' clients has the methods of that client.
// One that embeds [redis.UniversalClient] hides them, so its kind is unknown.

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

// CanListen reports whether the client can open a subscription before the channel is named, as an inbox does. A Ring
// cannot, because the channel decides which server it subscribes to: it panics, also inside a decorator.
func CanListen(rdb redis.UniversalClient) (ok bool) {
	defer func() { ok = recover() == nil }()
	if ps := rdb.Subscribe(context.Background()); ps != nil { // no I/O
		_ = ps.Close()
	}
	return true
}
