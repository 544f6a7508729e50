package transport

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// After a failover an address can lead to the new primary, while older connections still lead to the old one. The old
// primary answers READONLY if it has become a replica, and NOREPLICAS if it was cut off and min-replicas-to-write is
// set. A new connection follows the address. So connections to such a server are not used again.
//
// go-redis closes a connection that has answered READONLY. It closes neither the others in its pool nor one that has
// answered NOREPLICAS. Each of them would fail one more call.

// retireInterval is the least time between two retirements. A primary that has lost its replicas also answers
// NOREPLICAS while they are away, and then new connections do not help.
const retireInterval = stall

// errMoved makes go-redis close the connection to which it was about to write.
var errMoved = errors.New("the connection may lead to a server that is no longer the primary")

// A discard is an argument that cannot be encoded: go-redis sends nothing and closes the connection.
type discard struct{}

func (discard) MarshalBinary() ([]byte, error) { return nil, errMoved }

// retireIdle closes the idle connections to the server of a key, after that server has answered that it accepts no
// writes. It does not wait.
func (t *Transport) retireIdle(key string) {
	name, at, ok := t.nodeOf(key)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.closing || now.Sub(t.retired[name]) < retireInterval {
		return
	}
	if t.retired == nil {
		t.retired = make(map[string]time.Time)
	}
	for other, when := range t.retired { // servers come and go
		if now.Sub(when) >= retireInterval {
			delete(t.retired, other)
		}
	}
	t.retired[name] = now
	t.spawn(func() { closeIdle(t.life, at) })
}

// closeIdle closes the connections that are idle now. It checks before each command that there is one, because go-redis
// dials a connection for a command if none is idle.
func closeIdle(ctx context.Context, at server) {
	if c, ok := at.(*redis.Client); ok {
		at = c.WithTimeout(c.Options().ReadTimeout) // the same pool without the hooks, which must not see these commands
	}
	stats := at.PoolStats()
	for range stats.IdleConns {
		if at.PoolStats().IdleConns == 0 {
			break
		}
		_ = at.Process(ctx, once{redis.NewCmd(ctx, evalsha, discard{})})
	}
	if stats.PipelineStats == nil {
		return
	}
	for range stats.PipelineStats.IdleConns {
		if now := at.PoolStats().PipelineStats; now == nil || now.IdleConns == 0 {
			break
		}
		p := at.Pipeline()
		_ = p.Process(ctx, once{redis.NewCmd(ctx, evalsha, discard{})}) // only queues
		_, _ = p.Exec(ctx)
	}
}
