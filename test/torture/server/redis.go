// Package server runs redis-server processes for the rig, and does to them what
// operators, kernels and clocks do.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/spawn"
)

// startWithin bounds the wait for a server's first answer.
const startWithin = 15 * time.Second

// Redis is one redis-server process, on a port of the loopback interface that
// it keeps when it is restarted. Its methods are for one goroutine at a time.
type Redis struct {
	Name  string
	dir   string
	port  string
	args  []string
	clock *Clock
	proc  *Process
	pid   atomic.Int64  // of proc
	RDB   *redis.Client // past every proxy

	command func() ([]string, error) // what redis-server is started with; nil: to keep data
}

// Program is what is started.
var Program = "redis-server"

// ClientName is that of the rig's own connections.
const ClientName = "rig"

// Start starts a server that keeps its data in an append-only file under dir.
// What it has answered survives a SIGKILL: it writes the file before it answers,
// and never waits for the disk.
func Start(ctx context.Context, dir, name string, clock *Clock, args ...string) (*Redis, error) {
	r := &Redis{Name: name, dir: filepath.Join(dir, name), clock: clock, args: args}
	return r, r.launch(ctx)
}

// quick is the time-out of the rig's own connections.
const quick = time.Second

// launch finds a port, and starts the server there.
func (r *Redis) launch(ctx context.Context) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	const attempts = 5 // the port found free may be taken before the server binds it
	var err error
	for range attempts {
		if r.port, err = freePort(); err != nil {
			return err
		}
		r.RDB = redis.NewClient(&redis.Options{
			Addr: r.Addr(), MaxRetries: 3, DialerRetries: 1, PoolSize: 16, ClientName: ClientName,
			DialTimeout: quick, ReadTimeout: quick,
		})
		if err = r.start(ctx); err == nil {
			return nil
		}
		_ = r.RDB.Close()
	}
	return fmt.Errorf("redis-server %s: %w", r.Name, err)
}

// freePort returns a port that is free, and so is the one of a cluster's bus.
func freePort() (string, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port < 55000 {
			return strconv.Itoa(port), nil
		}
	}
}

func (r *Redis) start(ctx context.Context) error {
	args := r.keepsData()
	if r.command != nil {
		var err error
		if args, err = r.command(); err != nil {
			return err
		}
	}
	cmd := exec.Command(Program, args...)
	cmd.Env = append(os.Environ(), r.clock.env()...)
	proc, err := Run(cmd)
	if err != nil {
		return err
	}
	r.proc = proc
	r.pid.Store(int64(proc.PID()))
	if err := r.awaitPong(ctx); err != nil {
		proc.Kill()
		return err
	}
	return nil
}

func (r *Redis) keepsData() []string {
	return append([]string{
		"--port", r.port, "--bind", "127.0.0.1", "--dir", r.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0",
		"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
		"--logfile", filepath.Join(r.dir, "log"), "--enable-debug-command", "local",
		"--maxmemory-policy", "noeviction",
		"--slowlog-log-slower-than", "10000", "--slowlog-max-len", "1024",
	}, r.args...)
}

func (r *Redis) awaitPong(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := r.RDB.Ping(ctx).Err()
		select {
		case <-r.proc.Exited:
			return errors.New("exited")
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-again.C:
		}
	}
}

// Addr is where the server listens.
func (r *Redis) Addr() string { return "127.0.0.1:" + r.port }

// Stop freezes the server; its connections stay open.
func (r *Redis) Stop() { r.proc.Signal(syscall.SIGSTOP) }

// PID is the server's process, which another goroutine may be about to start again.
func (r *Redis) PID() int { return int(r.pid.Load()) }

// Continue ends a freeze.
func (r *Redis) Continue() { r.proc.Signal(syscall.SIGCONT) }

// Kill ends the server at once.
func (r *Redis) Kill() { r.proc.Kill() }

// Restart starts the server after a Kill, with the data that it had, or none.
func (r *Redis) Restart(ctx context.Context, withData bool) error {
	if !withData {
		if err := os.RemoveAll(filepath.Join(r.dir, "appendonlydir")); err != nil {
			return err
		}
	}
	return r.start(ctx)
}

// Close ends the server for good.
func (r *Redis) Close() {
	_ = r.RDB.Close()
	r.proc.Kill()
}

// Process is a program that dies with this one.
type Process struct {
	cmd    *exec.Cmd
	Exited <-chan struct{} // closed when it has been waited for
}

// Run starts cmd.
func Run(cmd *exec.Cmd) (*Process, error) {
	exited, err := spawn.Start(cmd)
	return &Process{cmd: cmd, Exited: exited}, err
}

// PID returns the process' id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal; to a process that has gone it does nothing.
func (p *Process) Signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// Kill ends the process, stopped or not, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.Exited
}

// OK reports whether the process ended by itself with success.
func (p *Process) OK() bool { return p.cmd.ProcessState != nil && p.cmd.ProcessState.Success() }
