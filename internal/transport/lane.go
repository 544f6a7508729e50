package transport

import (
	"context"
	"math"
	"slices"
	"time"
)

const (
	// leaders is how many batches of one server are on the wire at most, while
	// they are answered in time. More leave less to each, and a batch costs the
	// same few system calls whatever its size; with one the wire is idle while
	// it hands out replies.
	leaders = 2
	// patience is how long a queue is left without a leader before it gets one
	// more, up to maxLeaders: they may be slow because the server hangs, or one
	// connection, or because the way is long.
	patience   = time.Millisecond
	maxLeaders = 32
	maxBatch   = 512
)

// A lane is the way to one server. A server that hangs holds up no call to
// another one, since no pipeline holds both.
type lane struct {
	t      *Transport
	server string
	limit  int // leaders, or no limit where it is not known which server a key is on

	// Guarded by Transport.mu:

	active int        // leaders
	queue  []*request // longest first, those whose callers have gone among them
	gone   int        // how many in the queue
	takes  int        // how often a leader has taken from the queue
	seen   int        // takes when relief was called for
	armed  bool       // relief is called for
	relief *time.Timer
}

// server returns on which server the call's lock is, if that is known without
// I/O. The name is the client's, which follows a failover.
func (t *Transport) server(c *Call) (name string, known bool) {
	if t.many == nil {
		return "", t.single != nil
	}
	if len(c.Keys) == 0 || !t.routed.Load() {
		return "", false
	}
	node, err := t.many.MasterForKey(context.Background(), c.Keys[0])
	if err != nil {
		return "", false
	}
	return node.Options().Addr, true
}

// Server names the server that has the key, by what a Cluster client knows of the
// layout at this moment; "" where there is but one, or nothing is known yet. It
// does no I/O.
func (t *Transport) Server(key string) string {
	if t.many == nil {
		return ""
	}
	name, _ := t.server(&Call{Keys: []string{key}})
	return name
}

// lane needs t.mu.
func (t *Transport) lane(server string, known bool) *lane {
	l := t.lanes[server]
	if l != nil {
		return l
	}
	for name, old := range t.lanes { // servers come and go
		if old.active == 0 && name != "" {
			delete(t.lanes, name)
		}
	}
	l = &lane{t: t, server: server, limit: leaders}
	if !known {
		l.limit = math.MaxInt
	}
	t.lanes[server] = l
	return l
}

// submit sends the request by a worker, or queues it behind the leaders.
func (t *Transport) submit(r *request, server string, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lane(server, known)
	r.lane = l
	if l.active < l.limit {
		l.active++
		b := &batch{lane: l}
		b.add(r)
		t.start(b)
		return
	}
	l.queue = append(l.queue, r)
	l.callRelief()
}

// take returns the next batch, or nil if nobody waits. It needs t.mu.
func (l *lane) take() *batch {
	n := min(len(l.queue), maxBatch)
	if n == 0 {
		return nil
	}
	l.takes++
	b := &batch{lane: l, requests: make([]*request, 0, n)}
	for _, r := range l.queue[:n] {
		if r.left {
			l.gone--
			continue
		}
		b.add(r)
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if len(b.requests) == 0 {
		return l.take()
	}
	return b
}

// drop notes that one in the queue has left. It needs t.mu.
func (l *lane) drop() {
	if l.gone++; l.gone > 32 && l.gone > len(l.queue)/2 {
		l.queue = slices.DeleteFunc(l.queue, func(r *request) bool { return r.left })
		l.gone = 0
	}
}

// callRelief makes sure that a queue is not left alone. It needs t.mu.
func (l *lane) callRelief() {
	if l.armed {
		return
	}
	l.armed, l.seen = true, l.takes
	if l.relief == nil {
		l.relief = time.AfterFunc(patience, l.relieve)
	} else {
		l.relief.Reset(patience)
	}
}

// relieve adds a leader if none has come for as long as patience lasts.
func (l *lane) relieve() {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	l.armed = false
	if len(l.queue) == 0 {
		return
	}
	if l.seen == l.takes && l.active < maxLeaders {
		if b := l.take(); b != nil {
			l.active++
			l.t.start(b)
		}
	}
	if len(l.queue) > 0 && l.active < maxLeaders {
		l.callRelief()
	}
}

// succeed returns what a leader sends next. Without it, the leader is none any
// more. It needs t.mu.
func (l *lane) succeed() *batch {
	if l.active <= l.limit {
		if b := l.take(); b != nil {
			return b
		}
	} else if len(l.queue) > 0 {
		l.callRelief() // one that came as relief goes, the others stay
	}
	l.active--
	return nil
}

// Knows says that it is known which server has a key: that the client is one of
// go-redis, or embeds one. Of any other all there is to go by is
// [redis.UniversalClient], which sends a command to a server of its choice.
func (t *Transport) Knows() bool { return t.single != nil || t.many != nil }

// OneServer says that a script may name the keys of any locks: they are all on one server.
func (t *Transport) OneServer() bool { return t.single != nil }
