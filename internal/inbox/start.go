package inbox

// Start starts the subscription if nobody has. It does not wait.
func (b *Inbox) Start() { _, _ = b.watch() }
