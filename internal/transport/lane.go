package transport

import (
	"context"
	"math"
	"slices"
	"time"
)

const (
	// leaders is how many goroutines at most send batches to one server while it answers in time. A batch costs the
	// same few system calls whatever its size, so more leaders with smaller batches cost more. One leader alone would
	// leave the server idle while it hands out replies.
	leaders = 2
	// reliefDelay is how long a queue may wait for a leader before one more is added, up to maxLeaders. The server may
	// be slow or far away, or one connection may hang.
	reliefDelay = time.Millisecond
	maxLeaders  = 32
	maxBatch    = 512
)

// A lane queues the calls to one server, and sends them in batches: one pipeline each. A pipeline has calls to one
// server only, so a server that hangs delays no call to another one. A leader is a goroutine that sends batches.
type lane struct {
	t      *Transport
	server string
	limit  int // usual number of leaders; unlimited if the servers of keys are not known

	// Guarded by Transport.mu:

	active         int        // leaders
	queue          []*request // oldest first; includes requests whose callers have left
	abandoned      int        // requests in queue whose callers have left
	takesSoFar     int        // how often a leader has taken from the queue
	takesWhenArmed int        // takesSoFar when relief was set
	armed          bool       // relief is set
	relief         *time.Timer
}

// server returns the name of the server that has the call's key, if the client knows it without I/O.
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

// lane returns the lane of a server, and makes it if needed. It needs t.mu.
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

// submit starts a leader with the request, or queues the request if the lane has enough leaders.
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
	l.armRelief()
}

// nextBatch takes a batch off the queue. It returns nil if the queue is empty. It needs t.mu.
func (l *lane) nextBatch() *batch {
	n := min(len(l.queue), maxBatch)
	if n == 0 {
		return nil
	}
	l.takesSoFar++
	b := &batch{lane: l, requests: make([]*request, 0, n)}
	for _, r := range l.queue[:n] {
		if r.abandoned {
			l.abandoned--
			continue
		}
		b.add(r)
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if len(b.requests) == 0 {
		return l.nextBatch()
	}
	return b
}

// noteAbandoned counts a queued request whose caller has left, and removes such requests when they are many. It needs
// t.mu.
func (l *lane) noteAbandoned() {
	if l.abandoned++; l.abandoned > 32 && l.abandoned > len(l.queue)/2 {
		l.queue = slices.DeleteFunc(l.queue, func(r *request) bool { return r.abandoned })
		l.abandoned = 0
	}
}

// armRelief sets the timer that adds a leader, unless it is set. It needs t.mu.
func (l *lane) armRelief() {
	if l.armed {
		return
	}
	l.armed, l.takesWhenArmed = true, l.takesSoFar
	if l.relief == nil {
		l.relief = time.AfterFunc(reliefDelay, l.addLeader)
	} else {
		l.relief.Reset(reliefDelay)
	}
}

// addLeader runs on a timer. It adds a leader if none has taken from the queue since the timer was set.
func (l *lane) addLeader() {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	l.armed = false
	if len(l.queue) == 0 {
		return
	}
	if l.takesWhenArmed == l.takesSoFar && l.active < maxLeaders {
		if b := l.nextBatch(); b != nil {
			l.active++
			l.t.start(b)
		}
	}
	if len(l.queue) > 0 && l.active < maxLeaders {
		l.armRelief()
	}
}

// nextOrResign returns the next batch for a leader. If it returns nil, the caller is no longer a leader. It needs t.mu.
func (l *lane) nextOrResign() *batch {
	if l.active <= l.limit {
		if b := l.nextBatch(); b != nil {
			return b
		}
	} else if len(l.queue) > 0 {
		l.armRelief() // this leader is above the limit and resigns, and the others may still be slow
	}
	l.active--
	return nil
}
