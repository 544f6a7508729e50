package redistest

import (
	"bufio"
	"context"
)

// Settle waits until no command is late any more: each that was held or duplicated
// has been answered by the server, or discarded. It returns early when ctx ends.
func (l *Link) Settle(ctx context.Context) error {
	for {
		l.mu.Lock()
		late, settled := l.late, l.settled
		l.mu.Unlock()
		if late == 0 {
			return nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// addLate adds n to late.
func (l *Link) addLate(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late += n
	if l.late == 0 {
		close(l.settled)
		l.settled = make(chan struct{})
	}
}

// copyLater executes raw once more when ch is closed.
func (l *Link) copyLater(raw []byte, ch <-chan struct{}, network, addr string) {
	l.addLate(1)
	l.wg.Go(func() {
		defer l.addLate(-1)
		select {
		case <-ch:
			l.execute(raw, network, addr)
		case <-l.done:
		}
	})
}

// execute sends raw on a connection of its own, and waits for the reply so that
// the server has surely read it before the connection closes.
func (l *Link) execute(raw []byte, network, addr string) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	conn, err := l.dial(ctx, network, addr)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	l.mu.Lock()
	stopped := l.stopped
	l.copies[conn] = struct{}{} // stop closes it if no reply comes
	l.mu.Unlock()
	if stopped {
		return
	}
	if _, err := conn.Write(raw); err == nil {
		_, _ = readFrame(bufio.NewReader(conn))
	}
	l.mu.Lock()
	delete(l.copies, conn)
	l.mu.Unlock()
}
