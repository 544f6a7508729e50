package relock

// Wanted returns a channel that is closed when another owner waits for the lock, so that a holder that can stop early may
// give way. It is closed at most once, and decides nothing: the hold stays as it is. A holder of a semaphore is wanted
// when somebody waits for permits, and a reader when a writer waits. A TryLock with a wait of zero wants nothing, and a
// branch (WithChildOwner) does not want its ancestors' holds.
//
// Redis sends a message when the first waiter joins the queue, to 128 holders at most. A holder that no message reaches
// learns it with its next renewal; with NoWatchdog there is none. A hold that begins while others wait is wanted at once.
// But a client may have passed a Fair lock on among its own calls. Then a waiter of another client may count only from
// the next renewal. While nobody waits, nothing is sent. With ShardedPubSub the lock's channel stays subscribed from the
// first Wanted to the end of the hold.
//
// If the waiter leaves, the channel stays closed. A waiter that has crashed may count until the lock changes hands, also
// for later holds. A named owner's own call that waits in another client counts until it has joined.
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

// whenWanted calls f once: now if others wait already, and else when they do. f must not block.
func (h *Hold) whenWanted(f func()) {
	k := h.keeper()
	leave := k.listener.Join() // keeps a sharded channel subscribed; the inbox has been since the first lock
	k.mu.Lock()
	wanted, live := h.hold.Wanted, h.over() == nil
	if !wanted && live {
		x := h.extra()
		x.urged = append(x.urged, f)
		if x.deafen == nil {
			x.deafen, leave = leave, nil
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

// want says that others wait for the hold's end. It needs the keeper's mu.
func (h *Hold) want() {
	if h.extras == nil {
		return
	}
	for _, f := range h.urged {
		f()
	}
}
