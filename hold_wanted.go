package relock

// Wanted returns a channel that is closed when another owner waits for the lock, so that a holder that can stop early
// may give way. Nothing else happens: the hold stays as it is. A semaphore's hold is wanted when somebody waits for
// permits, and a read hold when a writer waits. A TryLock with a wait of zero does not close the channel. A branch
// (WithChildOwner) that waits does not close the channels of its ancestors' holds.
//
// Redis sends a message when the first waiter joins the queue, to 128 holders at most. A hold that no message reaches
// learns of the waiter at its next renewal; with NoWatchdog it may never learn. If others wait already when a hold
// begins, its channel is closed at once. There is an exception: a client can pass a Fair lock from one of its calls to
// the next without asking Redis. Such a hold may hear of another client's waiter only at its next renewal. While
// nobody waits, nothing is sent. With ShardedPubSub the lock's Redis channel stays subscribed from the first Wanted to
// the end of the hold.
//
// The channel stays closed if the waiter leaves, and stays open if the hold ends before anybody waits. A waiter that
// has crashed may still close it, and also the channels of later holds that share the grant. A call of the same named
// owner that waits in another client to re-enter may close it too.
func (h *Hold) Wanted() <-chan struct{} {
	if h.unmade() {
		return nil
	}
	k := h.keeper()
	k.mu.Lock()
	x := h.extra()
	first := x.wantedc == nil
	if first {
		x.wantedc = make(chan struct{})
	}
	c := x.wantedc
	k.mu.Unlock()
	if first {
		h.whenWanted(func() { close(c) })
	}
	return c
}

// whenWanted calls f one time: now if others wait already, else when the first comes, unless the hold has ended by
// then. f must not block: it may run under the keeper's mu.
func (h *Hold) whenWanted(f func()) {
	k := h.keeper()
	leave := k.listener.Join() // keeps a sharded channel subscribed; the inbox always is
	k.mu.Lock()
	wanted, live := h.hold.Wanted, h.over() == nil
	if !wanted && live {
		x := h.extra()
		x.onWanted = append(x.onWanted, f)
		if x.stopListening == nil {
			x.stopListening, leave = leave, nil
		}
	}
	k.mu.Unlock()
	if leave != nil {
		leave()
	}
	if wanted {
		f()
	}
}

// tellWanted calls the functions that whenWanted has kept: others now wait. It needs the keeper's mu.
func (h *Hold) tellWanted() {
	if h.extras == nil {
		return
	}
	for _, f := range h.onWanted {
		f()
	}
}
