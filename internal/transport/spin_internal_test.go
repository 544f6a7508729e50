//go:build unix

package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A watched connection counts who looks and who sleeps.
type watched struct {
	*net.TCPConn
	looks, sleeps int
	instead       bool // a sleep returns at once, with a byte of nobody's
}

func (w *watched) SyscallConn() (syscall.RawConn, error) {
	w.looks++
	return w.TCPConn.SyscallConn()
}

func (w *watched) Read(b []byte) (int, error) {
	w.sleeps++
	if w.instead {
		return 1, nil
	}
	return w.TCPConn.Read(b)
}

// spinning returns a spinner for so many callers, and the server's end of its connection.
func spinning(t *testing.T, callers int32) (*spinner, *watched, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); server.Close() })
	w := &watched{TCPConn: conn.(*net.TCPConn)}
	load := new(atomic.Int32)
	load.Store(callers)
	return &spinner{conn: w, load: load}, w, server
}

// arrive returns when something has come.
func arrive(w *watched) {
	for quiet(w.TCPConn) {
		runtime.Gosched()
	}
}

func TestWhoReadsForAFewTakesWhatHasComeWithoutSleeping(t *testing.T) {
	p, w, server := spinning(t, fewest)
	if _, err := server.Write([]byte("+OK")); err != nil {
		t.Fatal(err)
	}
	arrive(w)
	var got [8]byte
	if n, err := p.Read(got[:]); err != nil || string(got[:n]) != "+OK" || w.sleeps != 0 {
		t.Errorf("Read: %q, %v, after %d sleeps, want +OK after none", got[:n], err, w.sleeps)
	}
}

func TestWhoReadsForOneOrForACrowdDoesNotLook(t *testing.T) {
	for _, callers := range []int32{1, crowd} {
		p, w, _ := spinning(t, callers)
		w.instead = true
		if _, err := p.Read(make([]byte, 8)); err != nil || w.looks != 0 || w.sleeps != 1 {
			t.Errorf("%d callers: %d looks, %d sleeps, %v", callers, w.looks, w.sleeps, err)
		}
	}
}

func TestWhoFindsNothingSeldomLooks(t *testing.T) {
	p, w, server := spinning(t, fewest)
	w.instead = true
	for range maxMisses + 3*(unlooked+1) {
		if _, err := p.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
	}
	if want := maxMisses + 3; w.looks != want {
		t.Errorf("%d looks, want %d", w.looks, want)
	}
	if _, err := server.Write(make([]byte, unlooked+4)); err != nil {
		t.Fatal(err)
	}
	arrive(w)
	w.looks = 0
	for range unlooked + 4 { // the first look that finds something is followed by others
		if _, err := p.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if w.looks != 4 {
		t.Errorf("%d looks after something had come, want 4", w.looks)
	}
}

func TestALookSeesNeitherEndNorDeadline(t *testing.T) {
	p, _, server := spinning(t, fewest)
	if err := p.conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after its deadline: %v", err)
	}
	if err := p.conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if _, err := p.Read(make([]byte, 8)); err != io.EOF {
		t.Errorf("of a connection that was closed: %v", err)
	}
}

func TestWhatCannotBeLookedAtIsRead(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	go func() { _, _ = server.Write([]byte("+OK")); server.Close() }()
	load := new(atomic.Int32)
	load.Store(fewest)
	var got [8]byte
	if n, err := (&spinner{conn: client, load: load}).Read(got[:]); err != nil || string(got[:n]) != "+OK" {
		t.Errorf("Read: %q, %v", got[:n], err)
	}
}
