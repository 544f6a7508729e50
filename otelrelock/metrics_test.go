package otelrelock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/otelrelock"
)

// text is a series: its attributes, and behind them what it says.
func text(attrs attribute.Set, says string) string {
	var all []string
	for _, kv := range attrs.ToSlice() {
		all = append(all, strings.TrimPrefix(strings.TrimPrefix(string(kv.Key), "relock."), "lock.")+"="+kv.Value.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ") + ": " + says
}

// told are the series of a metric, sorted.
func (s *seen) told(name string) (all []string) {
	s.t.Helper()
	switch data := s.metrics()[name].Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all = append(all, text(p.Attributes, fmt.Sprint(p.Value)))
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all = append(all, text(p.Attributes, fmt.Sprintf("%d in %gs", p.Count, p.Sum)))
		}
	}
	slices.Sort(all)
	return all
}

func (s *seen) want(name string, want ...string) {
	s.t.Helper()
	synctest.Wait()
	if got := s.told(name); !slices.Equal(got, want) {
		s.t.Errorf("%s:\n\t%s\nwant\n\t%s", name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// lost checks the losses that were told, without the reasons of which there was none.
func (s *seen) lost(want ...string) {
	s.t.Helper()
	synctest.Wait()
	got := slices.DeleteFunc(s.told("relock.lock.lost"), func(point string) bool { return strings.HasSuffix(point, ": 0") })
	if !slices.Equal(got, want) {
		s.t.Errorf("relock.lock.lost:\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// Fails when a loss is counted without the reason for which the hold was lost.
func TestLossesAreCountedByTheirReason(t *testing.T) {
	for reason, lose := range map[string]func(t *testing.T, x *rig.Lab, c *relock.Client, link *redistest.Link){
		"unreachable": func(t *testing.T, _ *rig.Lab, c *relock.Client, link *redistest.Link) {
			rig.MustAcquire(t, c.NewLock("a"))
			link.Hole()
			virtual.Sleep(time.Minute)
		},
		"data_lost": func(t *testing.T, x *rig.Lab, c *relock.Client, _ *redistest.Link) {
			rig.MustAcquire(t, c.NewLock("a"))
			x.Redis.FlushAll(t.Context())
			virtual.Sleep(time.Minute)
		},
		"forced": func(t *testing.T, x *rig.Lab, c *relock.Client, _ *redistest.Link) {
			rig.MustAcquire(t, c.NewLock("a"))
			synctest.Wait()
			_, err := x.Eye.NewLock("a").ForceUnlock(t.Context())
			rig.Must(t, err)
			synctest.Wait()
		},
		"max_hold": func(t *testing.T, _ *rig.Lab, c *relock.Client, _ *redistest.Link) {
			rig.MustAcquire(t, c.NewLock("a", relock.MaxHold(time.Minute)))
			virtual.Sleep(2 * time.Minute)
		},
		"fixed_lease": func(t *testing.T, _ *rig.Lab, c *relock.Client, _ *redistest.Link) {
			rig.MustAcquire(t, c.NewLock("a", relock.NoWatchdog()))
			virtual.Sleep(time.Minute)
		},
		"ancestor": func(t *testing.T, x *rig.Lab, c *relock.Client, _ *redistest.Link) {
			outer, err := c.NewLock("a").Acquire(x.By("flow"))
			rig.Must(t, err)
			_, err = c.NewLock("a").Acquire(relock.WithChildOwner(x.By("flow")))
			rig.Must(t, err)
			synctest.Wait() // until it has subscribed: a branch hears of it by a message
			rig.Must(t, outer.Release())
			synctest.Wait()
		},
		"closed": func(t *testing.T, _ *rig.Lab, c *relock.Client, _ *redistest.Link) {
			rig.MustAcquire(t, c.NewLock("a"))
			rig.Must(t, c.Close())
		},
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			s := watch(t, otelrelock.KeepNames())
			c, link := x.Linked(s.hooks)
			lose(t, x, c, link)
			kind := "lost"
			if reason == "closed" {
				kind = "closed"
			}
			s.lost("error.type=" + kind + " kind=plain mode=write name=a reason=" + reason + ": 1")
		})
	}
}

// A follower answers WAIT for so many replicas, which the server of a lab does not have.
type follower struct{ atomic.Int64 }

func (*follower) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*follower) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *follower) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.Args()[0] == "wait" {
				cmd.(interface{ SetVal(v any) }).SetVal(f.Load())
			}
		}
		return err
	}
}

