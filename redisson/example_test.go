package redisson_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/redisson"
)

// A service in Java takes redisson.getLock("orders"), and this one the same lock.
func ExampleClient_NewLock() {
	client, err := redisson.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}))
	if err != nil {
		log.Fatal(err)
	}
	err = client.NewLock("orders").Do(context.Background(), func(ctx context.Context) error {
		log.Print("neither Go nor Java holds it beside us")
		return context.Cause(ctx) // ErrLost if the lock is lost
	})
	log.Print(err)
}

// A service in Java takes redisson.getReadWriteLock("prices").writeLock() when it writes prices, and this one reads them.
func ExampleClient_NewRWLock() {
	client, err := redisson.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}))
	if err != nil {
		log.Fatal(err)
	}
	prices := client.NewRWLock("prices").RLocker()
	err = prices.Do(context.Background(), func(context.Context) error {
		log.Print("nobody writes prices now")
		return nil
	})
	log.Print(err)
}
