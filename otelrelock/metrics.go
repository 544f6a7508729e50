package otelrelock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/loss"
)

// buckets range from a free lock on the same machine to a lock that is held for minutes.
var buckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// measures are the instruments and the attributes that they are used with.
type measures struct {
	name                         func(string) string
	waited, lasted               metric.Float64Histogram
	waits, lost, renewed, failed metric.Int64Counter

	groups sync.Map // by groupKey
	recent sync.Map // recently used locks by name, kind and mode: their groups
	size   atomic.Int64
	modes  modes
}

// newMeasures creates the instruments.
func newMeasures(c config) (*measures, error) {
	m, meter := &measures{name: c.name}, c.meters.Meter(scope)
	var errs [7]error
	seconds, bounds := metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(buckets...)
	m.waited, errs[0] = meter.Float64Histogram("relock.lock.wait.duration", seconds, bounds,
		metric.WithDescription("How long calls asked for a lock, until they had it or gave up."))
	m.lasted, errs[1] = meter.Float64Histogram("relock.lock.hold.duration", seconds, bounds,
		metric.WithDescription("How long locks were held, until they were released or lost."))
	_, errs[2] = meter.Int64ObservableUpDownCounter("relock.lock.held", metric.WithUnit("{hold}"),
		metric.WithDescription("Holds that this process has."), metric.WithInt64Callback(m.observe))
	m.waits, errs[3] = meter.Int64Counter("relock.lock.waits", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that found their lock taken and had to wait."))
	m.lost, errs[4] = meter.Int64Counter("relock.lock.lost", metric.WithUnit("{hold}"),
		metric.WithDescription("Holds that ended before they were released."))
	m.renewed, errs[5] = meter.Int64Counter("relock.lock.renewals", metric.WithUnit("{renewal}"),
		metric.WithDescription("Leases that were extended."))
	m.failed, errs[6] = meter.Int64Counter("relock.lock.renewal.failures", metric.WithUnit("{renewal}"),
		metric.WithDescription("Tries to extend a lease that failed."))
	return m, errors.Join(errs[:]...)
}

// observe reports how many holds there are.
func (m *measures) observe(_ context.Context, o metric.Int64Observer) error {
	m.groups.Range(func(_, of any) bool {
		g := of.(*group)
		if g.used.Load() {
			o.Observe(g.held.Load(), g.told)
		}
		return true
	})
	return nil
}

func (m *measures) hooks() relock.Hooks {
	ctx := context.Background()
	ended := func(e relock.Event) {
		g := m.of(e)
		m.count(e, g, -1)
		if e.Err == nil {
			m.lasted.Record(ctx, e.Held.Seconds(), g.released...)
			return
		}
		outcome, kind := ofHold(e.Err)
		m.lasted.Record(ctx, e.Held.Seconds(), g.with(outcome, kind))
		if isLoss(e) {
			m.lost.Add(ctx, 1, g.lost(kind, reason(e.Err)))
		}
	}
	return relock.Hooks{
		Waiting: func(ctx context.Context, e relock.Event) { m.waits.Add(ctx, 1, m.of(e).told) },
		Acquired: func(ctx context.Context, e relock.Event) {
			g := m.of(e)
			m.waited.Record(ctx, e.Waited.Seconds(), g.acquired...)
			g.used.Store(true)
			m.count(e, g, 1)
		},
		GaveUp: func(ctx context.Context, e relock.Event) {
			outcome, kind := ofWait(e)
			m.waited.Record(ctx, e.Waited.Seconds(), m.of(e).with(outcome, kind))
		},
		Renewed:       func(e relock.Event) { m.renewed.Add(ctx, 1, m.of(e).told) },
		RenewalFailed: func(e relock.Event) { m.failed.Add(ctx, 1, m.of(e).told) },
		Released:      ended,
		Lost:          ended,
	}
}

// count adds by to the number of holds: 1 for a hold that begins, -1 for one that ends. A hold that ends is
// subtracted from the group that counted it.
func (m *measures) count(e relock.Event, g *group, by int64) {
	if read := m.modes.count(e, by); read != e.Read {
		e.Read = read
		g = m.of(e)
	}
	g.held.Add(by)
}

// calm is how long a call that is cancelled may have waited without an answer before that is an outage.
const calm = 100 * time.Millisecond

// ofWait returns the outcome and the error type of a call without a lock. It ignores the cause of the
// context, which may be the error of another call.
func ofWait(e relock.Event) (outcome, kind string) {
	switch err := e.Err; {
	case ending.Is(err, relock.ErrNotAcquired):
		return "taken", "not_acquired"
	case ending.Is(err, relock.ErrUnavailable) && (e.Waited > calm || !ending.Is(err, context.Canceled)):
		return "error", "unavailable" // before the end of the context, which an outage often waits for
	case ending.Is(err, context.DeadlineExceeded):
		return "timeout", "deadline_exceeded"
	case ending.Is(err, context.Canceled):
		return "canceled", "canceled"
	case ending.Is(err, relock.ErrClosed):
		return "closed", "closed"
	case ending.Is(err, relock.ErrKind):
		return "error", "kind"
	case ending.Is(err, relock.ErrUpgrade):
		return "error", "upgrade"
	case ending.Is(err, relock.ErrReplicas):
		return "error", "replicas"
	}
	return "error", "_OTHER"
}

// ofHold returns the outcome and the error type of a hold that was not released normally.
func ofHold(err error) (outcome, kind string) {
	switch {
	case ending.Is(err, relock.ErrUnconfirmed):
		return "unconfirmed", "unconfirmed"
	case ending.Is(err, relock.ErrClosed):
		return "lost", "closed"
	case ending.Is(err, relock.ErrLost):
		return "lost", "lost"
	}
	return "error", "_OTHER"
}

// reason returns the reason of a loss, as a fixed word.
func reason(err error) loss.Reason {
	if ending.Is(err, relock.ErrClosed) {
		return loss.Closed
	}
	return loss.Of(err)
}

// isLoss reports whether the hold of the event was lost. Released is called for a hold too whose release was the first
// to find it lost, and Lost is not.
func isLoss(ended relock.Event) bool {
	outcome, _ := ofHold(ended.Err)
	return outcome == "lost"
}

// groupKey identifies a group of locks that share their metrics.
type groupKey struct {
	name, kind string
	read       bool
}

// A group is the locks that share their metrics. The usual attributes are built once, because building them
// costs more than using them.
type group struct {
	attrs              []attribute.KeyValue
	told               metric.MeasurementOption
	acquired, released []metric.RecordOption
	used               atomic.Bool
	held               atomic.Int64
}

// mostRecent is how many lock names are cached with their groups.
const mostRecent = 4096

func (m *measures) of(e relock.Event) *group {
	lock := groupKey{e.Name, e.Kind, e.Read}
	if g, known := m.recent.Load(lock); known {
		return g.(*group)
	}
	k := groupKey{m.name(e.Name), e.Kind, e.Read}
	of, known := m.groups.Load(k)
	if !known {
		g := newGroup(k)
		for _, r := range loss.All() { // Prometheus only sees an increase of a series that it has seen before
			if r != loss.Closed {
				m.lost.Add(context.Background(), 0, g.lost("lost", r))
			}
		}
		of, _ = m.groups.LoadOrStore(k, g)
	}
	if m.size.Add(1) > mostRecent {
		m.recent.Clear()
		m.size.Store(1)
	}
	m.recent.Store(lock, of)
	return of.(*group)
}

func newGroup(k groupKey) *group {
	g := &group{attrs: []attribute.KeyValue{attribute.String("relock.lock.kind", k.kind), attribute.String("relock.lock.mode", mode(k.read))}}
	if k.name != "" {
		g.attrs = append(g.attrs, attribute.String("relock.lock.name", k.name))
	}
	g.told = g.with("", "")
	g.acquired, g.released = []metric.RecordOption{g.with("acquired", "")}, []metric.RecordOption{g.with("released", "")}
	return g
}

// with returns the group's attributes with the outcome.
func (g *group) with(outcome, failure string) metric.MeasurementOption {
	attrs := slices.Clone(g.attrs)
	if outcome != "" {
		attrs = append(attrs, attribute.String("relock.lock.outcome", outcome))
	}
	if failure != "" {
		attrs = append(attrs, attribute.String("error.type", failure))
	}
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

// lost returns the group's attributes for a loss.
func (g *group) lost(failure string, r loss.Reason) metric.MeasurementOption {
	attrs := append(slices.Clone(g.attrs), attribute.String("error.type", failure), attribute.String("relock.lock.reason", string(r)))
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

func mode(read bool) string {
	if read {
		return "read"
	}
	return "write"
}