// Redis answers all the while. Fails when the loss is told as one of a Redis that does not.
func TestALossForWantOfReplicasIsCountedAsOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s, rdb, f := watch(t, otelrelock.KeepNames()), x.Server.Client(t), new(follower)
		rdb.AddHook(f)
		f.Store(1)
		h := rig.MustAcquire(t, x.ClientOver(rdb, s.hooks).NewLock("a", relock.Replicas(1, time.Second)))
		f.Store(0)
		virtual.Sleep(time.Minute)
		rig.WantIs(t, h.Release(), relock.ErrLost, relock.ErrReplicas)
		s.lost("error.type=lost kind=plain mode=write name=a reason=replicas: 1")
	})
}

func TestMetricsFollowALockThroughItsLife(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		l, other := x.Client(s.hooks).NewLock("job:1"), x.Lock("job:1")
		rig.Must(t, l.Lock(t.Context()))
		const plain = "kind=plain mode=write name=job*"
		s.want("relock.lock.held", plain+": 1")
		virtual.Sleep(10*time.Second + time.Millisecond)
		s.want("relock.lock.renewals", plain+": 1")
		rig.Must(t, l.Unlock())
		s.want("relock.lock.held", plain+": 0")
		s.want("relock.lock.hold.duration", plain+" outcome=released: 1 in 10.001s")

		rig.Must(t, other.Lock(t.Context()))
		for _, wait := range []time.Duration{0, 2 * time.Second} {
			_, err := l.TryLock(t.Context(), wait)
			rig.Must(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		rig.WantIs(t, l.Lock(ctx), context.DeadlineExceeded)
		rig.Must(t, other.Unlock())
		s.want("relock.lock.waits", plain+": 2")
		s.want("relock.lock.wait.duration",
			"error.type=deadline_exceeded "+plain+" outcome=timeout: 1 in 3s",
			"error.type=not_acquired "+plain+" outcome=taken: 2 in 2s",
			plain+" outcome=acquired: 1 in 0s")
	})
}

// Fails when a Redis that does not answer is told as a lock that is taken: the usual call has a deadline in its
// context, and a request ends when its client hangs up.
func TestAnOutageIsToldAsAnErrorHoweverItsCallEnds(t *testing.T) {
	const told = "error.type=unavailable kind=plain mode=write name=a outcome=error: "
	for how, call := range map[string]func(t *testing.T, l *relock.Lock){
		"a deadline": func(t *testing.T, l *relock.Lock) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			rig.WantIs(t, l.Lock(ctx), context.DeadlineExceeded, relock.ErrUnavailable)
		},
		"a cancellation": func(t *testing.T, l *relock.Lock) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(3*time.Second, cancel)
			rig.WantIs(t, l.Lock(ctx), context.Canceled, relock.ErrUnavailable)
		},
		"its own wait": func(t *testing.T, l *relock.Lock) {
			_, err := l.TryLock(t.Context(), 3*time.Second)
			rig.WantIs(t, err, relock.ErrUnavailable)
		},
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			s := watch(t, otelrelock.KeepNames())
			c, link := x.Linked(s.hooks)
			link.Hole()
			call(t, c.NewLock("a"))
			if s.want("relock.lock.wait.duration", told+"1 in 3s"); t.Failed() {
				t.Log("ended by", how)
			}
		})
	}
}

// Fails when a call that was cancelled before Redis could answer is told as an outage, or when the error of another
// call is that of this one.
func TestACallThatIsCancelledEarlyIsNoOutage(t *testing.T) {
	for _, cause := range []error{nil, relock.ErrUnavailable} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			s := watch(t, otelrelock.KeepNames())
			c, link := x.Linked(s.hooks)
			link.Latency(20 * time.Millisecond)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
			rig.WantIs(t, c.NewLock("a").Lock(ctx), context.Canceled)
			rig.MustAcquire(t, x.Lock("b"))
			ctx, cancel = context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { cancel(cause) })
			rig.WantIs(t, c.NewLock("b").Lock(ctx), context.Canceled)
			s.want("relock.lock.wait.duration",
				"error.type=canceled kind=plain mode=write name=a outcome=canceled: 1 in 0.01s",
				"error.type=canceled kind=plain mode=write name=b outcome=canceled: 1 in 60s")
		})
	}
}

