//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/relock-go/relock/relockweb"
)

const serveAfter = `The page has no login: to let others see it, put a proxy with authentication in front.
/locks.json and /lock.json?name=NAME have the same data as JSON. INT or TERM ends
relock serve, with exit status 0.
`

// A view is the page that relock serves.
type view struct {
	*tool
	server
	listen string
	hosts  []string
	match  string
	force  bool
}

func (t *tool) serve(fs *flags) action {
	v := &view{tool: t}
	v.flags(fs)
	return t.takesNothing("serve", v.show)
}

// show serves the page until a signal comes.
func (v *view) show(ctx context.Context) (status int) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	at, err := v.open(ctx)
	if err != nil {
		return v.fail(err)
	}
	defer at.Close()
	l, err := v.connect(ctx)
	if err != nil {
		return v.failUnlessStopped(ctx, err)
	}
	defer l.close()
	var unread error // an invalid pattern, or a user who may not scan
	for info, err := range l.locks.Locks(ctx, v.match) {
		if unread = err; err == nil || info.Name != "" { // one lock, or one server of several, is shown as a problem
			unread = nil
			break
		}
	}
	if unread != nil {
		return v.failUnlessStopped(ctx, unread)
	}
	v.say("locks of %s: http://%s/\n", l.addr, at.Addr())
	if err := v.answer(ctx, at, relockweb.Handler(l.locks, v.options(l.addr)...)); err != nil {
		return v.fail(err)
	}
	return 0
}

func (v *view) flags(fs *flags) {
	fs.StringVar(&v.listen, "listen", "127.0.0.1:7365", "ADDR: address of the page (default 127.0.0.1:7365)")
	fs.Func("host", "NAME: also answer for this host name; repeat the flag for more names. The page always answers for IP addresses and localhost. It refuses other names, because another site may point them here", func(name string) error {
		v.hosts = append(v.hosts, name)
		return nil
	})
	fs.StringVar(&v.match, "match", "", "P: show only locks whose names match P: * is any text, ? is one character")
	fs.BoolVar(&v.force, "allow-force", false, "let every visitor of the page end grants, after a confirmation; -listen must be on this machine only (127.0.0.1, ::1)")
	v.server.flags(fs, v.env)
}

// open listens. A page that may end grants only listens on this machine.
func (v *view) open(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	at, err := config.Listen(ctx, "tcp", v.listen)
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
		// No usage error: the same arguments may work later.
		return nil, fmt.Errorf("%w; choose another address with -listen", err)
	}
	if err != nil {
		return nil, usageError{err}
	}
	if tcp, is := at.Addr().(*net.TCPAddr); v.force && (!is || !tcp.IP.IsLoopback()) {
		at.Close()
		return nil, usageError{fmt.Errorf("-allow-force would let everybody who reaches %s end grants: listen on 127.0.0.1, behind a proxy with authentication", v.listen)}
	}
	return at, nil
}

func (v *view) options(addr string) (opts []relockweb.Option) {
	opts = append(opts, relockweb.Hosts(v.hosts...), relockweb.Match(v.match), relockweb.Source(fmt.Sprintf("%s, prefix %s", addr, v.prefix)))
	if v.force {
		opts = append(opts, relockweb.AllowForce(func(*http.Request) bool { return true }))
	}
	return opts
}

// answer serves until ctx ends, and then finishes the requests in progress.
func (v *view) answer(ctx context.Context, at net.Listener, h http.Handler) error {
	web := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(at) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if web.Shutdown(last) != nil {
		_ = web.Close() // the requests that are left have had their time
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
