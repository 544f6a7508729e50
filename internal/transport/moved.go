package transport

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// After a failover an address can lead to the new primary, while connections that were made
// before still lead to the old one. The old one answers READONLY if it has become a replica, and
// NOREPLICAS if it was cut off and min-replicas-to-write is set. A new connection follows the
// address. So connections to such a server are not used again.
//
// go-redis closes a connection that has answered READONLY, but neither the others in its pool nor
// one that has answered NOREPLICAS. Each of them would fail one more call.

// movedAgain is how often connections are retired at most. A primary that has lost its replicas
// answers NOREPLICAS as well, for as long as they are away, and new connections do not help then.
const movedAgain = stall

// takesNoWrites reports whether a server answered that it takes no writes at this time.
func takesNoWrites(err error) bool { return ReadOnly(err) || says(err, "NOREPLICAS") }

// leads reports whether the connection still leads where the address does: it was made only now.
func (s *stream) leads(err error) bool {
	return !ReadOnly(err) && time.Since(s.made) < movedAgain
}

// errMoved has go-redis close the connection to which it would write.
var errMoved = errors.New("the connection may lead to a server that is no longer the primary")

// A discard is an argument that cannot be written. go-redis closes a connection if writing to it
// failed, and nothing was sent.
type discard struct{}

func (discard) MarshalBinary() ([]byte, error) { return nil, errMoved }

// retireIdle closes the idle connections to the server of a key, which has answered that it takes
// no writes. It does not wait.
func (t *Transport) retireIdle(key string) {
	name, at, ok := t.nodeOf(key)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.over || now.Sub(t.retired[name]) < movedAgain {
		return
	}
	if t.retired == nil {
		t.retired = make(map[string]time.Time)
	}
	for other, when := range t.retired { // servers come and go
		if now.Sub(when) >= movedAgain {
			delete(t.retired, other)
		}
	}
	t.retired[name] = now
	t.workers++
	t.running++
	go func() {
		defer t.depart()
		closeIdle(t.life, at)
	}()
}

// closeIdle closes the connections that are idle now. It asks each time whether there is one: for
// a client that has none go-redis would make one.
func closeIdle(ctx context.Context, at server) {
	if c, ok := at.(*redis.Client); ok {
		at = c.WithTimeout(c.Options().ReadTimeout) // the same pool without hooks, which need not see this
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

// nodeOf returns the client of the server that has a key, and the server's name, if both are known
// without I/O.
func (t *Transport) nodeOf(key string) (name string, at server, ok bool) {
	switch {
	case t.many != nil && !t.routed.Load():
		return "", nil, false // the client would ask for the layout first, and wait for it
	case t.many != nil:
		master, err := t.many.MasterForKey(context.Background(), key)
		if err != nil {
			return "", nil, false
		}
		return master.Options().Addr, master, true
	}
	return "", t.single, t.single != nil
}
