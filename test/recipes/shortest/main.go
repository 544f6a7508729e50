// Command shortest is the program that README.md shows.
package main

import (
	"context"
	"log"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	client, err := relock.New(rdb, relock.Logger(slog.Default()))
	if err != nil {
		log.Fatal(err)
	}
	ran, err := client.NewLock("orders/4711").TryDo(context.Background(), 10*time.Second, func(ctx context.Context) error {
		log.Print("no other process works on order 4711")
		return context.Cause(ctx) // ErrLost if the lock is lost
	})
	log.Print(ran, err) // false <nil>: taken. An error: Redis did not answer, or the lock was lost
}
