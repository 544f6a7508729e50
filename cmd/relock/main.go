//go:build unix

// Command relock runs commands under a distributed lock, shows who holds a lock,
// and demonstrates the library.
//
//	relock demo [flags]                      show processes that contend, crash, pause and share; needs no Redis
//	relock doctor [flags]                    check whether this Redis is fit for locks
//	relock run [flags] NAME command ...      run a command while holding the lock NAME
//	relock hold [flags] NAME                 hold the lock without a command
//	relock wait [flags] NAME                 wait until the lock is free, without taking it
//	relock ls [flags] [PREFIX]               list the locks in use
//	relock top [flags] [PREFIX]              list the locks in use, refreshed, longest queues first
//	relock info [flags] NAME                 show who holds the lock, its kind, and how many wait
//	relock waiters [flags] NAME              list the waiters for the lock, in order, with their modes
//	relock unlock -force [flags] NAME        take the lock from all its holders, or from one
//	relock serve [flags]                     serve a web page with all locks, their holders and waiters
//	relock completion bash|zsh|fish          print a script that completes relock's arguments in a shell
//	relock man                               print this help as a man page
//	relock version                           print the version of this program
//	relock help [COMMAND]                    print this list, or the help of one command
//
// The URL of Redis comes from -redis, else from the variable REDIS_URL, else it is
// redis://127.0.0.1:6379. A name is one kind of lock at a time: plain, unless
// -fair, -n, -read or -write select another. Put a password in REDIS_URL: other
// users of the machine can see arguments.
//
// # Exit status
//
// relock run exits with the status of its command, or with 128+n if signal n
// ended it. relock's own statuses follow sysexits.h and the shell:
//
//	1    a check of the demo failed, or the doctor found something wrong
//	64   usage: the arguments are wrong
//	69   Redis cannot be reached or refuses the request, or NAME is in use as another
//	     kind of lock; run did not start its command
//	74   output could not be written, for example to a full disk; everything else was done
//	75   the lock was not acquired within -wait; the command was not started; try again later
//	76   the lock was lost; relock stopped the command, unless it had ended
//	126  the command was found, but could not be started
//	127  the command was not found
//
// A command may itself exit with one of these statuses. With its own, relock says
// why; with -q not for 75, 76 and a signal.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

const (
	exitFailed        = 1   // a check of the demo or the doctor failed
	exitUsage         = 64  // EX_USAGE
	exitUnavailable   = 69  // EX_UNAVAILABLE
	exitOutput        = 74  // EX_IOERR
	exitNotAcquired   = 75  // EX_TEMPFAIL
	exitLost          = 76  // EX_PROTOCOL
	exitNotExecutable = 126 // as in a shell
	exitNotFound      = 127 // as in a shell
	exitSignal        = 128 // and the signal's number
)

func main() {
	// The reader of relock's output may go away. That must not end a hold or the supervision of a command,
	// and must not change the exit status. SIGPIPE is caught and not ignored, because the command would
	// inherit an ignored one.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	t := &tool{env: os.Environ(), in: os.Stdin, out: os.Stdout, err: os.Stderr}
	status := t.main(context.Background(), os.Args[1:])
	if status == exitSignal+int(syscall.SIGINT) {
		t.interrupt.die()
	}
	os.Exit(status)
}

// A tool is one run of relock, with everything of its process that it uses.
type tool struct {
	env       []string
	in        io.Reader
	out, err  io.Writer
	interrupt interrupt // how SIGINT has ended it
	told      bool      // the loss of the lock was reported
	unsaid    error     // why a write to standard output failed, or nil
	quiet     bool      // prints no notes, and no errors that the exit status shows
	json      bool      // prints one JSON object a line
}

// main is relock without its process: it returns the exit status.
func (t *tool) main(ctx context.Context, args []string) int {
	if len(args) > 0 && (args[0] == "-version" || args[0] == "--version") {
		args = append([]string{"version"}, args[1:]...)
	}
	given := args
	args, err := common(args, t.env)
	if err != nil {
		t.json = wantsJSON(given)
		return t.fail(usageError{err})
	}
	if len(args) == 0 {
		t.complain("%s", usage())
		return exitUsage
	}
	name, args := args[0], args[1:]
	switch name {
	case workerCommand:
		return t.work(ctx)
	case completeCommand:
		return t.complete(ctx, args)
	}
	v, known := verbOf(name)
	if !known {
		t.json = wantsJSON(given)
		return t.fail(usageError{fmt.Errorf("unknown command %q; see relock help", name)})
	}
	return t.written(v.do(ctx, t, args))
}

