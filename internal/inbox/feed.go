package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	errNodeClosed = errors.New("the redis client of the node has been closed")
	errElsewhere  = errors.New("another server has the channel than the one that is being dialled")
)

// A channelFeed is the part of a sharedConn that belongs to one channel. It is the feed of one link.
type channelFeed struct {
	s       *Shards
	box     *box
	channel string
	wakeup  chan struct{} // capacity one: frames or err have been set
	conn    *sharedConn   // set by join

	mu     sync.Mutex // guards the following fields
	frames []any
	err    error // why no more frames come
}

// Subscribe finds the channel's server, subscribes there, and waits until the connection is dialled. A dial may take
// long, for example if the provider of credentials is slow. So Subscribe goes on waiting, unless another server has the
// channel by now. link is the context of the link that subscribes.
func (f *channelFeed) Subscribe(link context.Context, _ ...string) error {
	if err := f.join(link); err != nil {
		return err
	}
	look := time.NewTicker(ackTimeout)
	defer look.Stop()
	for c := f.conn; ; {
		select {
		case <-c.dialled:
			return nil
		case <-c.ctx.Done():
			return nil // Receive says why
		case <-link.Done():
			return link.Err()
		case <-look.C:
		}
		f.s.cfg.Moved()
		if name, node, err := f.s.cfg.Node(link, f.channel); err == nil && (name != c.name || node != c.node) {
			return errElsewhere
		}
	}
}

// join adds the feed to the connection to the channel's server. It blocks only as long as Node does.
func (f *channelFeed) join(link context.Context) error {
	s := f.s
	suspected := s.suspectedConn(f.box)
	if suspected != nil {
		s.cfg.Moved()
	}
	name, node, err := s.cfg.Node(link, f.channel)
	if err != nil {
		s.cfg.Moved()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if link.Err() != nil {
		return link.Err() // Node took so long that the next link may have joined already, over the same connection
	}
	// A Cluster client closes the clients of nodes that have left, and makes a new one if a node comes back. If Node still
	// returns the closed client, the user has closed the redis client.
	if old, ok := s.closedClients[name]; ok {
		if name == "" || old == node {
			return redis.ErrClosed
		}
		delete(s.closedClients, name)
	}
	c := s.conns[name]
	if c == nil || c == suspected || !c.add(f) {
		c = s.newConn(name, node)
		c.add(f)
		s.conns[name] = c
	}
	f.conn, f.box.lastFeed = c, f
	return nil
}

// Receive waits for the next frame. After the last one it returns the error that ended the feed.
func (f *channelFeed) Receive(ctx context.Context) (any, error) {
	frame, err := f.next(ctx)
	if _, acknowledged := frame.(*redis.Subscription); !acknowledged || f.s.cfg.Serves == nil {
		return frame, err
	}
	// Ask only after the acknowledgement. If the server stops serving the channel after that, it unsubscribes the feed.
	if err := f.s.cfg.Serves(ctx, f.conn.node, f.channel); err != nil {
		f.end(err) // so that suspectedConn does not suspect the connection
		f.s.cfg.Moved()
		return nil, err
	}
	return frame, nil
}

func (f *channelFeed) next(ctx context.Context) (any, error) {
	for {
		f.mu.Lock()
		if len(f.frames) > 0 {
			frame := f.frames[0]
			f.frames = f.frames[1:]
			f.mu.Unlock()
			return frame, nil
		}
		err := f.err
		f.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-f.wakeup:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close unsubscribes the channel.
func (f *channelFeed) Close() error {
	if f.conn != nil {
		f.conn.leave(f)
	}
	return nil
}

// push adds a frame without waiting, because the goroutine that reads the connection must not block.
func (f *channelFeed) push(frame any) {
	f.mu.Lock()
	f.frames = append(f.frames, frame)
	f.mu.Unlock()
	f.wake()
}

func (f *channelFeed) end(err error) {
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	f.wake()
}

func (f *channelFeed) wake() {
	select {
	case f.wakeup <- struct{}{}:
	default:
	}
}
