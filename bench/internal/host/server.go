// Package host is what the measurements run on: the server, the links, the cores.
package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/spawn"
)

// Server is a redis-server on a free loopback port that keeps nothing on disk.
type Server struct {
	addr   string
	dir    string
	cmd    *exec.Cmd
	exited <-chan struct{}
	out    bytes.Buffer // read it after exited only
	// Admin is for statistics; its commands are few and its own.
	Admin *redis.Client
}

// ErrNoServer means that there is nothing to measure on.
var ErrNoServer = errors.New("no redis-server on PATH: `make deps` installs one")

// StartServer starts a server, which ends with Stop or with this process. args are added to its command line.
func StartServer(ctx context.Context, args ...string) (*Server, error) {
	return startAny(ctx, func(dir, port string) ([]string, error) {
		return append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no", "--maxclients", "10000"}, args...), nil
	})
}

// MasterName is what a Sentinel calls the server that it watches.
const MasterName = "main"

// StartSentinel starts a Sentinel that watches the server.
func (s *Server) StartSentinel(ctx context.Context) (*Server, error) {
	host, primary, err := net.SplitHostPort(s.addr)
	if err != nil {
		return nil, err
	}
	return startAny(ctx, func(dir, port string) ([]string, error) {
		conf := filepath.Join(dir, "sentinel.conf")
		text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %s %s %s 1\n", port, dir, MasterName, host, primary)
		return []string{conf, "--sentinel"}, os.WriteFile(conf, []byte(text), 0o600)
	})
}

// startAny starts a server whose arguments depend on its folder and its port.
func startAny(ctx context.Context, args func(dir, port string) ([]string, error)) (*Server, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrNoServer
	}
	const attempts = 5 // the port found free may be taken before the server binds it
	for range attempts {
		var s *Server
		if s, err = start(ctx, bin, args); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("starting redis-server: %w", err)
}

func start(ctx context.Context, bin string, args func(dir, port string) ([]string, error)) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "relock-bench-")
	if err != nil {
		return nil, err
	}
	line, err := args(dir, port)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &Server{addr: "127.0.0.1:" + port, dir: dir, cmd: exec.Command(bin, line...)}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	if s.exited, err = spawn.Start(s.cmd); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.Admin = Client(s.addr)
	if err := s.awaitPong(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%w; it said:\n%s", err, s.out.String())
	}
	return s, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

func (s *Server) awaitPong(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		// Another server may have won the port: ours then exits.
		pid, err := s.pid(ctx)
		if err == nil && pid == s.cmd.Process.Pid {
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("redis-server exited")
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", errors.Join(ctx.Err(), err))
		case <-again.C:
		}
	}
}

func (s *Server) pid(ctx context.Context) (int, error) {
	i, err := s.info(ctx, "server")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(i["process_id"])
}

// Addr is the server's address.
func (s *Server) Addr() string { return s.addr }

// Stop ends the server and removes what it left.
func (s *Server) Stop() {
	if s.Admin != nil {
		_ = s.Admin.Close()
	}
	_ = s.cmd.Process.Kill() // fails only if it is gone already
	<-s.exited
	_ = os.RemoveAll(s.dir)
}

// Client is a go-redis client as a user would make it, but that it leaves out
// a handshake that this server does not know.
func Client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr})
}