// written returns the exit status of a verb that has ended. It is exitOutput if output could not be written.
func (t *tool) written(status int) int {
	if status != 0 || t.unsaid == nil {
		return status
	}
	return t.failAs(exitOutput, fmt.Errorf("cannot write to standard output: %w", t.unsaid))
}

// say prints to standard output.
func (t *tool) say(format string, args ...any) {
	_, err := fmt.Fprintf(t.out, format, args...)
	t.heard(err)
}

// heard records that standard output fails, as on a full disk. A reader that has gone is no failure: it wants
// no more output.
func (t *tool) heard(err error) {
	if err != nil && t.unsaid == nil && !errors.Is(err, syscall.EPIPE) {
		t.unsaid = err
	}
}

// complain prints to standard error. It ignores errors, because the exit status says enough.
func (t *tool) complain(format string, args ...any) { _, _ = fmt.Fprintf(t.err, format, args...) }

// note reports progress that the exit status does not show.
func (t *tool) note(format string, args ...any) {
	if !t.quiet {
		t.warn(format, args...)
	}
}

// warn is note for what -q must not hide, because no exit status shows it: Redis is silent, or a hold is not released.
func (t *tool) warn(format string, args ...any) {
	switch {
	case t.json:
		t.tell(t.err, map[string]string{"note": fmt.Sprintf(format, args...)})
	default:
		t.complain("relock: "+format+"\n", args...)
	}
}

// fail reports an error and returns the exit status for it. With -q it says nothing that the status says.
func (t *tool) fail(err error) int {
	status := statusOf(err)
	if s, is := errors.AsType[interrupted](err); is && s.Signal == syscall.SIGINT {
		t.interrupt = dieAlone
	}
	byStatus := status == exitNotAcquired || status == exitLost || status >= exitSignal
	if t.quiet && byStatus || t.told && status == exitLost && !t.json {
		return status
	}
	return t.failAs(status, err)
}

// failAs reports an error, and returns the status.
func (t *tool) failAs(status int, err error) int {
	if t.json {
		t.tell(t.err, failureOf(err, status))
	} else {
		t.complain("relock: %s\n", trimName(err))
	}
	return status
}

// failUnlessStopped is fail unless a signal has ended ctx. In that case the signal caused the error, and the
// status is the signal's. It is 0 for a verb that is meant to end by a signal.
func (t *tool) failUnlessStopped(ctx context.Context, err error) int {
	switch s, is := errors.AsType[interrupted](context.Cause(ctx)); {
	case is:
		return t.fail(s)
	case ctx.Err() != nil:
		return 0
	}
	return t.fail(err)
}

// quotedAll quotes arguments as they were given.
func quotedAll(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = strconv.Quote(word)
	}
	return strings.Join(all, " ")
}

// takesNothing returns an action of a verb without arguments.
func (t *tool) takesNothing(name string, fn func(context.Context) (status int)) action {
	return func(ctx context.Context, words, more []string) int {
		if words = append(words, more...); len(words) > 0 {
			return t.fail(usageError{fmt.Errorf("%s takes no arguments: %s", name, quotedAll(words))})
		}
		return fn(ctx)
	}
}

func (t *tool) help(*flags) action {
	return func(_ context.Context, words, more []string) int {
		words = append(words, more...)
		if len(words) == 0 {
			t.say("%s", usage())
			return 0
		}
		v, known := verbOf(words[0])
		switch {
		case len(words) > 1:
			return t.fail(usageError{errors.New("help takes at most one COMMAND; see relock help")})
		case !known:
			return t.fail(usageError{fmt.Errorf("unknown command %q; see relock help", words[0])})
		}
		t.say("%s", v.help(t))
		return 0
	}
}

func (t *tool) version(*flags) action {
	return t.takesNothing("version", func(context.Context) int {
		if t.json {
			return t.tell(t.out, map[string]string{"version": version()})
		}
		t.say("%s\n", version())
		return 0
	})
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "relock (unknown build)"
	}
	return fmt.Sprintf("relock %s %s", info.Main.Version, info.GoVersion)
}
