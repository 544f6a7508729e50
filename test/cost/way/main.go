// Way locks and unlocks once where nobody else wants the lock, and writes to a folder what
// that went through, for `make way`. It is to be built with -cover.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/coverage"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

func main() {
	if err := walk(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "way:", err)
		os.Exit(1)
	}
}

func walk(addr, folder string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	c, err := relock.New(rdb)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := c.NewLock("way")
	for range 100 { // what only a first call does is over then
		if err := pair(ctx, l); err != nil {
			return err
		}
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := pair(ctx, l); err != nil {
		return err
	}
	if err := coverage.WriteMetaDir(folder); err != nil {
		return err
	}
	return coverage.WriteCountersDir(folder)
}

func pair(ctx context.Context, l *relock.Lock) error {
	if err := l.Lock(ctx); err != nil {
		return err
	}
	return l.Unlock()
}