// Fails when the cause of a context is taken for what has happened to the call: it is what
// another call has met, as an errgroup has it.
func TestOutcomeOfAWaitIsNotTheCauseOfItsContext(t *testing.T) {
	for _, cause := range []error{relock.ErrNotAcquired, context.DeadlineExceeded} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			s := watch(t, otelrelock.KeepNames())
			rig.MustAcquire(t, x.Lock("a"))
			ctx, cancel := context.WithCancelCause(t.Context())
			ctx, parent := s.tracer.Start(ctx, "request")
			defer parent.End()
			time.AfterFunc(3*time.Second, func() { cancel(fmt.Errorf("another call: %w", cause)) })
			rig.WantIs(t, x.Client(s.hooks).NewLock("a").Lock(ctx), context.Canceled)
			s.want("relock.lock.wait.duration", "error.type=canceled kind=plain mode=write name=a outcome=canceled: 1 in 3s")
			told := ""
			for _, span := range s.named("relock.acquire") {
				told += text(attribute.NewSet(span.Attributes()...), "")
			}
			if want := "error.type=canceled kind=plain mode=write name=a outcome=canceled: "; told != want {
				t.Errorf("cause %v: the span has %q, want %q", cause, told, want)
			}
		})
	}
}

func TestMetricsTellOfLossesAndFailures(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t, otelrelock.KeepNames())
		c, link := x.Linked(s.hooks)
		rw := c.NewRWLock("config/7")
		rig.Must(t, rw.RLock(t.Context()))
		link.Hole()
		virtual.Sleep(time.Minute)
		rig.WantIs(t, rw.RUnlock(), relock.ErrLost)
		const read = "kind=rw mode=read name=config/7"
		s.want("relock.lock.held", read+": 0")
		s.lost("error.type=lost " + read + " reason=unreachable: 1")
		s.want("relock.lock.hold.duration", "error.type=lost "+read+" outcome=lost: 1 in 29.698s")
		if failed := s.told("relock.lock.renewal.failures"); len(failed) != 1 || !strings.HasPrefix(failed[0], read+": ") || strings.HasSuffix(failed[0], ": 0") {
			t.Errorf("renewals that failed: %q", failed)
		}
	})
}

// Fails when only what Lost tells is counted: Redis has lost the lock, and the client, which hears
// no messages, learns of it by the release.
func TestLossIsCountedOnceWhoeverFindsIt(t *testing.T) {
	for who, find := range map[string]time.Duration{"the release": 0, "the clock": time.Minute} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			s := watch(t, otelrelock.KeepNames())
			c, link := x.Linked(s.hooks)
			l := c.NewLock("a")
			ctx, parent := s.tracer.Start(t.Context(), "request")
			defer parent.End()
			rig.Must(t, l.Lock(ctx))
			synctest.Wait() // until it has subscribed
			link.HoleSubscribers()
			_, err := x.Eye.NewLock("a").ForceUnlock(t.Context())
			rig.Must(t, err)
			virtual.Sleep(find)
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
			s.want("relock.lock.held", "kind=plain mode=write name=a: 0")
			s.lost("error.type=lost kind=plain mode=write name=a reason=data_lost: 1")
			holds := s.named("relock.hold")
			if len(holds) != 1 || len(holds[0].Events()) != 1 || holds[0].Events()[0].Name != "relock.lost" {
				t.Errorf("found by %s: %d spans, the first with events %+v; want one that tells of the loss once", who, len(holds), holds[0].Events())
			}
		})
	}
}

