package inbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/inbox"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/virtual"
)

// TestPlainChannelsAreSubscribedWhileTheyAreJoined, all over one connection, and anew where
// that breaks.
func TestPlainChannelsAreSubscribedWhileTheyAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb, pub := srv.Client(t), srv.Client(t)
		events := make(chan string, 100)
		s := inbox.NewShards(inbox.ShardsConfig{
			Plain:   true,
			Node:    func(context.Context, string) (string, inbox.Node, error) { return "", rdb, nil },
			Moved:   func() {},
			Deliver: func(channel, payload string) { events <- channel + " " + payload },
			Linked:  func(channel string, _ bool) { events <- channel + " linked" },
			Refused: refused,
			Linger:  time.Second,
		})
		defer s.Close()
		saw := func(want string) {
			t.Helper()
			if got := <-events; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		leave := s.Channel("a").Join()
		saw("a linked")
		defer s.Channel("b").Join()()
		saw("b linked")
		pub.Publish(t.Context(), "a", "1")
		saw("a 1")
		pub.Publish(t.Context(), "b", "2")
		saw("b 2")
		leave()
		virtual.Sleep(2 * time.Second)
		if n := pub.Publish(t.Context(), "a", "nobody").Val(); n != 0 {
			t.Errorf("%d are subscribed to a channel that was left", n)
		}
		srv.KillSubscribers()
		saw("b linked")
		pub.Publish(t.Context(), "b", "3")
		saw("b 3")
	})
}
