package otelrelock_test

import (
	"context"
	"testing"
	"time"

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

// A pairing is one way to lock and unlock, and the best time of a pair.
type pairing struct {
	told bool
	ctx  context.Context
	best time.Duration
}

// turn makes some rounds of a hundred pairs by a new client.
func (p *pairing) turn(b *testing.B, srv *redistest.RealServer, hooks relock.Hooks) {
	b.Helper()
	var opts []relock.Option
	if p.told {
		opts = append(opts, relock.Trace(hooks))
	}
	rdb := srv.Client(b)
	c, err := relock.New(rdb, opts...)
	rig.Must(b, err)
	defer func() { _ = c.Close(); _ = rdb.Close() }()
	l := c.NewLock("pair")
	for range 10 {
		began := time.Now()
		for range 100 {
			rig.Must(b, l.Lock(p.ctx))
			rig.Must(b, l.Unlock())
		}
		if took := time.Since(began) / 100; p.best == 0 || took < p.best {
			p.best = took
		}
	}
}

// BenchmarkOverhead compares an uncontended lock and unlock with and without hooks: metrics
// alone, as where the call has no sampled span, and metrics with both spans of each pair. Of
// each it takes the best of many short rounds in turns, so that what else the machine does falls on
// none alone. "%" is what a pair takes more than without.
func BenchmarkOverhead(b *testing.B) {
	srv := redistest.Real(b)
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(nowhere{}))
	defer func() { _ = tracers.Shutdown(context.Background()) }()
	hooks, err := otelrelock.New(otelrelock.WithMeterProvider(meters), otelrelock.WithTracerProvider(tracers))
	rig.Must(b, err)
	traced, parent := tracers.Tracer("program").Start(b.Context(), "request")
	defer parent.End()

	// Clients of their own in each turn: connections differ, by where the system has them.
	all := []*pairing{{ctx: b.Context()}, {ctx: b.Context(), told: true}, {ctx: traced, told: true}}
	for range 40 {
		for _, p := range all {
			p.turn(b, srv, hooks)
		}
	}
	for i, name := range []string{"none", "metrics", "metrics and spans"} {
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(float64(all[i].best.Nanoseconds())/1000, "us/pair")
			b.ReportMetric(100*(float64(all[i].best)/float64(all[0].best)-1), "%")
			b.ReportMetric(0, "ns/op")
		})
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
