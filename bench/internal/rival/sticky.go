package rival

import (
	"context"
	"sync"
	"time"

	"github.com/relock-go/relock"
)

// RelockSticky is the lock that its client keeps between holds.
func RelockSticky() Rival {
	return ours("relock Sticky()", "`Sticky(5s)`", relock.Sticky(5*time.Second))
}

// Mutex is a lock within the process, which is the floor of one that needs no command.
func Mutex() Rival {
	return Rival{
		Name:     "sync.Mutex",
		Settings: "excludes within its process only",
		Floor:    true,
		Open:     func(string, Setup) (Client, error) { return mutexes{}, nil },
	}
}

type mutexes struct{}

func (mutexes) Lock(string) Lock { return new(mutex) }
func (mutexes) Close() error     { return nil }

type mutex struct{ mu sync.Mutex }

func (m *mutex) Lock(context.Context) error {
	m.mu.Lock()
	return nil
}

func (m *mutex) Unlock() error {
	m.mu.Unlock()
	return nil
}
