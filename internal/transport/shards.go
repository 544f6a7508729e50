package transport

import (
	"sync"

	"github.com/redis/go-redis/v9"
)

// shards are the sources of streams to the primaries of a Cluster. They are only used if the Cluster client itself has
// no hooks: those would not see commands on a stream. The hooks of a primary's own client do.
type shards struct {
	hooks hooks    // of the Cluster client itself
	of    sync.Map // from *redis.Client to *streamSource
}

// newShard makes the source for a primary, unless the Transport closes. It closes the sources of servers that have
// left: the Cluster client has closed their clients, whose pools are empty now.
func (t *Transport) newShard(node *redis.Client) *streamSource {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return nil
	}
	at, known := t.shards.of.LoadOrStore(node, newStreamSource(t, node))
	if !known {
		for other, o := range t.shards.of.Range {
			if other != any(node) && other.(*redis.Client).PoolStats().TotalConns == 0 {
				t.shards.of.Delete(other)
				t.spawn(o.(*streamSource).close)
			}
		}
	}
	return at.(*streamSource)
}

// close closes all sources. Transport.closing must be set, so that no new ones are made.
func (s *shards) close() {
	if s == nil {
		return
	}
	for _, o := range s.of.Range {
		o.(*streamSource).close()
	}
}

// A scout is a command that finds out whether a Cluster client has hooks.
type scout struct {
	once
	found *hooks
}

// Name looks for hooks: a Cluster client asks for the name once its hooks have run, to find the command's server.
func (s *scout) Name() string {
	s.found.detect()
	return s.once.Name()
}
