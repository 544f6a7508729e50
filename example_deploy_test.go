package relock_test

import (
	"crypto/tls"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// The client's address is all that a single server needs.
func ExampleNew_standalone() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	client, err := relock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	defer client.Close()
}

// The Sentinels say which server is the primary.
func ExampleNew_sentinel() {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    "mymaster",
		SentinelAddrs: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
	})
	client, err := relock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	defer client.Close()
}

// Some nodes of a cluster are enough to find the others.
func ExampleNew_cluster() {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"node-1:6379", "node-2:6379", "node-3:6379"},
	})
	client, err := relock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	defer client.Close()
}

// A user of its own, and TLS with a certificate of the client's.
func ExampleNew_tls() {
	certificate, err := tls.LoadX509KeyPair("client.crt", "client.key")
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{
		Addr:      "redis.example.com:6380",
		Username:  "app",
		Password:  "secret",
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	})
	client, err := relock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	defer client.Close()
}