// Fails when the first loss is the first that is told of losses: Prometheus sees no increase then.
func TestLossesAreToldAsNoneBeforeTheFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		c := x.Client(s.hooks)
		rig.Must(t, c.NewRWLock("a").RLock(t.Context()))
		for range 2 {
			rig.Must(t, c.NewLock("b").Do(t.Context(), func(context.Context) error { return nil }))
		}
		rig.Must(t, x.Lock("c").Lock(t.Context()))
		_, err := c.NewLock("c").TryLock(t.Context(), 0)
		rig.Must(t, err)
		var want []string
		for _, lock := range []string{"kind=plain mode=write name=b", "kind=plain mode=write name=c", "kind=rw mode=read name=a"} {
			for _, reason := range []string{"ancestor", "data_lost", "fixed_lease", "forced", "max_hold", "other", "replicas", "unreachable"} {
				want = append(want, "error.type=lost "+lock+" reason="+reason+": 0")
			}
		}
		s.want("relock.lock.lost", want...)
	})
}

// Names that are made for each order or user are one series, and no names are too many.
func TestNamesAreCollapsed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		c := x.Client(s.hooks)
		names := []string{
			"order:1", "order:2", "user/ann", "user/bob", "queue#a", "queue#b", "nightly report", "{tenant}job", "7",
		}
		for digit := range 10 {
			names = append(names, fmt.Sprint("run", digit))
		}
		for _, name := range names {
			rig.Must(t, c.NewLock(name).Lock(t.Context()))
		}
		s.want("relock.lock.held", "kind=plain mode=write name=*: 2", "kind=plain mode=write name=nightly report: 1",
			"kind=plain mode=write name=order*: 2", "kind=plain mode=write name=queue*: 2",
			"kind=plain mode=write name=run*: 10", "kind=plain mode=write name=user*: 2")
		for a := range 26 {
			for b := range 10 {
				rig.Must(t, c.NewLock(string([]byte{'n', byte('a' + a), byte('a' + b)})).Lock(t.Context()))
			}
		}
		held := s.told("relock.lock.held")
		if n := len(held); n != 201 || !slices.Contains(held, "kind=plain mode=write name=other: 66") {
			t.Errorf("%d series, want 200 names and the others: %q", n, held)
		}
	})
}

// Fails when names that were told before are among the others once there are 200 names.
func TestANameThatWasToldIsToldBesideTwoHundred(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		c := x.Client(s.hooks)
		rig.Must(t, c.NewLock("order:1").Lock(t.Context()))
		for i := range 210 {
			rig.Must(t, c.NewLock(string([]byte{'n', byte('a' + i/10), byte('a' + i%10)})).Lock(t.Context()))
		}
		rig.Must(t, c.NewLock("order:2").Lock(t.Context()))
		held := s.told("relock.lock.held")
		for _, want := range []string{"kind=plain mode=write name=order*: 2", "kind=plain mode=write name=other: 11"} {
			if !slices.Contains(held, want) {
				t.Errorf("no %q among %d series: %q", want, len(held), held)
			}
		}
	})
}

func TestNamesAreToldAsTheProgramSays(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t, otelrelock.WithName(func(lock string) string { return map[string]string{"a": "first"}[lock] }))
		c := x.Client(s.hooks)
		for _, name := range []string{"a", "b"} {
			rig.Must(t, c.NewSemaphore(name, 2).Lock(t.Context()))
		}
		s.want("relock.lock.held", "kind=semaphore mode=write name=first: 1", "kind=semaphore mode=write: 1")
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	for what, o := range map[string]otelrelock.Option{
		"no option": nil, "no meters": otelrelock.WithMeterProvider(nil), "no tracers": otelrelock.WithTracerProvider(nil), "no name": otelrelock.WithName(nil),
	} {
		if _, err := otelrelock.New(o); err == nil || !strings.Contains(err.Error(), "leave the option out") {
			t.Errorf("%s: %v, want what to do", what, err)
		}
	}
	if _, err := otelrelock.New(otelrelock.WithSpansFrom(-1)); err == nil {
		t.Error("spans of less than nothing are not refused")
	}
	if _, err := otelrelock.New(); err != nil {
		t.Errorf("New: %v", err)
	}
}

