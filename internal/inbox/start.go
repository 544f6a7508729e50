package inbox

// Start begins to subscribe, unless that has begun, and does not wait.
func (b *Inbox) Start() { _, _ = b.watch() }
