package otelrelock

import (
	"strings"
	"sync"
)

// mostNames is how many collapsed names have a series of their own.
const mostNames = 200

// collapsed reduces names to their beginnings.
type collapsed struct {
	mu    sync.RWMutex
	known map[string]struct{}
}

func (c *collapsed) tell(lock string) string {
	name := lock
	if at := strings.IndexAny(lock, "/:#{0123456789"); at >= 0 {
		name = lock[:at] + "*"
	}
	c.mu.RLock()
	_, known := c.known[name]
	c.mu.RUnlock()
	if known {
		return name
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known = c.known[name]; !known && len(c.known) >= mostNames {
		return "other"
	}
	if c.known == nil {
		c.known = make(map[string]struct{})
	}
	c.known[name] = struct{}{}
	return name
}
