package recipes_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// serving serves until ctx ends, as at SIGTERM. Then it lets the requests finish, and waits for the locks that are
// still held. The caller makes ctx with signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM).
func serving(ctx context.Context, srv *http.Server, listener net.Listener, client *relock.Client) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(srv.Shutdown(ending), client.Shutdown(ending)) // first the requests, then their locks
}

func TestServiceEndsWithoutLosingTheLockOfARequest(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer func() { _ = rdb.Close() }()
	client, err := relock.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	editing, finish := make(chan struct{}), make(chan struct{})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fails := client.NewLock("orders/17").Do(r.Context(), func(ctx context.Context) error {
			close(editing)
			<-finish
			return context.Cause(ctx) // the lock was lost, or the request given up: nil if neither
		})
		if fails != nil {
			http.Error(w, fails.Error(), http.StatusServiceUnavailable)
		}
	})}
	ctx, sigterm := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	stopsListening := make(chan struct{})
	srv.RegisterOnShutdown(func() { close(stopsListening) })
	go func() { ended <- serving(ctx, srv, listener, client) }()
	answered := make(chan string, 1)
	go func() {
		resp, fails := http.Get("http://" + listener.Addr().String()) //nolint:noctx // it ends with the server
		if fails != nil {
			answered <- fails.Error()
			return
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		answered <- resp.Status + string(text)
	}()
	<-editing
	sigterm()
	<-stopsListening
	close(finish)
	if got := <-answered; got != "200 OK" {
		t.Errorf("the request under way was answered %q", got)
	}
	if err = <-ended; err != nil {
		t.Errorf("the service ended with %v", err)
	}
}