// Units are how others find out what a number counts.
func TestMetricsHaveTheirUnits(t *testing.T) {
	s, e := watch(t), relock.Event{Name: "a", Kind: "plain"}
	s.all.Waiting(t.Context(), e)
	s.all.Acquired(t.Context(), e)
	s.all.Renewed(e)
	s.all.RenewalFailed(e)
	s.all.Released(e)
	for name, m := range s.metrics() {
		if want := map[string]string{
			"relock.lock.wait.duration": "s", "relock.lock.waits": "{call}",
			"relock.lock.hold.duration": "s", "relock.lock.held": "{hold}", "relock.lock.lost": "{hold}",
			"relock.lock.renewals": "{renewal}", "relock.lock.renewal.failures": "{renewal}",
		}[name]; want == "" || m.Unit != want {
			t.Errorf("%s has the unit %q, want %q", name, m.Unit, want)
		}
	}
	if n := len(s.metrics()); n != 7 {
		t.Errorf("%d metrics, want 7", n)
	}
}

// Fails when New has looked for the global providers before the program has set them, or not at all.
func TestWithoutProvidersTheGlobalOnesAreTold(t *testing.T) {
	wasMeters, wasTracers := otel.GetMeterProvider(), otel.GetTracerProvider()
	defer func() { otel.SetMeterProvider(wasMeters); otel.SetTracerProvider(wasTracers) }()
	reader, ended := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ended))
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	otel.SetTracerProvider(tracers)
	hooks, err := otelrelock.New()
	rig.Must(t, err)
	ctx, parent := tracers.Tracer("program").Start(t.Context(), "request")
	defer parent.End()
	hooks.GaveUp(ctx, relock.Event{Name: "a", Kind: "plain", Err: relock.ErrNotAcquired})
	s := &seen{t: t, reader: reader}
	if n, waits := len(ended.Ended()), s.told("relock.lock.wait.duration"); n != 1 || len(waits) != 1 {
		t.Errorf("%d spans, %q, want that and the duration of one call", n, waits)
	}
}

// A refusing meter provider makes every instrument but one.
type refusing struct {
	noop.MeterProvider
	refuses string
}

func (r refusing) Meter(string, ...metric.MeterOption) metric.Meter { return meter{refuses: r.refuses} }

type meter struct {
	noop.Meter
	refuses string
}

func (m meter) refused(name string) error {
	if name == m.refuses {
		return errors.New("refused: " + name)
	}
	return nil
}

func (m meter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return noop.Float64Histogram{}, m.refused(name)
}

func (m meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return noop.Int64Counter{}, m.refused(name)
}

func (m meter) Int64ObservableUpDownCounter(
	name string, _ ...metric.Int64ObservableUpDownCounterOption,
) (metric.Int64ObservableUpDownCounter, error) {
	return noop.Int64ObservableUpDownCounter{}, m.refused(name)
}

// Fails when hooks are returned though a metric will be missing.
func TestAnInstrumentThatIsRefusedIsAnError(t *testing.T) {
	for _, name := range []string{
		"wait.duration", "waits", "hold.duration", "held", "lost", "renewals", "renewal.failures",
	} {
		name = "relock.lock." + name
		_, err := otelrelock.New(otelrelock.WithMeterProvider(refusing{refuses: name}))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is refused: %v", name, err)
		}
	}
	if _, err := otelrelock.New(otelrelock.WithMeterProvider(refusing{})); err != nil {
		t.Errorf("nothing is refused: %v", err)
	}
}

// Fails when a duration whose outcome is a failure does not say which.
func TestFailuresHaveAnErrorType(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t, otelrelock.KeepNames())
		c, link := x.Linked(s.hooks, relock.ReleaseTimeout(time.Second))
		l := c.NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		rig.MustAcquire(t, x.Lock("b"))
		rig.WantIs(t, c.NewRWLock("b").Lock(t.Context()), relock.ErrKind)
		waiter := rig.Beside(func() error { return c.NewLock("b").Lock(t.Context()) })
		rig.StillWaits(t, waiter)
		link.Hole()
		rig.WantIs(t, l.Unlock(), relock.ErrUnconfirmed)
		rig.Must(t, c.Close())
		rig.WantIs(t, rig.Returned(t, waiter), relock.ErrClosed)
		s.want("relock.lock.hold.duration", "error.type=unconfirmed kind=plain mode=write name=a outcome=unconfirmed: 1 in 0s")
		s.want("relock.lock.wait.duration",
			"error.type=closed kind=plain mode=write name=b outcome=closed: 1 in 1s",
			"error.type=kind kind=rw mode=write name=b outcome=error: 1 in 0s",
			"kind=plain mode=write name=a outcome=acquired: 1 in 0s")
	})
}
