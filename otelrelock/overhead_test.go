package otelrelock_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/otelrelock"
)

// nowhere is where spans are exported to.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }

// A pairing is one way to lock and unlock, and what a pair cost in each round.
type pairing struct {
	name  string
	ctx   context.Context
	hooks relock.Hooks
	cpu   []float64 // seconds of processors, of this process and of the server
	took  []float64 // seconds
}

const (
	rounds = 120
	pairs  = 400 // of each pairing in a round
)

// turn makes the pairs of a round by a new client, which has called before it is measured.
func (p *pairing) turn(b *testing.B, srv *redistest.RealServer) {
	b.Helper()
	rdb := srv.Client(b)
	c, err := relock.New(rdb, relock.Trace(p.hooks))
	rig.Must(b, err)
	defer func() { _ = c.Close(); _ = rdb.Close() }()
	l := c.NewLock("pair")
	pair := func(n int) {
		for range n {
			rig.Must(b, l.Lock(p.ctx))
			rig.Must(b, l.Unlock())
		}
	}
	pair(50)
	server, own, began := used(b, rdb), ownTime(b), time.Now()
	pair(pairs)
	took := time.Since(began)
	own = ownTime(b) - own
	p.cpu = append(p.cpu, (own+used(b, rdb)-server)/pairs)
	p.took = append(p.took, took.Seconds()/pairs)
}

// ownTime is how long processors have worked for this process, in seconds.
func ownTime(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	rig.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// used is how long processors have worked for the server, in seconds.
func used(b *testing.B, rdb redis.UniversalClient) (seconds float64) {
	b.Helper()
	info, err := rdb.Info(b.Context(), "cpu").Result()
	rig.Must(b, err)
	for line := range strings.Lines(info) {
		if name, value, is := strings.Cut(strings.TrimSpace(line), ":"); is && (name == "used_cpu_sys" || name == "used_cpu_user") {
			s, err := strconv.ParseFloat(value, 64)
			rig.Must(b, err)
			seconds += s
		}
	}
	return seconds
}

// quartiles are those of what a round cost more than the same round without hooks, in percent:
// each round is compared with itself, so what the machine did meanwhile falls on both.
func quartiles(with, without []float64) (low, median, high float64) {
	more := make([]float64, len(with))
	for i := range with {
		more[i] = 100 * (with[i]/without[i] - 1)
	}
	slices.Sort(more)
	n := len(more)
	return more[n/4], more[n/2], more[3*n/4]
}

// BenchmarkOverhead compares an uncontended lock and unlock with and without hooks, in
// turns: metrics alone, as where the call has no sampled span; metrics and spans, as they
// are by default; and with both spans of each pair. "%" is the median of what a pair takes
// more of processors, of client and server together, with its quartiles; "%-time" is of its time. On a machine
// that others use, chrt -f 1 in front of it keeps them out of the way.
func BenchmarkOverhead(b *testing.B) {
	srv := redistest.Real(b)
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(nowhere{}))
	defer func() { _ = tracers.Shutdown(context.Background()) }()
	hooks := func(opts ...otelrelock.Option) relock.Hooks {
		all, err := otelrelock.New(append(opts, otelrelock.WithMeterProvider(meters), otelrelock.WithTracerProvider(tracers))...)
		rig.Must(b, err)
		return all
	}
	traced, parent := tracers.Tracer("program").Start(b.Context(), "request")
	defer parent.End()
	all := []*pairing{
		{name: "none", ctx: b.Context()},
		{name: "metrics", ctx: b.Context(), hooks: hooks()},
		{name: "metrics and spans", ctx: traced, hooks: hooks()},
		{name: "metrics and every span", ctx: traced, hooks: hooks(otelrelock.WithSpansFrom(0))},
	}
	for i := range rounds {
		for k := range all {
			all[(i+k)%len(all)].turn(b, srv)
		}
	}
	for _, p := range all {
		b.Run(p.name, func(b *testing.B) { p.report(b, all[0]) })
	}
}

func (p *pairing) report(b *testing.B, none *pairing) {
	low, median, high := quartiles(p.cpu, none.cpu)
	_, longer, _ := quartiles(p.took, none.took)
	sorted := slices.Sorted(slices.Values(p.cpu))
	b.ReportMetric(1e6*sorted[len(sorted)/2], "cpu-us/pair")
	b.ReportMetric(low, "%-low")
	b.ReportMetric(median, "%")
	b.ReportMetric(high, "%-high")
	b.ReportMetric(longer, "%-time")
	b.ReportMetric(0, "ns/op")
}

// TestHooksOfAShortHoldAllocateNothing: neither metrics nor, where the wait and the hold are
// too short for spans, the note of who holds.
func TestHooksOfAShortHoldAllocateNothing(t *testing.T) {
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(nowhere{}))
	defer func() { _ = tracers.Shutdown(context.Background()) }()
	hooks, err := otelrelock.New(otelrelock.WithMeterProvider(meters), otelrelock.WithTracerProvider(tracers))
	rig.Must(t, err)
	traced, parent := tracers.Tracer("program").Start(t.Context(), "request")
	defer parent.End()
	for what, ctx := range map[string]context.Context{"no span": t.Context(), "a span": traced} {
		for _, kind := range []string{"plain", "rw"} {
			e := relock.Event{Name: "told/1", Owner: "~abcdefgh:1", Kind: kind, Waited: 30 * time.Microsecond, Held: 30 * time.Microsecond}
			if got := testing.AllocsPerRun(1000, func() {
				e.Token++
				hooks.Acquired(ctx, e)
				hooks.Released(e)
			}); got > 0 {
				t.Errorf("%v allocations for the hooks of a pair of the kind %s below %s, want none", got, kind, what)
			}
		}
	}
}

// BenchmarkHooks is what the hooks of a pair cost by themselves.
func BenchmarkHooks(b *testing.B) {
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(nowhere{}))
	defer func() { _ = tracers.Shutdown(context.Background()) }()
	hooks, err := otelrelock.New(otelrelock.WithMeterProvider(meters), otelrelock.WithTracerProvider(tracers))
	rig.Must(b, err)
	traced, parent := tracers.Tracer("program").Start(b.Context(), "request")
	defer parent.End()
	for name, ctx := range map[string]context.Context{"metrics": b.Context(), "metrics and spans": traced} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				e := relock.Event{Name: "told", Owner: "~abcdefgh:1", Token: int64(i + 1), Kind: "plain", Waited: 30 * time.Microsecond}
				hooks.Acquired(ctx, e)
				hooks.Released(e)
			}
		})
	}
}
