// Way locks and unlocks a few times while nobody else wants the lock, and writes to a folder what each pair went
// through. TestWayOfALockAndUnlock builds it with -cover and reads that.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/coverage"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// pairs is how many pairs are written. A timer of the client's own may fire during some of them.
const pairs = 10

func main() {
	if err := walk(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "way:", err)
		os.Exit(1)
	}
}

func walk(addr, folder string) error {
	var frames atomic.Int64
	rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &deep{conn, &frames}, err
	}})
	defer func() { _ = rdb.Close() }()
	c, err := relock.New(rdb)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := c.NewLock("way")
	for range 100 { // then what only a first call does is over
		if err := pair(ctx, l); err != nil {
			return err
		}
	}
	for i := range pairs {
		if err := pair(ctx, l); err != nil { // to write the pair before took long: a stream that was idle is checked
			return err
		}
		frames.Store(0)
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		if err := pair(ctx, l); err != nil {
			return err
		}
		if err := write(filepath.Join(folder, strconv.Itoa(i)), frames.Load()); err != nil {
			return err
		}
	}
	return nil
}

func pair(ctx context.Context, l *relock.Lock) error {
	if err := l.Lock(ctx); err != nil {
		return err
	}
	return l.Unlock()
}

func write(folder string, frames int64) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if err := coverage.WriteMetaDir(folder); err != nil {
		return err
	}
	if err := coverage.WriteCountersDir(folder); err != nil {
		return err
	}
	return os.WriteFile(folder+".frames", []byte(strconv.FormatInt(frames, 10)), 0o600)
}

// deep is a connection that notes how many functions lie between Lock and a write, with Lock.
type deep struct {
	net.Conn
	frames *atomic.Int64
}

func (d *deep) Write(b []byte) (int, error) {
	callers := make([]uintptr, 100)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for n := int64(1); ; n++ {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "relock.(*Lock).Lock") {
			d.frames.Store(n)
		}
		if !more {
			break
		}
	}
	return d.Conn.Write(b)
}
