//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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

const runAfter = `The command gets RELOCK_NAME, RELOCK_TOKEN and, with -owner, RELOCK_OWNER.
RELOCK_TOKEN is the fencing token. It is larger than that of every earlier run, except that
overlapping runs of one -owner share it. A resource that refuses smaller tokens is safe
from late writes. Readers overlap, and so do runs with -n: the resource must not refuse
their writes because another run has a larger token.

The command runs in its own process group. relock passes TERM, INT, HUP, QUIT, USR1 and
USR2 on to the group, and releases the lock only when the command ends. If the lock is
lost, the group gets TERM, and KILL after -grace. On Linux, the command is killed when
relock dies, but processes that the command has started are not.
If relock starts with HUP or INT ignored, as under nohup, the command ignores them too.
For another signal, set a trap: relock run NAME sh -c 'trap "" TERM; exec ...'.
As the first process of a container, relock also reaps orphans. What the command leaves in
the background goes on without the lock.
At a terminal the command can read from it. Ctrl-C goes to the command. If the command dies
of it, so does whatever runs relock. Ctrl-Z stops relock and its command; fg or bg continues
both. relock does not renew the lock meanwhile. If the lease has ended by then, relock ends
the command.

Exit status: that of the command; 128+n if signal n ended the command or the wait (for INT,
relock itself dies of that signal);
64 wrong usage, or it would wait forever for an outer relock run, or this
-owner holds NAME for reading and asks to write; 69 Redis cannot be reached or refuses
the request, or NAME is in use as another kind of lock (plain, fair, rw, fair rw,
semaphore); 75 not acquired within -wait; 76 the lock was lost; 126 the command cannot
be started; 127 the command was not found.
`

// A job is a command and the lock it runs under.
type job struct {
	*tool
	started bool  // the command was started
	unsure  error // why Redis has not confirmed the release
	began   time.Time
	server
	patience
	name    string
	owner   string
	about   []relock.Option // its label, for the client
	label   string          // the text of that label
	fair    bool
	read    bool // for reading, or
	write   bool // for writing; neither: an exclusive lock
	runs    int  // how many at a time; 0: one
	ttl     time.Duration
	grace   time.Duration
	yield   yield         // 0: a run that waits changes nothing
	atLeast time.Duration // 0: only while the command runs
	every   time.Duration // 0: no interval
	unrun   int           // the exit status if another run has used the interval
	command []string
	trouble trouble
}

func (t *tool) run(fs *flags) action {
	j := &job{tool: t}
	j.flags(fs)
	return func(ctx context.Context, words, command []string) int {
		if err := j.take(words, command); err != nil {
			return t.fail(usageError{err})
		}
		signals := make(chan os.Signal, 16)
		notify(signals)
		defer signal.Stop(signals)
		do := j.do
		if j.every != 0 {
			do = j.once
		}
		status, err := do(ctx, signals)
		if err != nil {
			return t.fail(err)
		}
		return status
	}
}

// flags declares the flags of a command and of its lock.
func (j *job) flags(fs *flags) {
	j.lockFlags(fs)
	spanVar(fs, &j.grace, "grace", 10*time.Second, "D: time from SIGTERM to SIGKILL after the lock is lost (default 10s)")
	fs.Var(&j.yield, "yield", `SIGNAL: when another run waits for the lock, send the command's group this signal once: HUP, INT, QUIT, TERM, USR1, USR2 or WINCH. relock holds the lock until the command ends. The signal comes at least a second after the start, so that the command can set a trap. It does not continue a stopped command`)
	positiveVar(fs, &j.every, "every", 0, `D: run the command once in each interval of D by the clock of Redis, across all machines. If the command has already run in the interval, or is still running, say so and exit. If the command exits with 75 or cannot be started, the next run can use the interval. This run does not wait: if Redis does not answer, it exits with 69`)
	fs.Var(bounded{&j.unrun, 0, 255}, "skipped", "N: exit status when -every skips the command (default 0)")
	j.server.flags(fs, j.env)
}

// take reads the arguments after the flags.
func (j *job) take(words, command []string) error {
	if len(words) == 0 || len(command) == 0 {
		return errors.New("usage: relock run [flags] NAME command ...; see relock run -h")
	}
	if j.grace < 0 {
		return errors.New("-grace must not be negative")
	}
	if j.every == 0 && j.unrun != 0 {
		return errors.New("-skipped needs -every")
	}
	if j.every != 0 && (j.read || j.write || j.bounded || j.runs > 0 || j.atLeast != 0 || j.owner != "") {
		return errors.New("-every cannot be combined with -wait, -read, -write, -n, -at-least or -owner")
	}
	j.name, j.command = words[0], command
	return j.consistent()
}

// notify subscribes to the signals that are passed on. HUP and INT stay ignored, for the command too, if they
// were ignored when relock started, so that nohup works. For other signals Go does not tell a program that
// they were ignored.
func notify(signals chan<- os.Signal) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
}

// do runs the command under the lock. It returns an error if the lock was not acquired, or was lost. For a command that
// cannot be started, it returns a status.
func (j *job) do(ctx context.Context, signals <-chan os.Signal) (status int, err error) {
	status, err = j.under(ctx, signals, func(hold *relock.Hold) (int, error) { return j.supervise(ctx, hold, signals) })
	if j.unsure != nil {
		j.warn("%s", trimName(j.unsure))
	}
	return status, err
}

