package transport

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/ending"
)

// After a failover an address can lead to the new primary, while older connections still lead to the old one. The old
// primary answers READONLY if it has become a replica, and NOREPLICAS if it was cut off and min-replicas-to-write is
// set. A new connection follows the address. So after such an answer connections to that server are not used again.
//
// go-redis closes a connection that has answered READONLY. It closes neither the others in its pool nor one that has
// answered NOREPLICAS. Each of these would make one more call fail.

// retireInterval is the least time between two retirements. A primary that has lost its replicas also answers
// NOREPLICAS while they are away, and then new connections do not help.
const retireInterval = stall

// errOldPrimary makes go-redis close the connection to which it was about to write.
var errOldPrimary = errors.New("the connection may lead to a server that is no longer the primary")

// A discard is an argument that go-redis cannot encode: it sends nothing and closes the connection.
type discard struct{}

func (discard) MarshalBinary() ([]byte, error) { return nil, errOldPrimary }

// retireIdle closes the idle connections to a server that has answered that it accepts no writes. It does so once in
// retireInterval, and does not wait.
func (t *Transport) retireIdle(name string, at server) {
	t.spawnUnlessRunning("retire "+name, func() {
		t.mu.Lock()
		t.spawn(func() { closeIdle(t.life, at) }) // on its own: a dial may hang, and must not delay the next retirement
		t.mu.Unlock()
		ending.Pause(t.life, nil, retireInterval)
	})
}

// closeIdle closes the connections that are idle now. If a call takes one meanwhile, go-redis dials another one for the
// discard, and closes that.
func closeIdle(ctx context.Context, at server) {
	if c, ok := at.(*redis.Client); ok {
		at = c.WithTimeout(c.Options().ReadTimeout) // the same pool without the hooks, which must not see these commands
	}
	command := func() redis.Cmder { return once{redis.NewCmd(ctx, evalsha, discard{})} }
	onIdle(ctx, at, at.PoolStats(), 0, command)
}
