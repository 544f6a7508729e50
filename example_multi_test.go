package relock_test

import (
	"context"
	"fmt"

	"github.com/relock-go/relock"
)

// A transfer needs both accounts. Another one that needs the same two in the
// other order does not wait for this one in a circle.
func ExampleNewMulti() {
	client, end := newClient()
	defer end()

	both := relock.NewMulti(client.NewLock("account:17"), client.NewLock("account:4"))
	err := both.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("both accounts are ours while", ctx.Err() == nil)
		return nil
	})
	fmt.Println(err)
	// Output:
	// both accounts are ours while true
	// <nil>
}
