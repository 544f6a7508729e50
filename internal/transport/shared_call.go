package transport

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/ending"
)

// A sharedCall is one call on a stream. It sends one command, and sends that again only if a group did nothing for it,
// or if the server does not know the script.
type sharedCall struct {
	stream   *stream       // nil: there is no stream for the call
	deadline time.Time     // when the call's time ends
	timeout  time.Duration // how long the call waits for an answer
	failure  error         // why the call has no answer
}

// send sends a command, and waits for its reply until ctx or the call's time ends. After a command without an answer it
// sends nothing: a hook wants to repeat one that may have run.
func (c *sharedCall) send(ctx context.Context, cmd rawCmd) (any, error) {
	switch {
	case c.failure != nil:
		return nil, c.failure
	case ctx.Err() != nil:
		c.failure = notSent(ctx)
		return nil, c.failure
	}
	r, again := c.stream.send(ctx, c.deadline, cmd)
	if again {
		cmd.usual = nil
		return c.send(ctx, cmd)
	}
	if r.err != nil && (!errors.As(r.err, new(redis.Error)) || ending.In(r.err) || mayHaveRun(r.err)) {
		c.failure = r.err
	}
	return r.val, r.err
}

// mayHaveRun reports whether the script may have run, or may still run, though its call returned err.
func mayHaveRun(err error) bool { return err != nil && Classify(err) == Unknown }

// doShared runs a call on a stream. If a hook has changed the stream's error, doShared restores that. If the stream
// broke before the call was sent, or another server of the Cluster has the key, doShared uses the client's pool: there
// the client follows MOVED and ASK.
func (t *Transport) doShared(ctx context.Context, w *sharedCall, c *Call) Result {
	s := w.stream
	defer s.end()
	began := time.Now()
	r := t.run(ctx, w, c)
	switch {
	case r.Err == nil:
		t.noteRTT(time.Since(began))
		s.source.slow.Store(false)
	case w.failure != nil: // the hooks may have changed the error
		r.Err = inScript(c, w.callerError(ctx))
	case ctx.Err() != nil && Classify(r.Err) == Unknown: // a hook gave up because ctx has ended
		r.Err = inScript(c, ending.Of(ctx))
	}
	if r.Err == nil {
		return r
	}
	lost := errors.Is(r.Err, errLost) && Classify(r.Err) == NotExecuted
	left := time.Until(w.deadline)
	switch {
	case !lost && (t.shards == nil || !misrouted(r.Err)), left <= 0:
		return r
	case ctx.Err() != nil:
		return Result{Err: inScript(c, notSent(ctx))}
	}
	return t.pooled(ctx, left, s.source, c)
}

// misrouted reports whether a server did not run a call because another one of the Cluster has its key.
func misrouted(err error) bool { return hasCode(err, "MOVED") || hasCode(err, "ASK") || ReadOnly(err) }

// callerError returns the error for the caller of a call without a reply. ctx is the caller's context. A hook may have
// sent the command with another context, whose end must not look like the end of ctx.
func (c *sharedCall) callerError(ctx context.Context) error {
	switch {
	case ctx.Err() == nil || errors.Is(c.failure, ErrNoReply):
		return forCaller(c.failure)
	case mayHaveRun(c.failure):
		return ending.Of(ctx)
	}
	return notSent(ctx)
}
