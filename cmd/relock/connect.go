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
	// reachable bounds how long the first question to Redis may take, where no -wait
	// does; hasty is how much it gets at least, as a connection is made for it.
	reachable = 5 * time.Second
	hasty     = 500 * time.Millisecond
)

// farewell bounds how long the last words to Redis may take. A test makes it long.
var farewell = 2 * time.Second

// errWithin is for a wait that only its own end could end.
var errWithin = errors.New("it would wait for ever")

// A usageError is the caller's: wrong arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// statusOf is the exit status of an error before a command was started.
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

// trimName takes the library's name off a message that begins with the tool's. Errors that were
// joined are one line, and none of them is said twice.
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

// A server says where the locks are.
type server struct {
	url, prefix       string
	cert, key, cacert string        // files, in PEM
	sharded           bool          // waiters are woken over sharded pub/sub
	patience          time.Duration // for its first answer; 0: as long as reachable
}

func (s *server) flags(fs *flags, env []string) {
	fs.StringVar(&s.url, "redis", cmp.Or(lookup(env, "REDIS_URL"), defaultURL), `URL: where Redis is (default: REDIS_URL, else `+defaultURL+`):
  redis://[user:password@]host:port[/db]          rediss:// for TLS
  redis+cluster://[user:password@]host:port,...   rediss+cluster://
  redis+sentinel://[user:password@]sentinel:port,.../master[/db]`)
	fs.StringVar(&s.prefix, "prefix", cmp.Or(lookup(env, "RELOCK_PREFIX"), "relock"), "P: begins every key in Redis (default: RELOCK_PREFIX, else relock)")
	fs.StringVar(&s.cert, "cert", "", "FILE: the client's certificate for TLS, with -key")
	fs.StringVar(&s.key, "key", "", "FILE: the key of that certificate")
	fs.StringVar(&s.cacert, "cacert", "", "FILE: whom to trust for TLS (default: whom the system trusts)")
	fs.BoolVar(&s.sharded, "sharded", false, "wake waiters over sharded pub/sub, as some hosted servers need (docs/servers.md)")
}

// A link is a connection to the locks of one Redis.
type link struct {
	addr  string
	rdb   redis.UniversalClient
	locks *relock.Client
	lost  bool // what was held: there is nothing to say to Redis any more
	shut  bool
}

// connect returns a link to a Redis that has answered.
func (s *server) connect(ctx context.Context, opts ...relock.Option) (*link, error) {
	redis.SetLogger(silent{}) // what matters comes back as an error
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
	asked, cancel := context.WithTimeout(ctx, cmp.Or(s.patience, reachable))
	defer cancel()
	// Locks need TIME, and PING they do not: a user may lack that. Whoever lacks TIME is
	// told so by the library.
	if err := l.rdb.Time(asked).Err(); err != nil && !redis.IsPermissionError(err) {
		err = s.reason(ctx, l, err)
		l.close()
		return nil, fmt.Errorf("redis at %s: %w", l.addr, err)
	}
	return l, nil
}

// reason is why a Redis has not answered in time, as one more connection finds it, or err. go-redis
// tries again until the time is over, and then says no more than that.
func (s *server) reason(ctx context.Context, l *link, err error) error {
	o, one := l.rdb.(*redis.Client)
	if !one || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
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
			return fmt.Errorf("TLS: %w (rediss:// is for a port that speaks TLS)", failed)
		}
	}
	return fmt.Errorf("it takes connections, and does not answer: %w", err)
}

// unlessLate is nil for an error that says as little as the one that there is.
func unlessLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// close lets a wait that was given up leave its queue first: else the lock would be granted to a
// waiter that has gone. Closing again does nothing.
func (l *link) close() {
	if l.shut {
		return
	}
	l.shut = true
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if l.lost || l.locks.Shutdown(ctx) != nil {
		l.rdb.Close() // what is under way ends with its connection, and what is held with its lease
	}
	_ = l.locks.Close() // always nil
	l.rdb.Close()
}

// hurry has a signal end all that still waits for Redis, until stop. There is nothing left to do then
// but to release the lock: a Redis that does not answer gets a moment more, and the lease ends the
// hold. The signal may have been sent before the command ended, to both of them.
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
		case <-over: // a Redis that answers needs no more than that
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

// lookup returns a variable's value; of several, the last counts, as for os/exec.
func lookup(env []string, name string) (value string) {
	for _, kv := range env {
		if v, is := strings.CutPrefix(kv, name+"="); is {
			value = v
		}
	}
	return value
}
