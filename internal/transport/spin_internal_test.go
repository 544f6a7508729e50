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

// A watched connection counts blocking reads. Its socket counts polls.
type watched struct {
	*net.TCPConn
	sleeps  int
	instead bool // a blocking read returns a byte at once that nobody sent
}

type socket struct {
	syscall.RawConn
	looks int
}

func (s *socket) Read(f func(uintptr) bool) error {
	s.looks++
	return s.RawConn.Read(f)
}

func (w *watched) Read(b []byte) (int, error) {
	w.sleeps++
	if w.instead {
		b[0] = '-'
		return 1, nil
	}
	return w.TCPConn.Read(b)
}

// spinning returns a spinner with this number of calls under way, its connection and socket, and the server's end.
func spinning(t *testing.T, callers int32) (*spinner, *watched, *socket, net.Conn) {
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
	load := new(atomic.Int32)
	load.Store(callers)
	p := newSpinner(conn, load)
	w, s := &watched{TCPConn: conn.(*net.TCPConn)}, &socket{RawConn: p.raw}
	p.conn, p.raw = w, s
	return p, w, s, server
}

// arrive returns when bytes have arrived.
func arrive(w *watched) {
	raw, _ := w.TCPConn.SyscallConn()
	for waits := true; waits; runtime.Gosched() {
		_ = raw.Read(func(fd uintptr) bool {
			_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			waits = err != nil
			return true
		})
	}
}

func TestWhoReadsForAFewTakesWhatHasComeWithoutSleeping(t *testing.T) {
	p, w, _, server := spinning(t, minSpinCalls)
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
	for _, callers := range []int32{1, manyCalls} {
		p, w, s, _ := spinning(t, callers)
		w.instead = true
		if _, err := p.Read(make([]byte, 8)); err != nil || s.looks != 0 || w.sleeps != 1 {
			t.Errorf("%d callers: %d looks, %d sleeps, %v", callers, s.looks, w.sleeps, err)
		}
	}
}

func TestWhoFindsNothingSeldomLooks(t *testing.T) {
	p, w, s, server := spinning(t, minSpinCalls)
	w.instead = true
	for range maxMisses + 3*(skippedReads+1) {
		if _, err := p.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
	}
	if want := maxMisses + 3; s.looks != want {
		t.Errorf("%d looks, want %d", s.looks, want)
	}
	if _, err := server.Write(make([]byte, skippedReads+4)); err != nil {
		t.Fatal(err)
	}
	arrive(w)
	s.looks = 0
	for range skippedReads + 4 { // after the first poll that finds something, each read polls again
		if _, err := p.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if s.looks != 4 {
		t.Errorf("%d looks after something had come, want 4", s.looks)
	}
}

func TestALookSeesNeitherEndNorDeadline(t *testing.T) {
	p, _, _, server := spinning(t, minSpinCalls)
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
	if _, err := p.Read(make([]byte, 8)); !errors.Is(err, io.EOF) {
		t.Errorf("of a connection that was closed: %v", err)
	}
}

func TestWhatHasASocketInsideIsNotLookedAt(t *testing.T) {
	p, w, _, server := spinning(t, minSpinCalls)
	if _, err := server.Write([]byte("+OK")); err != nil {
		t.Fatal(err)
	}
	arrive(w)
	w.instead = true // as TLS does, it changes the bytes that it reads
	var got [8]byte
	if n, err := newSpinner(w, p.load).Read(got[:]); err != nil || string(got[:n]) != "-" {
		t.Errorf("Read: %q, %v, want what the connection makes of it", got[:n], err)
	}
}
