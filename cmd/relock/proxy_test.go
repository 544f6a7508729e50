//go:build unix

package main

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/relock-go/relock/internal/redistest"
)

// proxy is one address for two servers: connections that subscribe go to the second. Its
// clients speak the old protocol, which needs no word before the first.
func proxy(t *testing.T, commands, subscriptions string) (addr string) {
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
			all.Go(func() { pass(client, commands, subscriptions, &all) })
		}
	})
	return l.Addr().String()
}

// pass ends when the client or the server closes.
func pass(client net.Conn, commands, subscriptions string, all *sync.WaitGroup) {
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

func TestDoctorNamesScriptsThatDoNotSeeSubscribers(t *testing.T) {
	r := redistest.StartReplication(t, 1)
	addr := proxy(t, r.Primary.Addr(), r.Replicas[0].Addr()) // a replica passes messages on
	worldAt(t, "redis://"+addr+"?protocol=2").wantWrong("messages", "does not see who is subscribed (NUMSUB 0)")
}

func TestDoctorNamesMessagesThatAreNotHeard(t *testing.T) {
	addr := proxy(t, redistest.Real(t).Addr(), redistest.Real(t).Addr())
	worldAt(t, "redis://"+addr+"?protocol=2").wantWrong("messages", "is not heard (NUMSUB 0)")
}
