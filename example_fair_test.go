package relock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/relock-go/relock"
)

// A fair lock goes to those who wait in the order in which they came.
func ExampleFair() {
	client, end := newClient()
	defer end()
	ctx := context.Background()

	printer := client.NewLock("printer", relock.Fair())
	if err := printer.Lock(ctx); err != nil {
		panic(err)
	}
	var jobs sync.WaitGroup
	for n := 1; n <= 3; n++ {
		jobs.Go(func() {
			mine := client.NewLock("printer", relock.Fair()) // may be in another process
			err := mine.Do(ctx, func(context.Context) error {
				fmt.Println("job", n)
				return nil
			})
			if err != nil {
				fmt.Println("job", n, "was not printed:", err)
			}
		})
		for queued := 0; queued < n; { // the next job comes when this one waits
			info, err := printer.Info(ctx)
			if err != nil {
				panic(err)
			}
			queued = info.Waiters
		}
	}

	err := printer.Unlock()
	jobs.Wait()
	fmt.Println(err)
	// Output:
	// job 1
	// job 2
	// job 3
	// <nil>
}