// under calls fn with a hold, and releases the hold.
func (j *job) under(ctx context.Context, signals <-chan os.Signal, fn func(*relock.Hold) (int, error)) (status int, err error) {
	var hold *relock.Hold
	var l *link
	j.began = time.Now()
	err = j.interruptible(ctx, signals, func(ctx context.Context) (err error) {
		if l, err = j.arrive(ctx); err == nil {
			hold, err = j.acquire(ctx, l)
		}
		return err
	})
	if l != nil {
		defer l.close()
	}
	if err != nil {
		if hold != nil {
			_ = hold.Release() // if this fails, the lease ends the hold; the signal is what must be reported
		}
		return 0, err
	}
	status, err = fn(hold)
	stop := l.hurry(signals)
	defer stop()
	released := hold.Release()
	l.lost = errors.Is(released, relock.ErrLost) // Redis may not answer, and the exit status must not wait for that
	l.close()
	switch {
	case errors.Is(released, relock.ErrClosed), released != nil && !l.lost: // interrupted by a signal, or Redis is silent
		j.unsure = unreleased{released}
	case l.lost:
		return 0, released
	}
	return status, err
}

// arrive returns a link to a Redis that has answered. A Redis that does not answer gets as long as -wait says.
func (j *job) arrive(ctx context.Context) (*link, error) {
	o, stop := j.watch(ctx, j.name)
	defer stop()
	return j.reach(ctx, &j.patience, j.began, o, append(j.about, relock.Logger(slog.New(&j.trouble)))...)
}

// An unreleased is the error of a release that Redis has not confirmed. The library says that the client goes on trying,
// but this program is about to end.
type unreleased struct{ error }

func (e unreleased) Error() string {
	const untrue, said = "; the client goes on trying, and the lease ends it at the latest", "; the lease ends it"
	return strings.NewReplacer(untrue, "", said, "").Replace(e.error.Error()) + "; the hold ends with its lease"
}

func (e unreleased) Unwrap() error { return e.error }

func (j *job) acquire(ctx context.Context, l *link) (*relock.Hold, error) {
	lock := j.lock(l)
	if hold, err := j.within(ctx, lock); hold != nil || err != nil {
		return hold, err
	}
	defer j.announce(ctx, lock)()
	if j.bounded {
		left := max(j.wait-time.Since(j.began), 0).Round(max(j.wait/100, time.Millisecond)) // connecting was a part of the wait
		hold, err := lock.TryAcquire(ctx, left)
		return hold, j.taken(ctx, lock, err)
	}
	return lock.Acquire(ctx)
}

// within refuses a wait that could not end, because this run is part of a run that holds the same lock. If it
// must acquire the lock to find out, it returns the hold.
func (j *job) within(ctx context.Context, lock *relock.Lock) (*relock.Hold, error) {
	outer := outerTokens(j.env, j.name)
	if len(outer) == 0 || j.bounded {
		return nil, nil
	}
	info, _ := lock.Info(ctx) // an error will come back from the lock request
	ours := slices.DeleteFunc(slices.Clone(info.Holders), func(h relock.Holder) bool { return !slices.Contains(outer, h.Token) })
	switch {
	case len(ours) == 0, slices.ContainsFunc(info.Holders, j.reenters):
		return nil, nil
	case j.runs > 0 && (info.Kind != "semaphore" || len(ours) < j.runs): // the other runs return their permits
		return nil, nil
	case j.read && !slices.ContainsFunc(ours, func(h relock.Holder) bool { return !h.Read }):
		// If a reader holds, only a waiting writer is in the way, and that writer waits for this outer run.
		if hold, err := lock.TryAcquire(ctx, 0); !errors.Is(err, relock.ErrNotAcquired) {
			return hold, nil // or nil: the next request returns the error
		}
	}
	return nil, fmt.Errorf("%q is held by an outer run: %w; give both runs the same -owner, or give this run -wait", j.name, errWithin)
}

// reenters reports whether this run gets the lock at once, as a hold of the same owner.
func (j *job) reenters(h relock.Holder) bool { return j.owner != "" && h.Owner == j.owner }

// An interrupted is the signal that ended the wait for the lock.
type interrupted struct{ syscall.Signal }

func (i interrupted) Error() string { return i.String() + " while waiting" }

// interruptible calls fn with a context that a signal ends. A signal at the last moment counts too: then the
// command is not started.
func (j *job) interruptible(ctx context.Context, signals <-chan os.Signal, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	var by error // the signal that was taken, even if fn ended before it ended ctx
	watch.Go(func() {
		select {
		case s := <-signals:
			by = interrupted{s.(syscall.Signal)}
			cancel(by)
		case <-ctx.Done():
		}
	})
	err := fn(ctx)
	cancel(nil)
	watch.Wait()
	return cmp.Or(by, err)
}

// environ returns the command's environment. It replaces what an outer relock run has set for its own lock.
func (j *job) environ(token int64) []string {
	env := slices.DeleteFunc(slices.Clone(j.env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"RELOCK_NAME", "RELOCK_TOKEN", "RELOCK_OWNER", runsVariable}, name)
	})
	runs := append(outerRuns(j.env), oneRun(j.name, token))
	env = append(env, "RELOCK_NAME="+j.name, "RELOCK_TOKEN="+strconv.FormatInt(token, 10), runsVariable+"="+strings.Join(runs, " "))
	if j.owner != "" {
		env = append(env, "RELOCK_OWNER="+j.owner)
	}
	return env
}

// notStarted returns the exit status of a command that could not be started.
func notStarted(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitNotFound
	}
	return exitNotExecutable
}
