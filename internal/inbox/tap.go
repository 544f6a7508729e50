package inbox

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

var errNodeClosed = errors.New("the redis client of the node has been closed")

// tap is one channel's share of a wire: the feed of one link.
type tap struct {
	s       *Shards
	box     *box
	channel string
	news    chan struct{} // capacity one: there are frames, or an end
	wire    *wire         // set by Subscribe

	mu     sync.Mutex // protects following fields
	frames []any
	err    error // why there will be no more
}

// Subscribe finds the channel's server and subscribes there. It blocks only as long as Node does.
func (t *tap) Subscribe(ctx context.Context, _ ...string) error {
	s := t.s
	doubted := s.doubted(t.box)
	if doubted != nil {
		s.cfg.Moved()
	}
	name, node, err := s.cfg.Node(ctx, t.channel)
	if err != nil {
		s.cfg.Moved()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err() // Node took so long that the next link has begun, perhaps with this wire
	}
	// A Cluster client closes the clients of nodes that are gone. A client whose node still serves was closed
	// by its owner, for good.
	if old, ok := s.gone[name]; ok {
		if name == "" || old == node {
			return redis.ErrClosed
		}
		delete(s.gone, name)
	}
	w := s.wires[name]
	if w == nil || w == doubted || !w.add(t) {
		w = s.newWire(name, node)
		w.add(t)
		s.wires[name] = w
	}
	t.wire, t.box.last = w, t
	return nil
}

// Receive waits for the next frame. After the last one it returns why there are no more.
func (t *tap) Receive(ctx context.Context) (any, error) {
	frame, err := t.next(ctx)
	if _, acknowledged := frame.(*redis.Subscription); !acknowledged || t.s.cfg.Serves == nil {
		return frame, err
	}
	// Asked after the acknowledgement: a server that stops serving the channel after this tells its
	// subscribers.
	if err := t.s.cfg.Serves(ctx, t.wire.node, t.channel); err != nil {
		t.end(err) // the connection is not to blame
		t.s.cfg.Moved()
		return nil, err
	}
	return frame, nil
}

func (t *tap) next(ctx context.Context) (any, error) {
	for {
		t.mu.Lock()
		if len(t.frames) > 0 {
			frame := t.frames[0]
			t.frames = t.frames[1:]
			t.mu.Unlock()
			return frame, nil
		}
		err := t.err
		t.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-t.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close takes the channel off the wire.
func (t *tap) Close() error {
	if t.wire != nil {
		t.wire.leave(t)
	}
	return nil
}

// push adds a frame without waiting, because the goroutine that reads the wire must not block.
func (t *tap) push(frame any) {
	t.mu.Lock()
	t.frames = append(t.frames, frame)
	t.mu.Unlock()
	t.wake()
}

func (t *tap) end(err error) {
	t.mu.Lock()
	t.err = err
	t.mu.Unlock()
	t.wake()
}

func (t *tap) wake() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}
