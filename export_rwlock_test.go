package relock

// PretendHolds makes h's owner hold n times more than it does, as far as this
// client knows: nobody can lock 2^31-1 times in a test.
func (h *Hold) PretendHolds(n int) {
	h.session.room.mu.Lock()
	defer h.session.room.mu.Unlock()
	h.session.reserved = n
}
