package redisson_test

import (
	"context"
	"testing"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// TestChildOwnersAreRefused: Redisson has none, so a branch would wait for what its flow holds.
func TestChildOwnersAreRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c := client(t, x)
		for _, parent := range []context.Context{x.By("flow"), t.Context()} {
			_, err := c.NewLock("a").TryAcquire(relock.WithChildOwner(parent), 0)
			rig.WantIs(t, err, relock.ErrInvalidOption)
		}
	})
}
