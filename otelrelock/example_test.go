package otelrelock_test

import (
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/otelrelock"
)

func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	hooks, err := otelrelock.New() // to OpenTelemetry's global providers
	if err != nil {
		panic(err)
	}
	client, err := relock.New(rdb, relock.Trace(hooks)) // with hooks of yours: hooks.Join(yours)
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	defer client.Close()
}
