//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/relock-go/relock"
)

const runHelp = `relock run [flags] NAME -- command [argument ...]: run a command under a lock

  -wait D       give up after that long; 0: one attempt (default: wait for ever).
                A Redis that does not answer meanwhile is no lock that is taken: 69
  -ttl D        the lease: how long the lock outlives a machine that dies (default 30s)
  -grace D      from SIGTERM to SIGKILL when the lock is lost (default 10s)
  -owner ID     named owner: runs with the same one do not exclude each other
  -fair         let runs in strictly in the order in which they came
  -read         share a read/write lock with the other readers
  -write        take a read/write lock for writing: no reader, no other writer
` + serverHelp + `
The command gets RELOCK_NAME, RELOCK_TOKEN (larger than that of every run before:
a resource that refuses smaller ones is safe from late writes) and, with -owner,
RELOCK_OWNER. Readers overlap: where they write at all, the resource must not
refuse one for another's larger token. The command runs in a process group of its own. TERM, INT and HUP are passed
on to the group; the lock is released when the command ends, and not before. When
the lock is lost, the group gets TERM and after -grace KILL. On Linux, the command
(but not what it has started) is killed when relock is.

Exit status: the command's; 128+n when signal n ended it, or ended the wait;
64 usage; 69 Redis cannot be reached or refuses, or NAME is in use as another
kind of lock (plain, fair, rw, fair rw); 75 not acquired within -wait; 76 the lock
was lost; 126 the command cannot be started; 127 it was not found.
`

// A job is a command and the lock it runs under.
type job struct {
	*tool
	server
	name    string
	owner   string
	fair    bool
	read    bool // for reading, or
	write   bool // for writing; neither: a lock that nobody shares
	ttl     time.Duration
	wait    time.Duration
	bounded bool // wait counts
	grace   time.Duration
	command []string
}

func (t *tool) run(ctx context.Context, args []string) int {
	j := &job{tool: t}
	set := flagSet()
	j.flags(set)
	if status, ok := t.parse(set, args, runHelp); !ok {
		return status
	}
	if err := j.take(set.Args()); err != nil {
		return t.fail(usageError{err})
	}
	signals := make(chan os.Signal, 16)
	notify(signals)
	defer signal.Stop(signals)
	status, err := j.do(ctx, signals)
	if err != nil {
		return t.fail(err)
	}
	return status
}

func (j *job) flags(set *flag.FlagSet) {
	j.server.flags(set, j.env)
	set.StringVar(&j.owner, "owner", "", "")
	set.BoolVar(&j.fair, "fair", false, "")
	set.BoolVar(&j.read, "read", false, "")
	set.BoolVar(&j.write, "write", false, "")
	set.DurationVar(&j.ttl, "ttl", 30*time.Second, "")
	set.DurationVar(&j.grace, "grace", 10*time.Second, "")
	set.Func("wait", "", func(s string) (err error) {
		j.wait, err = time.ParseDuration(s)
		if err == nil && j.wait < 0 {
			err = errors.New("less than nothing")
		}
		j.bounded = true
		return err
	})
}

// take reads what stands after the flags.
func (j *job) take(args []string) error {
	if len(args) < 3 || args[1] != "--" {
		return errors.New("want: relock run [flags] NAME -- command [argument ...]; see relock run -h")
	}
	if j.grace < 0 {
		return errors.New("-grace is less than nothing")
	}
	if j.read && j.write {
		return errors.New("-read and -write exclude each other")
	}
	j.name, j.command = args[0], args[2:]
	if j.bounded {
		j.patience = min(max(j.wait, hasty), reachable)
	}
	return nil
}

// notify asks for the signals that are passed on. One that was ignored when
// relock started stays ignored, by the command too: nohup has to work.
func notify(signals chan<- os.Signal) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
}

// do runs the command under the lock. An error means that it was not started, or
// that the lock was lost.
func (j *job) do(ctx context.Context, signals <-chan os.Signal) (status int, err error) {
	var hold *relock.Hold
	var l *link
	err = j.interruptible(ctx, signals, func(ctx context.Context) (err error) {
		if l, err = j.connect(ctx); err == nil {
			hold, err = j.acquire(ctx, l)
		}
		return err
	})
	if l != nil {
		defer l.close()
	}
	if err != nil {
		if hold != nil {
			_ = hold.Release() // a failure ends with the lease; the signal is what to tell
		}
		return 0, err
	}
	status, err = j.supervise(ctx, hold, signals)
	switch released := hold.Release(); {
	case errors.Is(released, relock.ErrLost):
		return 0, released
	case released != nil:
		j.complain("relock: %s; its lease ends it\n", trimName(released))
	}
	return status, err
}

func (j *job) acquire(ctx context.Context, l *link) (*relock.Hold, error) {
	lock := j.lock(l)
	if j.bounded {
		return lock.TryAcquire(ctx, j.wait)
	}
	return lock.Acquire(ctx)
}

func (j *job) lock(l *link) *relock.Lock {
	options := []relock.LockOption{relock.TTL(j.ttl)}
	if j.owner != "" {
		options = append(options, relock.Owner(j.owner))
	}
	if j.fair {
		options = append(options, relock.Fair())
	}
	switch {
	case j.read:
		return l.locks.NewRWLock(j.name, options...).RLocker()
	case j.write:
		return l.locks.NewRWLock(j.name, options...).WLocker()
	}
	return l.locks.NewLock(j.name, options...)
}

// An interrupted says that a signal ended the wait for the lock.
type interrupted struct{ syscall.Signal }

func (i interrupted) Error() string { return i.String() + " while waiting" }

// interruptible calls fn, whose context a signal ends. A signal that comes at
// the last moment counts too: the command is not started then.
func (j *job) interruptible(ctx context.Context, signals <-chan os.Signal, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case s := <-signals:
			cancel(interrupted{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	})
	err := fn(ctx)
	cancel(nil)
	watch.Wait()
	if s, is := errors.AsType[interrupted](context.Cause(ctx)); is {
		return s
	}
	return err
}

// environ is what the command gets. What an outer relock run said of its own
// lock is not said of this one.
func (j *job) environ(token int64) []string {
	env := slices.DeleteFunc(slices.Clone(j.env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "RELOCK_NAME" || name == "RELOCK_TOKEN" || name == "RELOCK_OWNER"
	})
	env = append(env, "RELOCK_NAME="+j.name, "RELOCK_TOKEN="+strconv.FormatInt(token, 10))
	if j.owner != "" {
		env = append(env, "RELOCK_OWNER="+j.owner)
	}
	return env
}

// notStarted is the exit status of a command that could not be started.
func notStarted(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitNotFound
	}
	return exitNotExecutable
}
