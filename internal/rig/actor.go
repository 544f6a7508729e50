package rig

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
)

// An Actor stands for a process: a client with its own network.
type Actor struct {
	*relock.Client
	Link *redistest.Link
	T    *testing.T
}

// Actor returns a process whose inbox hears.
func (x *Lab) Actor(opts ...relock.Option) *Actor {
	x.T.Helper()
	link := redistest.NewLink(x.T, x.Server.Dial)
	a := x.ActorOver(x.Server.Client(x.T, func(o *redis.Options) { o.Dialer = link.Dial }), link, opts...)
	a.Warm()
	synctest.Wait()
	return a
}

// ActorOver returns a process over rdb, whose dialer is the link's.
func (x *Lab) ActorOver(rdb redis.UniversalClient, link *redistest.Link, opts ...relock.Option) *Actor {
	x.T.Helper()
	return &Actor{Client: x.ClientOver(rdb, opts...), T: x.T, Link: link}
}

// RealActor returns a process that uses a server in real time.
func RealActor(t *testing.T, srv *redistest.RealServer, opts ...relock.Option) *Actor {
	t.Helper()
	link := redistest.NewLink(t, srv.Dial)
	a := &Actor{Client: Open(t, srv.Client(t, func(o *redis.Options) { o.Dialer = link.Dial }), opts...), T: t, Link: link}
	a.Warm()
	return a
}

// Warm makes the client subscribe, on a lock of its own.
func (a *Actor) Warm() {
	a.T.Helper()
	l := a.NewLock(fmt.Sprintf("warm %p", a))
	Must(a.T, l.Lock(a.T.Context()))
	Must(a.T, l.Unlock())
}

// Fate gives the nth call of a script from now on, counted from 1, a verdict.
func (a *Actor) Fate(name string, nth int64, v redistest.Verdict) {
	var seen atomic.Int64
	a.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if ScriptSent(cmd.Args) == name && seen.Add(1) == nth {
			return v
		}
		return redistest.Pass
	})
}

// LateThen makes Redis receive a second copy of the next acquire once late is closed, and delays calls of
// script until gate is closed. Later acquires are not copied. A copy of an answered acquire could come after
// its release, which TCP never does.
func (a *Actor) LateThen(late <-chan struct{}, script string, gate <-chan struct{}) {
	var acquires atomic.Int64
	a.Link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		switch ScriptSent(cmd.Args) {
		case "acquire":
			if acquires.Add(1) == 1 {
				return redistest.Duplicate(late)
			}
		case script:
			return redistest.Hold(gate)
		}
		return redistest.Pass
	})
}

// Sent counts the calls of a script that the process has made.
func (a *Actor) Sent(name string) (n int) {
	for _, args := range a.Link.Log() {
		if ScriptSent(args) == name {
			n++
		}
	}
	return n
}
