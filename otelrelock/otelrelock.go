// Package otelrelock tells OpenTelemetry what becomes of locks: metrics and spans, as hooks
// of a relock client.
//
//	hooks, err := otelrelock.New()
//	if err != nil {
//		return err
//	}
//	client, err := relock.New(rdb, relock.Trace(hooks))
//
// # Metrics
//
//	relock.lock.wait.duration     histogram, s         each call that asked for a lock, by its outcome
//	relock.lock.waits             counter, {call}      calls that had to wait, as the lock was taken
//	relock.lock.hold.duration     histogram, s         each hold that has ended, by its outcome
//	relock.lock.held              up-down counter, {hold}  holds that the process has now
//	relock.lock.lost              counter, {hold}      holds that ended before they were released; by relock.lock.reason; told as 0 before the first
//	relock.lock.renewals          counter, {renewal}   leases that were extended
//	relock.lock.renewal.failures  counter, {renewal}   tries to extend one that failed
//
// Their attributes are relock.lock.name, relock.lock.kind ("plain", "fair", "rw", "fair rw",
// "semaphore") and relock.lock.mode ("read" or "write"); of durations relock.lock.outcome as
// well: of a wait "acquired", "taken" (TryLock and its like), "timeout" or "canceled" (the
// context's end), "closed" or "error"; of a hold "released", "unconfirmed", "lost"
// or "error". A failure among these has error.type too: that of an outage is "unavailable".
// An outage is an "error" also where the context has ended. But a call that is cancelled
// within 100 ms is "canceled". A loss also has relock.lock.reason, one of:
//
//	unreachable   no renewal was answered in time: look at Redis, the network, and pauses of the process
//	replicas      too few replicas acknowledged the renewals
//	data_lost     Redis no longer had the hold: lost data, a clock step, or a missed ForceUnlock
//	forced        an operator ended the grant (ForceUnlock)
//	ancestor      a branch (WithChildOwner) had entered through a hold of an ancestor, and that has ended
//	max_hold      MaxHold is over: the program asked for that
//	fixed_lease   the lease of a hold with NoWatchdog has ended: the program asked for that
//	closed        the client was closed
//	other         anything else
//
// A hold that Downgrade has made one for reading stays among
// those that are held for writing until it ends: no hook tells of it before.
//
// # Names
//
// Locks may have any number of names, and each name would be a series of its own. So a name is told only up to its
// first '/', ':', '#', '{' or digit, with a "*" for the rest. After 200 such names all further ones are "other".
// WithName says otherwise.
//
// # Spans
//
// A call that asks for a lock is a span "relock.acquire", and its hold is a span "relock.hold". Both are below the
// span of the call's context, and have the whole name. A call without such a span has none: locks do not begin
// traces. A renewal that fails, and a loss, are events of the hold. A span is made when its call or hold has ended. A
// call or hold that succeeded and took less than a millisecond has none (WithSpansFrom).
package otelrelock

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/relock-go/relock"
)

// scope is the instrumentation scope.
const scope = "github.com/relock-go/relock/otelrelock"

// An Option sets up what New tells OpenTelemetry. New returns an error if an option is nil, or if its argument is nil
// or out of its bounds.
type Option func(*config) error

type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	name    func(string) string
	from    time.Duration
}

var errNil = errors.New("otelrelock: an argument is nil; leave the option out")

// WithMeterProvider sets where metrics go. The default is what otel.GetMeterProvider returns when New is called. nil
// makes New fail.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) error {
		if c.meters = p; p == nil {
			return errNil
		}
		return nil
	}
}

// WithTracerProvider sets where spans go. The default is what otel.GetTracerProvider returns when New is called. nil
// makes New fail.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) error {
		if c.tracers = p; p == nil {
			return errNil
		}
		return nil
	}
}

// WithName sets the value of the attribute relock.lock.name of metrics: tell gets the name of a lock and returns what
// to show for it. By default that is the name up to its first '/', ':', '#', '{' or digit, with a "*" for the rest.
// After 200 such names all further ones are "other". With WithName there is no such limit: tell should return few
// different texts, as each is a series. "" leaves the attribute out.
//
// tell is called from many goroutines. Its result for a name may be cached, so it must always be the same. Spans have
// the whole name in any case. If tell is nil, New returns an error.
func WithName(tell func(lock string) string) Option {
	return func(c *config) error {
		if c.name = tell; tell == nil {
			return errNil
		}
		return nil
	}
}

// KeepNames makes metrics have the whole names of locks, and not only their beginnings, as by default. Each name is a
// series of its own, so it is for programs with few, known locks.
func KeepNames() Option { return WithName(func(lock string) string { return lock }) }

// WithSpansFrom sets how long a wait or a hold must last to have a span. The default is a millisecond, and 0 means that
// all have one. A call that gave up (relock.Hooks.GaveUp) has one however short it was, and so has a hold that was lost
// or not released cleanly. But only calls whose context has a recording span have spans. The default leaves out most:
// two spans cost more than a tenth of an uncontended lock and unlock. If d is below 0, New returns an error.
func WithSpansFrom(d time.Duration) Option {
	return func(c *config) error {
		if c.from = d; d < 0 {
			return fmt.Errorf("otelrelock: spans from %v on; less than nothing", d)
		}
		return nil
	}
}

// New returns hooks that record metrics and spans, for relock.Trace. Without options these go to OpenTelemetry's global
// providers. Hooks of your own are added with Hooks.Join. One result may serve several clients. New returns an error if
// an option is bad, or if the meter provider refuses an instrument. It does no I/O and needs no closing.
func New(opts ...Option) (relock.Hooks, error) {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider(), name: new(collapsed).tell, from: time.Millisecond}
	for _, o := range opts {
		if o == nil {
			return relock.Hooks{}, errNil
		}
		if err := o(&c); err != nil {
			return relock.Hooks{}, err
		}
	}
	m, err := newMeasures(c)
	if err != nil {
		return relock.Hooks{}, fmt.Errorf("otelrelock: %w", err)
	}
	s := &spans{tracer: c.tracers.Tracer(scope), from: c.from, live: make(map[holdKey]open)}
	return m.hooks().Join(s.hooks()), nil
}
