package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
)

// answer is an error that Redis sent.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

var _ redis.Error = answer("")

func TestClassify(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	read := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for _, row := range []struct {
		err  error
		want transport.Outcome
	}{
		{redis.ErrClosed, transport.Closed},

		{dial, transport.NotExecuted},
		{redis.ErrPoolTimeout, transport.NotExecuted},
		{redis.ErrPoolExhausted, transport.NotExecuted},
		{answer("LOADING Redis is loading the dataset in memory"), transport.NotExecuted},
		{answer("MASTERDOWN Link with MASTER is down"), transport.NotExecuted},
		{answer("CLUSTERDOWN Hash slot not served"), transport.NotExecuted},
		{answer("TRYAGAIN Multiple keys request during rehashing of slot"), transport.NotExecuted},
		{answer("READONLY You can't write against a read only replica."), transport.NotExecuted},
		{answer("ERR Error running script (call to f_6b1b): @user_script:1: -READONLY You can't write against a read only replica."), transport.NotExecuted},
		{answer("ERR Error running script (call to f_6b1b): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write."), transport.NotExecuted},
		{answer("NOREPLICAS Not enough good replicas to write."), transport.NotExecuted},
		{answer("MOVED 3999 127.0.0.1:6381"), transport.NotExecuted},
		{answer("ASK 3999 127.0.0.1:6381"), transport.NotExecuted},
		{answer("BUSY Redis is busy running a script."), transport.NotExecuted},
		{answer("NOSCRIPT No matching script."), transport.NotExecuted},
		{answer("ERR max number of clients reached"), transport.NotExecuted},

		{answer("BUSYGROUP Consumer Group name already exists"), transport.Refused},
		{answer("ERR Error running script (call to f_6b1b): @user_script:1: user_script:1: attempt to index nil"), transport.Refused},
		{answer("ERR Error running script (call to f_6b1b): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'."), transport.Refused},
		{answer("ERR unknown command 'evalsha'"), transport.Refused},
		{answer("WRONGTYPE Operation against a key holding the wrong kind of value"), transport.Refused},
		{answer("OOM command not allowed when used memory > 'maxmemory'."), transport.Refused},
		{answer("NOPERM this user has no permissions to run the 'evalsha' command"), transport.Refused},
		{answer("NOAUTH Authentication required."), transport.Refused},
		{answer("CROSSSLOT Keys in request don't hash to the same slot"), transport.Refused},
		{answer(""), transport.Refused},
		{redis.Nil, transport.Refused},

		{io.EOF, transport.Unknown},
		{io.ErrUnexpectedEOF, transport.Unknown},
		{read, transport.Unknown},
		{syscall.ECONNRESET, transport.Unknown},
		{net.ErrClosed, transport.Unknown},
		{transport.ErrNoReply, transport.Unknown},
		{context.Canceled, transport.Unknown},
		{context.DeadlineExceeded, transport.Unknown},
		{errors.New("a hook's own"), transport.Unknown},
	} {
		wrapped := fmt.Errorf("script x: %w", row.err)
		for _, err := range []error{row.err, wrapped} {
			if got := transport.Classify(err); got != row.want {
				t.Errorf("%v is %v, want %v", err, got, row.want)
			}
		}
	}
}

func TestTryAgainIsOnlyTheClusters(t *testing.T) {
	for err, want := range map[error]bool{
		answer("TRYAGAIN Multiple keys request during rehashing of slot"): true,
		answer("CLUSTERDOWN The cluster is down"):                         false,
		errors.New("TRYAGAIN"):                                            false,
	} {
		if got := transport.TryAgain(fmt.Errorf("script x: %w", err)); got != want {
			t.Errorf("TryAgain(%v) is %v, want %v", err, got, want)
		}
	}
}
