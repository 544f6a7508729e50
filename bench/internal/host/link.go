package host

import (
	"net"
	"runtime"
	"sync"
	"time"
)

// A Link is a way to a server that takes time: whatever enters comes out half a
// round trip later, in both directions, as far as the system's timers allow.
type Link struct {
	listener net.Listener
	server   string
	delay    time.Duration // one way
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]bool
	closed   bool
}

// NewLink opens a link to the server with that round trip.
func NewLink(server string, roundTrip time.Duration) (*Link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &Link{listener: l, server: server, delay: roundTrip / 2, conns: map[net.Conn]bool{}}
	k.wg.Go(k.accept)
	return k, nil
}

// Addr is where the link begins.
func (k *Link) Addr() string { return k.listener.Addr().String() }

// Close cuts all connections and returns when nothing is under way.
func (k *Link) Close() {
	_ = k.listener.Close()
	k.mu.Lock()
	k.closed = true
	for c := range k.conns {
		_ = c.Close()
	}
	k.mu.Unlock()
	k.wg.Wait()
}

// keep notes a connection that Close is to cut.
func (k *Link) keep(c net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.conns[c] = true
	}
	return !k.closed
}

func (k *Link) drop(c net.Conn) {
	_ = c.Close()
	k.mu.Lock()
	delete(k.conns, c)
	k.mu.Unlock()
}

func (k *Link) accept() {
	for {
		near, err := k.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", k.server)
		if err != nil {
			_ = near.Close()
			continue
		}
		if !k.keep(near) || !k.keep(far) {
			_, _ = near.Close(), far.Close()
			return
		}
		k.wg.Go(func() { k.carry(near, far) })
		k.wg.Go(func() { k.carry(far, near) })
	}
}

type parcel struct {
	data []byte
	due  time.Time
}

// carry moves what comes from one side to the other. It reads on while parcels
// are under way, so that the delay is no limit of throughput.
func (k *Link) carry(from, to net.Conn) {
	defer k.drop(from)
	defer k.drop(to)
	parcels := make(chan parcel, 4096)
	k.wg.Go(func() {
		// A thread of its own: the runtime's timers are as coarse as what is to be measured.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		sharpTimers()
		for p := range parcels {
			sleepUntil(p.due)
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close() // ends the reading, which closes parcels
			}
		}
	})
	defer close(parcels)
	for {
		buf := make([]byte, 16<<10)
		n, err := from.Read(buf)
		if n > 0 {
			parcels <- parcel{buf[:n], time.Now().Add(k.delay)}
		}
		if err != nil {
			return
		}
	}
}
