//go:build unix

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

const (
	defaultURL = "redis://127.0.0.1:6379"
	// hasty is the least time that the first request to Redis gets, because it may have to make a connection.
	hasty = 500 * time.Millisecond
)

// reachable is the most time that the first request to Redis gets. A test makes it short.
var reachable = 5 * time.Second

// farewell bounds how long the last requests to Redis may take. A test makes it long.
var farewell = 2 * time.Second

// errWithin refuses a wait that only its own end could end.
var errWithin = errors.New("this run would wait forever")

// A usageError is an error in the arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// statusOf returns relock's own exit status for an error.
func statusOf(err error) int {
	if _, usage := errors.AsType[usageError](err); usage {
		return exitUsage
	}
	if s, is := errors.AsType[interrupted](err); is {
		return exitSignal + int(s.Signal)
	}
	switch {
	case errors.Is(err, relock.ErrInvalidName), errors.Is(err, relock.ErrInvalidOption), errors.Is(err, relock.ErrUpgrade), errors.Is(err, errWithin):
		return exitUsage
	case errors.Is(err, relock.ErrNotAcquired):
		return exitNotAcquired
	case errors.Is(err, relock.ErrLost):
		return exitLost
	}
	return exitUnavailable
}

// trimName removes the library's name from a message that begins with the tool's name. It makes joined errors
// one line, and drops repeated ones.
func trimName(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "relock: ")
		lines = slices.DeleteFunc(lines, func(said string) bool { return strings.Contains(line, said) })
		if !slices.ContainsFunc(lines, func(said string) bool { return strings.Contains(said, line) }) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// A server says which Redis has the locks.
type server struct {
	url, prefix       string
	cert, key, cacert string        // files, in PEM
	sharded           bool          // waiters are woken over sharded pub/sub
	within            time.Duration // bounds its first answer; 0: reachable does
}

func (s *server) flags(fs *flags, env []string) {
	fs.StringVar(&s.url, "redis", cmp.Or(lookup(env, "REDIS_URL"), defaultURL), `URL: the URL of Redis (default: REDIS_URL, else `+defaultURL+`):
  host:port, or redis://[user:password@]host:port[/db], with rediss:// for TLS
  redis+cluster://[user:password@]host:port,...   rediss+cluster://
  redis+sentinel://[user:password@]sentinel:port,.../master[/db]
    user:password is for the Sentinels; for Redis, append ?username=U&password=P`)
	fs.StringVar(&s.prefix, "prefix", cmp.Or(lookup(env, "RELOCK_PREFIX"), "relock"), "P: prefix of every key in Redis (default: RELOCK_PREFIX, else relock)")
	fs.StringVar(&s.cert, "cert", "", "FILE: the client's TLS certificate; needs -key")
	fs.StringVar(&s.key, "key", "", "FILE: the key of the certificate")
	fs.StringVar(&s.cacert, "cacert", "", "FILE: CA certificates to trust for TLS (default: those of the system)")
	fs.BoolVar(&s.sharded, "sharded", false, "wake waiters through sharded pub/sub, as some hosted servers need (docs/servers.md)")
}

// A link is a connection to the locks of one Redis.
type link struct {
	addr  string
	rdb   redis.UniversalClient
	locks *relock.Client
	lost  bool // the hold was lost, or there was none: close does not wait for Redis
	shut  bool
}

// connect returns a link to a Redis that has answered once.
func (s *server) connect(ctx context.Context, opts ...relock.Option) (*link, error) {
	l, err := s.open(opts...)
	if err != nil {
		return nil, err
	}
	if err := s.greet(ctx, l, cmp.Or(s.within, reachable)); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// open returns a link that has sent nothing yet.
func (s *server) open(opts ...relock.Option) (*link, error) {
	redis.SetLogger(silent{}) // everything important is returned as an error
	l, err := s.dial()
	if err != nil {
		return nil, usageError{err}
	}
	opts = append(opts, relock.KeyPrefix(s.prefix))
	if s.sharded {
		opts = append(opts, relock.ShardedPubSub())
	}
	if l.locks, err = relock.New(l.rdb, opts...); err != nil {
		l.rdb.Close()
		return nil, err
	}
	return l, nil
}

// greet returns nil if Redis answers within that time.
func (s *server) greet(ctx context.Context, l *link, within time.Duration) error {
	asked, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	// go-redis reads until its deadline, even if a signal has ended ctx. Without a connection it stops.
	defer context.AfterFunc(ctx, func() { l.rdb.Close() })()
	// Locks need TIME, but not PING, which a user may lack. If a user lacks TIME, the library reports that.
	if err := l.rdb.Time(asked).Err(); err != nil && !redis.IsPermissionError(err) {
		return s.unanswered(ctx, l, err)
	}
	return nil
}

// unanswered returns the error of a request that Redis has not answered, with the address and the reason.
func (s *server) unanswered(ctx context.Context, l *link, err error) error {
	return fmt.Errorf("redis at %s: %w", l.addr, s.reason(ctx, l, err))
}

// reason returns why Redis did not answer in time. It makes one more connection to find that out, because
// go-redis retries until the time is over and then reports only the timeout. If reason finds nothing, it
// returns err.
func (s *server) reason(ctx context.Context, l *link, err error) error {
	o, one := l.rdb.(*redis.Client)
	if !one || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	if _, _, bad := net.SplitHostPort(o.Options().Addr); bad != nil && o.Options().Network != "unix" {
		return err // by Sentinel the address is a word of go-redis
	}
	ctx, cancel := context.WithTimeout(ctx, hasty)
	defer cancel()
	conn, dialled := new(net.Dialer).DialContext(ctx, o.Options().Network, o.Options().Addr)
	if dialled != nil {
		return cmp.Or(unlessLate(dialled), err)
	}
	defer conn.Close()
	if config := o.Options().TLSConfig; config != nil {
		if failed := tls.Client(conn, config.Clone()).HandshakeContext(ctx); failed != nil {
			return fmt.Errorf("TLS: %w (use rediss:// only for a port that speaks TLS)", failed)
		}
	}
	return fmt.Errorf("it accepts connections, but does not answer: %w", err)
}

// unlessLate returns err, or nil for a timeout: the first request has ended with a timeout already.
func unlessLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// close lets a wait that was given up leave its queue first. Otherwise the lock would be granted to a waiter
// that has gone. More calls of close do nothing.
func (l *link) close() {
	if l.shut {
		return
	}
	l.shut = true
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if l.lost || l.locks.Shutdown(ctx) != nil {
		l.rdb.Close() // requests in flight end with their connections, and holds with their leases
	}
	_ = l.locks.Close() // always nil
	l.rdb.Close()
}

// hurry makes a signal end every wait for Redis, until stop is called. Only the release of the lock is left
// at that time. If Redis does not answer, it gets a moment more, and then the lease ends the hold. The signal
// may also have been sent before the command ended, to relock and to the command.
func (l *link) hurry(signals <-chan os.Signal) (stop func()) {
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-signals:
		case <-over:
			return
		}
		select {
		case <-over: // a Redis that answers does so within farewell
		case <-time.After(hasty):
			l.rdb.Close()
			_ = l.locks.Close() // always nil
		}
	})
	return func() {
		close(over)
		watch.Wait()
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// lookup returns a variable's value. If there are several, the last one counts, as for os/exec.
func lookup(env []string, name string) (value string) {
	for _, kv := range env {
		if v, is := strings.CutPrefix(kv, name+"="); is {
			value = v
		}
	}
	return value
}
