package relock

import (
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
)

const (
	maxReplicas = 16
	maxAckTime  = 10 * time.Second
	// ackShare is how much of the TTL the replicas may take at most: a renewal
	// that they miss leaves room for another before the trust ends.
	ackShare = 4
)

// Replicas makes a hold count only once n replicas of the server have
// acknowledged it, and each renewal likewise: a failover to one of them does
// not give the lock to somebody else while the hold is trusted. Where too few
// answer within timeout, the grant is undone and the call returns ErrReplicas,
// TryLock too; a renewal that too few acknowledge extends nothing, so a hold is
// lost when its last acknowledged lease ends.
//
// n is 1 to 16; timeout is 1 ms to 10 s, at most a quarter of the TTL, and less
// than the redis client's ReadTimeout. A failover to a replica that was not among
// the n, or that has lost its data, loses the lock still: see docs/guarantees.md.
func Replicas(n int, timeout time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		if n < 1 || n > maxReplicas {
			return fmt.Errorf("%w: Replicas of %d; allowed are 1 to %d", ErrInvalidOption, n, maxReplicas)
		}
		t.Terms.Replicas = room.Replicas{N: n, Timeout: timeout}
		return between("Replicas timeout", timeout, time.Millisecond, maxAckTime)
	})
}

// fits checks the time for replicas against what it is part of: all options
// have been given, in whatever order.
func fits(r room.Replicas, ttl, readTimeout time.Duration) error {
	if r.Timeout > ttl/ackShare {
		return fmt.Errorf("%w: Replicas timeout of %v with a TTL of %v; it may be a quarter of the TTL at most", ErrInvalidOption, r.Timeout, ttl)
	}
	if readTimeout > 0 && r.Timeout >= readTimeout {
		return fmt.Errorf("%w: Replicas timeout of %v; it must be less than the redis client's ReadTimeout of %v", ErrInvalidOption, r.Timeout, readTimeout)
	}
	return nil
}

// tooFew is the error of a statement that too few replicas have acknowledged.
func tooFew(r room.Replicas, acks int) error {
	return fmt.Errorf("%w: %d of %d acknowledged it within %v; check the replicas of the primary, ask for fewer, or give them longer", ErrReplicas, acks, r.N, r.Timeout)
}

// do runs a script, and says how many replicas have what it wrote.
func (c *Client) do(ctx context.Context, timeout time.Duration, need room.Replicas, call transport.Call) (raw []any, acks int, err error) {
	if need.N == 0 {
		raw, err = c.transport.Do(ctx, timeout, call)
		return raw, 0, err
	}
	r := c.transport.DoAcked(ctx, timeout, need.N, need.Timeout, call)[0]
	return r.Reply, r.Acks, r.Err
}

// doAll is do for a batch.
func (c *Client) doAll(ctx context.Context, timeout time.Duration, need room.Replicas, calls []transport.Call) []transport.Acked {
	if need.N > 0 {
		return c.transport.DoAcked(ctx, timeout, need.N, need.Timeout, calls...)
	}
	results := make([]transport.Acked, len(calls))
	for i, r := range c.transport.DoAll(ctx, timeout, calls) {
		results[i] = transport.Acked{Reply: r.Reply, Err: r.Err}
	}
	return results
}
