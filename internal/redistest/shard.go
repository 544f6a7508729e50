package redistest

import (
	"fmt"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// Shard makes the server know sharded pub/sub, which miniredis does not, and returns what moves slots away from it. A
// server without it is like one before Redis 7.0.
func (s *Server) Shard() *Shard {
	sh := &Shard{channels: make(map[string]map[*server.Peer]bool), counted: make(map[*server.Peer]bool)}
	for name, do := range map[string]server.Cmd{
		"SSUBSCRIBE": sh.subscribe, "SUNSUBSCRIBE": sh.unsubscribe, "SPUBLISH": sh.publish,
	} {
		if err := s.srv.Register(name, do); err != nil {
			panic("redistest: " + err.Error())
		}
	}
	s.mu.Lock()
	s.shard = sh
	s.mu.Unlock()
	return sh
}

// Shard is the sharded channels of a Server.
type Shard struct {
	mu       sync.Mutex // protects following fields; what is written under it is not waited for
	channels map[string]map[*server.Peer]bool
	counted  map[*server.Peer]bool // is removed when it ends
	refusal  func(channel string) string
}

// Subscribers is how many connections are subscribed to a channel.
func (sh *Shard) Subscribers(channel string) int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return len(sh.channels[channel])
}

// Channels is how many channels anybody is subscribed to.
func (sh *Shard) Channels() int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return len(sh.channels)
}

// Connections is how many connections are subscribed to anything.
func (sh *Shard) Connections() int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	peers := make(map[*server.Peer]bool)
	for _, channel := range sh.channels {
		for p := range channel {
			peers[p] = true
		}
	}
	return len(peers)
}

// Refuse answers subscriptions with the error that reason returns, unless that is "". nil: none.
func (sh *Shard) Refuse(reason func(channel string) string) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.refusal = reason
}

// MoveAway unsubscribes everybody from a channel, as a server does whose slot has gone to another.
func (sh *Shard) MoveAway(channel string) {
	sh.mu.Lock()
	peers := sh.channels[channel]
	delete(sh.channels, channel)
	sh.mu.Unlock()
	for p := range peers {
		push(p, "sunsubscribe", channel, 0)
		p.Flush()
	}
}

func push(p *server.Peer, kind, channel string, n int) {
	p.Block(func(w *server.Writer) {
		w.WritePushLen(3)
		w.WriteBulk(kind)
		w.WriteBulk(channel)
		w.WriteInt(n)
	})
}

func (sh *Shard) subscribe(p *server.Peer, _ string, args []string) {
	sh.mu.Lock()
	if !sh.counted[p] {
		sh.counted[p] = true
		p.OnDisconnect(func() { sh.forget(p) })
	}
	var refused string
	for _, channel := range args {
		if sh.refusal != nil && refused == "" {
			refused = sh.refusal(channel)
		}
	}
	for _, channel := range args {
		if refused != "" {
			break
		}
		if sh.channels[channel] == nil {
			sh.channels[channel] = make(map[*server.Peer]bool)
		}
		sh.channels[channel][p] = true
	}
	sh.mu.Unlock()
	if refused != "" {
		p.WriteError(refused)
		return
	}
	for _, channel := range args {
		push(p, "ssubscribe", channel, 1)
	}
}

func (sh *Shard) unsubscribe(p *server.Peer, _ string, args []string) {
	for _, channel := range args {
		sh.mu.Lock()
		sh.remove(channel, p)
		sh.mu.Unlock()
		push(p, "sunsubscribe", channel, 0)
	}
}

// remove needs sh.mu.
func (sh *Shard) remove(channel string, p *server.Peer) {
	delete(sh.channels[channel], p)
	if len(sh.channels[channel]) == 0 {
		delete(sh.channels, channel)
	}
}

func (sh *Shard) forget(p *server.Peer) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	delete(sh.counted, p)
	for channel := range sh.channels {
		sh.remove(channel, p)
	}
}

func (sh *Shard) publish(p *server.Peer, _ string, args []string) {
	if len(args) != 2 {
		p.WriteError(fmt.Sprintf("ERR SPUBLISH with %d arguments", len(args)))
		return
	}
	sh.mu.Lock()
	var peers []*server.Peer
	for to := range sh.channels[args[0]] {
		peers = append(peers, to)
	}
	sh.mu.Unlock()
	for _, to := range peers {
		to.Block(func(w *server.Writer) {
			w.WritePushLen(3)
			w.WriteBulk("smessage")
			w.WriteBulk(args[0])
			w.WriteBulk(args[1])
		})
		to.Flush()
	}
	p.WriteInt(len(peers))
}

// count answers PUBSUB SHARDNUMSUB.
func (sh *Shard) count(p *server.Peer, channels []string) {
	p.WriteLen(2 * len(channels))
	for _, channel := range channels {
		p.WriteBulk(channel)
		p.WriteInt(sh.Subscribers(channel))
	}
}
