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

// noSentinel is what go-redis says of a dial for which no Sentinel could name the primary.
// It has in it what they answered, which is no answer to the script.
const noSentinel = "all sentinels specified in configuration are unreachable"

// ErrNoReply is the error of a call that was not answered within its timeout, or the client's own.
var ErrNoReply = errors.New("no reply from redis in time")

var (
	errNotSent = errors.New("not sent")
	// errNothing is for a client, or a hook in it, that reports success and has no reply.
	errNothing = errors.New("neither reply nor error")
	// errBarred is for credentials that Redis refuses now, and accepted before: in a rotation of a
	// password the server and its clients do not learn the new one at the same instant.
	errBarred = errors.New("redis refuses the credentials, though it accepted this client before")
	// errWaited is for a script that ran, and whose WAIT failed.
	errWaited = errors.New("it ran, but WAIT for replicas failed")
)

// Outcome says what the error of a call means for the script.
type Outcome int

// The outcomes of a failed call.
const (
	Unknown     Outcome = iota // it may have run, or may yet run
	NotExecuted                // it did not run, and did so for a passing reason
	Refused                    // Redis answered with an error, and would do so again
	Closed                     // the client is closed, no call will succeed
)

func (o Outcome) String() string {
	switch o {
	case NotExecuted:
		return "not executed"
	case Refused:
		return "refused"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// Classify returns the outcome of a call from its error, which must not be
// nil. What it does not know is Unknown: that costs a look, never a lock.
func Classify(err error) Outcome {
	outcome := classify(err)
	if outcome == NotExecuted && errors.Is(err, errWaited) {
		return Unknown
	}
	return outcome
}

func classify(err error) Outcome {
	var answer redis.Error
	var op *net.OpError
	switch {
	case ending.Is(err, errNotSent), ending.Is(err, errBarred):
		return NotExecuted
	case ending.In(err): // what its cause says is of something else
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

// TryAgain reports whether a Cluster refused a call of several keys because
// their slot is migrating. A call of one key would be served.
func TryAgain(err error) bool { return says(err, "TRYAGAIN") }

// ReadOnly reports whether a server refused to write because it is a replica.
func ReadOnly(err error) bool { return says(err, "READONLY") }

// OtherLayout returns what Redis keeps as the kind of a lock, if a script refused the lock because clients of
// another layout use it.
func OtherLayout(err error) (stored string, is bool) {
	if !says(err, "LAYOUT") {
		return "", false
	}
	var answer redis.Error
	errors.As(err, &answer)
	return strings.CutPrefix(inner(answer.Error()), "LAYOUT ")
}

// hinted adds to the error of a call what may be the matter with a server that has not answered
// any call: one that takes TLS only says nothing to a client without it, or hangs up.
func (t *Transport) hinted(err error) error {
	if t.met.Load() {
		return err
	}
	var answer redis.Error
	switch {
	case err == nil, errors.As(err, &answer):
		t.met.Store(true)
	case t.plain && !ending.In(err) && Classify(err) == Unknown:
		return fmt.Errorf("%w (it has answered no command yet: if the server takes TLS only, set TLSConfig)", err)
	}
	return err
}

// barred makes a refusal of credentials one that may pass, unless Redis has never served this
// client: then they are wrong, and the first call must say so.
func (t *Transport) barred(err error) error {
	if err != nil && t.served.Load() && (says(err, "WRONGPASS") || says(err, "NOAUTH")) && !ending.Is(err, errBarred) {
		return fmt.Errorf("%w: %w", errBarred, err)
	}
	return err
}

// Refuses reports whether err, of another connection of the same client, is a refusal that lasts.
func (t *Transport) Refuses(err error) bool { return Classify(t.barred(err)) == Refused }

// says reports whether err is one that Redis sent with this code.
func says(err error, word string) bool {
	if err == nil {
		return false // before answer costs an allocation
	}
	var answer redis.Error
	return errors.As(err, &answer) && !ending.In(err) && code(inner(answer.Error())) == word
}

// mayHaveRun reports whether err leaves open what became of the script.
func mayHaveRun(err error) bool { return err != nil && Classify(err) == Unknown }

// classifyAnswer is for errors that Redis sent, or a proxy in between. Those that pass come from checks before a
// script's first write; a script that has written is not stopped by them.
func classifyAnswer(text string) Outcome {
	text = inner(text)
	switch code(text) {
	case "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "NOREPLICAS", "MISCONF",
		"MOVED", "ASK", "BUSY", "NOSCRIPT":
		return NotExecuted
	case "UNBLOCKED": // a WAIT whose primary is one no more: what it waited for has run
		return Unknown
	case "ERR":
		// "reached", or in a cluster "+ cluster connections reached".
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

// inner takes off what Redis before version 7 put before what a command in a script was answered with, as in "ERR Error
// running script (call to f_6b1b): @user_script:1: -READONLY You can't ...".
func inner(text string) string {
	if strings.HasPrefix(text, "ERR Error running script") {
		if _, inner, ok := strings.Cut(text, ": -"); ok {
			return inner
		}
	}
	return text
}

// code returns the first word of an error that Redis sent.
func code(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// notSent is the error of a call whose context had ended before it began.
func notSent(ctx context.Context) error {
	return fmt.Errorf("%w: %w", errNotSent, ending.Of(ctx))
}

// ours is what the caller gets for an error that go-redis returned. It does not match a context's error: the caller's
// context has not ended, the one that await made has, or a dialer's own.
func ours(err error) error {
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
