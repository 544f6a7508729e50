package redistest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// Split returns one address for two servers, like a proxy. Connections that subscribe go to the second
// server, so scripts on the first one see no subscribers. Clients must speak RESP2, in which a connection
// sends nothing before its first command.
func Split(t testing.TB, commands, subscriptions string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { split(client, commands, subscriptions, &all) })
		}
	})
	return l.Addr().String()
}

// split ends when the client or the server closes.
func split(client net.Conn, commands, subscriptions string, all *sync.WaitGroup) {
	defer client.Close()
	var server net.Conn
	defer func() {
		if server != nil {
			server.Close()
		}
	}()
	to := ""
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		next := to
		if to == "" {
			next = commands
		}
		if bytes.Contains(bytes.ToLower(buf[:n]), []byte("\nsubscribe\r")) {
			next = subscriptions
		}
		if next != to {
			if server != nil {
				server.Close()
			}
			if server, err = net.Dial("tcp", next); err != nil {
				return
			}
			to = next
			s := server
			all.Go(func() { _, _ = io.Copy(client, s) }) // ends with the connection
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}
