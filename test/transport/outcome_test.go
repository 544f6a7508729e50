package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
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
		{fmt.Errorf("redis: all sentinels specified in configuration are unreachable: %w", errors.Join(read, redis.Nil)), transport.NotExecuted},
		{redis.ErrPoolTimeout, transport.NotExecuted},
		{redis.ErrPoolExhausted, transport.NotExecuted},
		{answer("MOVED 3999 127.0.0.1:6381"), transport.NotExecuted},
		{answer("ASK 3999 127.0.0.1:6381"), transport.NotExecuted},

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

// Each Sentinel answers that it knows no such primary. Fails when go-redis says that in
// other words than Classify looks for.
func TestWhatSentinelsAnswerIsNoAnswerToTheScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		srv.FailNext(1000, "ERR No such master with that name", func(args []string) bool { return args[0] == "sentinel" })
		rdb := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "m", SentinelAddrs: []string{"one:1", "two:2"}, Dialer: srv.Dial, MaxRetries: -1, DialerRetries: 1,
		})
		defer rdb.Close()
		if err := rdb.Ping(t.Context()).Err(); err == nil || transport.Classify(err) != transport.NotExecuted {
			t.Errorf("%v is %v, want %v", err, transport.Classify(err), transport.NotExecuted)
		}
	})
}

func TestEveryKindOfFirstCallSuggestsTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, first := range map[string]func(*transport.Transport) error{
			"Do": func(tr *transport.Transport) error {
				_, err := tr.Do(t.Context(), time.Second, call("k"))
				return err
			},
			"DoAll": func(tr *transport.Transport) error {
				return tr.DoAll(t.Context(), time.Second, []transport.Call{call("k"), call("j")})[0].Err
			},
			"DoAcked": func(tr *transport.Transport) error {
				return tr.DoAcked(t.Context(), time.Second, 1, time.Millisecond, call("k"))[0].Err
			},
		} {
			for what, config := range map[string]*tls.Config{"without TLS": nil, "with TLS": {MinVersion: tls.VersionTLS13}} {
				l := newLink(t)
				tr := newTransport(t, l.client(t, func(o *redis.Options) { o.TLSConfig = config }))
				l.set(swallow)
				if err := first(tr); err == nil || strings.Contains(err.Error(), "TLSConfig") != (config == nil) {
					t.Errorf("%s, %s: the first call says %v, want advice on TLS if it is without", name, what, err)
				}
			}
		}
	})
}
