package redistest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A Hosting says what a hoster of Redis refuses to its users.
type Hosting struct {
	// Refuses names commands, as "config", and subcommands, as "script|load". They are
	// refused to clients and to scripts alike.
	Refuses []string
	// Says is the error for a refused command. If it is "", the error is that of a server that does not know
	// the command.
	Says string
	// SlotPublish: a script may publish only to channels in the slot of its keys.
	SlotPublish bool
	// KeyNeeded: a script without a key is refused.
	KeyNeeded bool
	// Uncounted: PUBSUB NUMSUB and SHARDNUMSUB count nobody.
	Uncounted bool
	// OneDatabase: only database 0 exists.
	OneDatabase bool
}

// ReadOnly returns the Hosting of a read-only endpoint, as far as relock's scripts are concerned.
func ReadOnly() Hosting {
	return Hosting{
		Refuses: []string{"hset", "hdel", "pexpire", "zadd", "zrem"},
		Says:    "READONLY You can't write against a read only replica.",
	}
}

// Hosted is a proxy in front of a redis-server that refuses what a hoster refuses.
//
// It replaces what it refuses by a script whose reply is the error. So the server itself keeps replies in the order
// of their commands. A script gets a first line that shadows the table "redis" with one that refuses the same
// commands, and so has another SHA at the server: the proxy knows both.
type Hosted struct {
	*RealServer // reached without the proxy
	hosting     Hosting
	prelude     string
	listener    net.Listener

	mu     sync.Mutex // protects following fields
	shas   map[string]string
	conns  map[net.Conn]bool
	closed bool
	wg     sync.WaitGroup
}

// Host starts a redis-server and a proxy in front of it. Both end with t.
func Host(t testing.TB, h Hosting) *Hosted {
	t.Helper()
	p := newHosted(t, h)
	p.RealServer = Real(t)
	p.serve(t)
	return p
}

// HostCluster starts a proxy in front of a Cluster of one server that serves all slots. To
// its clients the proxy is that server.
func HostCluster(t testing.TB, h Hosting) *Hosted {
	t.Helper()
	p := newHosted(t, h)
	_, port, _ := net.SplitHostPort(p.Addr())
	p.RealServer = launch(t, func(r *RealServer) []string {
		return append(r.defaults(), "--cluster-enabled", "yes", "--cluster-port", r.side, "--cluster-announce-port", port)
	})
	p.must("CLUSTER", "ADDSLOTSRANGE", 0, slots-1)
	p.await("all slots are served", func(ctx context.Context) string { return p.lacksCluster(ctx, "cluster_state:ok") })
	p.serve(t)
	return p
}

func newHosted(t testing.TB, h Hosting) *Hosted {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return &Hosted{hosting: h, prelude: h.prelude(), listener: listener, shas: map[string]string{}, conns: map[net.Conn]bool{}}
}

// Addr returns the address of the proxy.
func (p *Hosted) Addr() string { return p.listener.Addr().String() }

// Client returns a client of the proxy, closed when t ends.
func (p *Hosted) Client(t testing.TB, mod ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, &redis.Options{Addr: p.Addr()}, mod)
}

// ClusterClient returns a client of the proxy of a Cluster, closed when t ends.
func (p *Hosted) ClusterClient(t testing.TB) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{p.Addr()}})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Dial connects to the proxy, whatever the address asked for. It fits [NewLink].
func (p *Hosted) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", p.Addr())
}

func (p *Hosted) serve(t testing.TB) {
	p.wg.Go(p.accept)
	t.Cleanup(p.stop)
}

func (p *Hosted) stop() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *Hosted) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.RealServer.Addr())
		if err != nil {
			_ = client.Close()
			continue
		}
		p.relay(client, server)
	}
}

// relay copies data between two connections until either ends.
func (p *Hosted) relay(client, server net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := sync.OnceFunc(func() {
		_, _ = client.Close(), server.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, client)
		delete(p.conns, server)
	})
	p.conns[client], p.conns[server] = true, true
	p.wg.Go(func() {
		defer end()
		_, _ = io.Copy(client, server)
	})
	p.wg.Go(func() {
		defer end()
		r := bufio.NewReader(client)
		for {
			raw, args, err := readRequest(r)
			if err != nil {
				return
			}
			if _, err := server.Write(p.rewrite(raw, args)); err != nil {
				return
			}
		}
	})
	if p.closed { // stop has closed all connections except these
		_, _ = client.Close(), server.Close()
	}
}

// rewrite returns the command that is sent to the server in place of this one.
func (p *Hosted) rewrite(raw []byte, args []string) []byte {
	if len(args) == 0 {
		return raw
	}
	name, sub := strings.ToLower(args[0]), ""
	if len(args) > 1 {
		sub = strings.ToLower(args[1])
	}
	for _, refused := range p.hosting.Refuses {
		if refused == name || refused == name+"|"+sub {
			return standIn("return redis.error_reply(ARGV[1])", p.hosting.refusal(args[0]))
		}
	}
	switch {
	case name == "select" && p.hosting.OneDatabase && sub != "0":
		return standIn("return redis.error_reply(ARGV[1])", "ERR SELECT is not allowed in cluster mode")
	case p.hosting.KeyNeeded && (name == "eval" || name == "evalsha") && len(args) > 2 && args[2] == "0":
		return standIn("return redis.error_reply(ARGV[1])", "ERR Lua scripts without any input keys are not supported.")
	case name == "pubsub" && p.hosting.Uncounted && len(args) == 3 && strings.HasSuffix(sub, "numsub"):
		return standIn("return { ARGV[1], 0 }", args[2])
	case name == "eval" && len(args) > 1:
		p.know(args[1])
		return command(append([]string{args[0], p.prelude + args[1]}, args[2:]...))
	case name == "evalsha" && len(args) > 1:
		p.mu.Lock()
		sha, known := p.shas[sub]
		p.mu.Unlock()
		if !known {
			return standIn("return redis.error_reply(ARGV[1])", "NOSCRIPT No matching script. Please use EVAL.")
		}
		return command(append([]string{args[0], sha}, args[2:]...))
	}
	return raw
}

// know makes EVALSHA find a script that was sent in full.
func (p *Hosted) know(source string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shas[sha1Of(source)] = sha1Of(p.prelude + source)
}

// refusal returns the error for a refused command.
func (h Hosting) refusal(command string) string {
	if h.Says != "" {
		return h.Says
	}
	return fmt.Sprintf("ERR unknown command '%s'", command)
}

// standIn returns a command that makes the server itself give a reply, so that replies stay in the order of commands.
func standIn(script, arg string) []byte { return command([]string{"EVAL", script, "0", arg}) }

func command(args []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.Bytes()
}
