package otelrelock_test

import (
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/otelrelock"
)

func TestMain(m *testing.M) { rig.Main(m) }

// seen is what one program has told.
type seen struct {
	t      *testing.T
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer
	all    relock.Hooks
	hooks  relock.Option
}

func watch(t *testing.T, opts ...otelrelock.Option) *seen {
	t.Helper()
	s := &seen{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
	s.tracer = tracers.Tracer("program")
	hooks, err := otelrelock.New(append([]otelrelock.Option{otelrelock.WithMeterProvider(meters), otelrelock.WithTracerProvider(tracers)}, opts...)...)
	rig.Must(t, err)
	s.all, s.hooks = hooks, relock.Trace(hooks)
	return s
}

// metrics are those that have been told, by name.
func (s *seen) metrics() map[string]metricdata.Metrics {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	rig.Must(s.t, s.reader.Collect(s.t.Context(), &all))
	found := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}
