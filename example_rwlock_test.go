package relock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/relock-go/relock"
)

// try shows what an attempt came to.
func try(who string, got bool, err error) {
	fmt.Println(who, got, err)
}

// Any number of readers, or one writer.
func ExampleRWLock() {
	client, end := newClient()
	defer end()
	ctx := context.Background()
	config := client.NewRWLock("config")

	for range 2 {
		got, err := config.TryRLock(ctx, 0)
		try("reader:", got, err)
	}
	got, err := config.TryLock(ctx, 0)
	try("writer:", got, err)
	fmt.Println(config.RUnlock(), config.RUnlock())

	got, err = config.TryLock(ctx, 0)
	try("writer:", got, err)
	got, err = config.TryRLock(ctx, 0)
	try("reader:", got, err)
	fmt.Println(config.Unlock())
	// Output:
	// reader: true <nil>
	// reader: true <nil>
	// writer: false <nil>
	// <nil> <nil>
	// writer: true <nil>
	// reader: false <nil>
	// <nil>
}

// Who has written reads on without a gap: others may read as well, and nobody
// has written in between.
func ExampleRWLock_Downgrade() {
	client, end := newClient()
	defer end()
	ctx := context.Background()
	config, other := client.NewRWLock("config"), client.NewRWLock("config")

	if err := config.Lock(ctx); err != nil {
		panic(err)
	}
	fmt.Println("downgrade:", config.Downgrade(ctx))
	got, err := other.TryRLock(ctx, 0)
	try("another reader:", got, err)
	got, err = other.TryLock(ctx, 0)
	try("another writer:", got, err)
	fmt.Println(config.RUnlock(), other.RUnlock())
	// Output:
	// downgrade: <nil>
	// another reader: true <nil>
	// another writer: false <nil>
	// <nil> <nil>
}

// An owner that reads cannot write: two of them would wait for each other. It
// unlocks first, and looks again at what it has read.
func ExampleRWLock_upgrade() {
	client, end := newClient()
	defer end()
	ctx := relock.WithOwner(context.Background(), "run-17")
	config := client.NewRWLock("config")

	if err := config.RLock(ctx); err != nil {
		panic(err)
	}
	err := config.Lock(ctx)
	fmt.Println("refused:", errors.Is(err, relock.ErrUpgrade))
	fmt.Println(config.RUnlock())
	fmt.Println(config.Lock(ctx))
	fmt.Println(config.Unlock())
	// Output:
	// refused: true
	// <nil>
	// <nil>
	// <nil>
}

// Each side is a Lock with all that one has: Do, Acquire, tokens, loss.
func ExampleRWLock_RLocker() {
	client, end := newClient()
	defer end()
	ctx := context.Background()
	config := client.NewRWLock("config")

	err := config.RLocker().Do(ctx, func(ctx context.Context) error {
		info, err := config.RLocker().Info(ctx)
		if err != nil {
			return err
		}
		fmt.Println(info.Kind, "held for reading:", info.Holders[0].Read)
		return ctx.Err() // ctx ends when the read hold is lost
	})
	fmt.Println(err)
	// Output:
	// rw held for reading: true
	// <nil>
}
