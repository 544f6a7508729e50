package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/ending"
)

// noSentinel is in the text of go-redis' error if no Sentinel could name the primary. That error wraps the answers of
// the Sentinels, which must not be taken for an answer to the script.
const noSentinel = "all sentinels specified in configuration are unreachable"

// ErrNoReply is the error of a call that was not answered within its timeout, or within the client's own.
var ErrNoReply = errors.New("no reply from redis in time")

var (
	errNotSent = errors.New("not sent")
	// errNothing is the error of a call for which the client, or a hook, returned neither a reply nor an error.
	errNothing = errors.New("neither reply nor error")
	// errBarred marks a refusal of credentials that Redis accepted earlier. While a password is rotated, the server and
	// its clients do not learn the new one at the same instant.
	errBarred = errors.New("redis refuses the credentials, though it accepted this client before")
	// errOnlyWaitFailed is the error of a call whose script ran, and whose WAIT failed.
	errOnlyWaitFailed = errors.New("it ran, but WAIT for replicas failed")
)

// Outcome is what the error of a call says about its script.
type Outcome int

// The outcomes of a failed call.
const (
	Unknown     Outcome = iota // the script may have run, or may still run
	NotExecuted                // the script did not run, and another try may succeed
	Refused                    // Redis answered with an error that another try would get as well
	Closed                     // the client is closed, so no call can succeed
)

// Classify returns the outcome of a call from its error, which must not be nil. An unfamiliar error is Unknown: then
// the caller must find out what happened.
func Classify(err error) Outcome {
	outcome := classify(err)
	if outcome == NotExecuted && errors.Is(err, errOnlyWaitFailed) {
		return Unknown // the WAIT did not run, but the script before it did
	}
	return outcome
}

func classify(err error) Outcome {
	var answer redis.Error
	var op *net.OpError
	switch {
	case ending.Is(err, errNotSent), ending.Is(err, errBarred):
		return NotExecuted
	case ending.In(err): // err holds a context's cause, maybe another call's error: the checks below must not see it
		return Unknown
	case errors.Is(err, redis.ErrClosed):
		return Closed
	case errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted),
		errors.As(err, &op) && op.Op == "dial",
		strings.Contains(err.Error(), noSentinel):
		return NotExecuted
	case errors.As(err, &answer):
		return classifyAnswer(answer.Error())
	}
	return Unknown
}

// TryAgain reports whether a Cluster refused a call with several keys, and not with one, as their slot is migrating.
func TryAgain(err error) bool { return hasCode(err, "TRYAGAIN") }

// ReadOnly reports whether a server refused to write because it is a replica.
func ReadOnly(err error) bool { return hasCode(err, "READONLY") }

// takesNoWrites reports whether err is a server's answer that it accepts no writes now.
func takesNoWrites(err error) bool { return ReadOnly(err) || hasCode(err, "NOREPLICAS") }

// OtherLayout returns the kind that Redis stores for a lock, if a script refused the lock because clients of another
// layout use it.
func OtherLayout(err error) (stored string, is bool) {
	if !hasCode(err, "LAYOUT") {
		return "", false
	}
	var answer redis.Error
	errors.As(err, &answer)
	return strings.CutPrefix(scriptError(answer.Error()), "LAYOUT ")
}

// hinted adds advice on TLS to the error of a call, if the client has no TLS and no command has been answered yet. A
// server that accepts TLS only does not answer a client without TLS, or hangs up.
func (t *Transport) hinted(err error) error {
	if t.everAnswered.Load() {
		return err
	}
	switch {
	case errors.As(err, new(redis.Error)):
		t.everAnswered.Store(true)
	case t.plain && !ending.In(err) && Classify(err) == Unknown:
		return fmt.Errorf("%w (it has answered no command yet: if the server takes TLS only, set TLSConfig)", err)
	}
	return err
}

// barred turns a refusal of credentials into errBarred, so that callers try again. It does not if no call of this
// client has ever succeeded: then the credentials are wrong, and the first call must say so.
func (t *Transport) barred(err error) error {
	if err != nil && t.everSucceeded.Load() && (hasCode(err, "WRONGPASS") || hasCode(err, "NOAUTH")) {
		return fmt.Errorf("%w: %w", errBarred, err)
	}
	return err
}

// Refuses reports whether err is a refusal that lasts. err may come from another connection, such as the inbox.
func (t *Transport) Refuses(err error) bool { return Classify(t.barred(err)) == Refused }

// hasCode reports whether err is an error reply of Redis with this code.
func hasCode(err error, word string) bool {
	if err == nil {
		return false // early, to save the allocation of answer
	}
	var answer redis.Error
	return errors.As(err, &answer) && !ending.In(err) && code(scriptError(answer.Error())) == word
}

// classifyAnswer returns the outcome for an error reply of Redis, or of a proxy. The errors in the first list are
// transient. Redis checks for them before a script's first write, so the script has changed nothing.
func classifyAnswer(text string) Outcome {
	text = scriptError(text)
	switch code(text) {
	case "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "NOREPLICAS", "MISCONF",
		"MOVED", "ASK", "BUSY", "NOSCRIPT":
		return NotExecuted
	case "UNBLOCKED": // from WAIT on a primary that was demoted: the script before it has run
		return Unknown
	case "ERR":
		// The text goes on with "reached", or in a Cluster with "+ cluster connections reached".
		if strings.HasPrefix(text, "ERR max number of clients ") {
			return NotExecuted
		}
	case "upstream": // Envoy: the server behind it did not answer, or closed the connection
		return Unknown
	}
	if text == "no upstream host" { // Envoy: none of the servers behind it is healthy
		return NotExecuted
	}
	return Refused
}

// scriptError returns the error of a command inside a script. Redis before version 7 puts text in front of it, as in
// "ERR Error running script (call to f_6b1b): @user_script:1: -READONLY You can't ...".
func scriptError(text string) string {
	if strings.HasPrefix(text, "ERR Error running script") {
		if _, inner, ok := strings.Cut(text, ": -"); ok {
			return inner
		}
	}
	return text
}

// code returns the first word of an error reply of Redis.
func code(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// notSent returns the error of a call whose context ended before its command was sent.
func notSent(ctx context.Context) error {
	return fmt.Errorf("%w: %w", errNotSent, ending.Of(ctx))
}

// leaveError returns the error of a call that ends without a reply. sent tells whether it may have been written.
func leaveError(ctx context.Context, sent bool) error {
	switch {
	case ctx.Err() != nil && !sent:
		return notSent(ctx)
	case ctx.Err() != nil:
		return ending.Of(ctx)
	case !sent:
		return fmt.Errorf("%w: %w", errNotSent, ErrNoReply)
	}
	return ErrNoReply
}

// forCaller turns an error of go-redis or of a stream into one for the caller. The result never matches a context's
// error: the context in it is not the caller's, but one that the Transport, a hook or a dialer made.
func forCaller(err error) error {
	own := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	switch outcome := Classify(err); {
	case own && outcome == NotExecuted:
		return fmt.Errorf("%w: %v", errNotSent, err)
	case own:
		return fmt.Errorf("%w: %v", ErrNoReply, err)
	case outcome == Unknown && timedOut(err):
		return fmt.Errorf("%w: %w", ErrNoReply, err)
	}
	return err
}

func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
