package transport

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// What a client can do tells what it is of. A decorator that embeds one of
// go-redis' clients can do what that can, and is known as it is; one that embeds
// [redis.UniversalClient] hides which it is.

// A server is a client of one server, or of a primary by Sentinel.
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

// CanListen says whether the client can be asked for a subscription before the
// channel is named, which an inbox does. A Ring cannot, as the channel decides
// which of its servers that is on: it panics, also inside of a decorator.
func CanListen(rdb redis.UniversalClient) (ok bool) {
	defer func() { ok = recover() == nil }()
	if ps := rdb.Subscribe(context.Background()); ps != nil { // no I/O
		_ = ps.Close()
	}
	return true
}
