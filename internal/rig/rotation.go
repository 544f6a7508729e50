package rig

import (
	"context"
	"sync/atomic"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

// A Rotation changes the password of a lab's server from "old" to "new". Its clients learn the new one later.
type Rotation struct {
	Lab   *Lab
	known atomic.Pointer[string] // what the provider of credentials returns
	links []*redistest.Link
}

// NewRotation makes the server require the old password.
func NewRotation(x *Lab) *Rotation {
	r := &Rotation{Lab: x}
	x.Server.Direct().RequireAuth("old")
	r.Learn("old")
	return r
}

// Learn gives the clients a password for their next connections.
func (r *Rotation) Learn(password string) { r.known.Store(&password) }

// Redis returns a client of the server with a link of its own.
func (r *Rotation) Redis() *redis.Client {
	r.Lab.T.Helper()
	link := redistest.NewLink(r.Lab.T, r.Lab.Server.Dial)
	r.links = append(r.links, link)
	return r.Lab.Server.Client(r.Lab.T, func(o *redis.Options) {
		o.Dialer = link.Dial
		o.CredentialsProviderContext = func(context.Context) (user, password string, err error) {
			return "default", *r.known.Load(), nil
		}
	})
}

// Begin makes the server require the new password, and closes all connections.
func (r *Rotation) Begin() {
	synctest.Wait() // the server reads the password without a lock when it greets a connection
	r.Lab.Server.Direct().RequireAuth("new")
	for _, link := range r.links {
		link.Cut()()
	}
}
