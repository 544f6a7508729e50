package redistest

import (
	"context"
	"net"
	"testing"
)

// Listen serves the link on a TCP port until t ends, for clients in other processes. A connection that the link
// refuses is reset after it was accepted. The address given to the link's dial is that of the listener.
func (l *Link) Listen(t testing.TB) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	addr = listener.Addr().String()
	l.goUnlessStopped(func() {
		<-l.done
		_ = listener.Close()
	})
	l.goUnlessStopped(func() { l.accept(listener, addr) })
	return addr
}

func (l *Link) accept(listener net.Listener, addr string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		// A dial may take long; the next client must not wait for it.
		l.goUnlessStopped(func() {
			ctx, cancel := context.WithTimeout(context.Background(), startWithin)
			defer cancel()
			if err := l.connect(ctx, client, "tcp", addr); err != nil {
				_ = client.(*net.TCPConn).SetLinger(0)
				_ = client.Close()
			}
		})
	}
}
