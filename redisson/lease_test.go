package redisson_test

import (
	"testing"
	"time"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson/lua"
)

// TestANestedUnlockInTheLastMillisecondLeavesALease: PTTL is 0 then, and a hash that is
// deleted and made again has none: nobody would end it where its holder dies.
func TestANestedUnlockInTheLastMillisecondLeavesALease(t *testing.T) {
	for _, prefix := range []string{"", "fair_", "write_", "read_"} {
		t.Run(prefix, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				ctx := t.Context()
				rig.Must(t, x.Redis.HSet(ctx, "a", "me:1", 2).Err())
				if prefix == "read_" { // of an owner that writes as well: else the lease is that of its readers
					rig.Must(t, x.Redis.HSet(ctx, "a", "mode", "write").Err())
				}
				rig.Must(t, x.Redis.PExpire(ctx, "a", time.Second).Err())
				virtual.Sleep(time.Second - 500*time.Microsecond)
				source := script.MustLoad(lua.FS, prefix+"release").Source
				rig.Must(t, x.Redis.Eval(ctx, source, []string{"a", "queue", "deadlines"}, "me:1", 1, "PUBLISH", "channel", 1000).Err())
				if n := x.Redis.HGet(ctx, "a", "me:1").Val(); n != "1" {
					t.Errorf("the field says %q, want 1", n)
				}
				virtual.Sleep(time.Millisecond)
				bare(t, x)
			})
		})
	}
}
