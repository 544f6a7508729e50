package otelrelock_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/otelrelock"
)

// named are the spans of that name that have ended.
func (s *seen) named(name string) (all []sdktrace.ReadOnlySpan) {
	synctest.Wait()
	for _, span := range s.spans.Ended() {
		if span.Name() == name {
			all = append(all, span)
		}
	}
	return all
}

func TestSpansAreOfTheCallAndItsHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		l, other := x.Client(s.hooks).NewLock("order:1"), x.Lock("order:1")
		rig.Must(t, other.Lock(t.Context()))
		ctx, parent := s.tracer.Start(t.Context(), "request")
		call := rig.Beside(func() error { return l.Lock(ctx) })
		rig.StillWaits(t, call)
		virtual.Sleep(2 * time.Second)
		rig.Must(t, other.Unlock())
		rig.Must(t, rig.Returned(t, call))
		virtual.Sleep(3 * time.Second)
		rig.Must(t, l.Unlock())
		for name, want := range map[string]time.Duration{"relock.acquire": 2 * time.Second, "relock.hold": 3 * time.Second} {
			all := s.named(name)
			if len(all) != 1 {
				t.Fatalf("%d spans %s, want one", len(all), name)
			}
			if took := all[0].EndTime().Sub(all[0].StartTime()); took.Round(time.Millisecond) != want || all[0].Parent().SpanID() != parent.SpanContext().SpanID() {
				t.Errorf("%s took %v below %v, want %v below %v", name, took, all[0].Parent().SpanID(), want, parent.SpanContext().SpanID())
			}
			if all[0].Status().Code != codes.Unset || len(all[0].Attributes()) != 4 {
				t.Errorf("%s: %+v, %+v", name, all[0].Status(), all[0].Attributes())
			}
			if !slices.Contains(all[0].Attributes(), attribute.String("relock.lock.name", "order:1")) {
				t.Errorf("%s: %+v, want the whole name", name, all[0].Attributes())
			}
		}
	})
}

// Locks begin no traces.
func TestCallsWithoutASpanHaveNone(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		l := x.Client(s.hooks).NewLock("a")
		rig.Must(t, l.Lock(t.Context()))
		got, err := l.TryLock(t.Context(), time.Second) // gives up
		if got || err != nil {
			t.Errorf("TryLock of a taken lock: %v, %v", got, err)
		}
		rig.Must(t, l.Unlock())
		if n := len(s.spans.Started()); n != 0 {
			t.Errorf("%d spans, want none", n)
		}
	})
}

func TestSpansTellOfLossesAndGivingUp(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		c, link := x.Linked(s.hooks)
		l := c.NewLock("a")
		ctx, parent := s.tracer.Start(t.Context(), "request")
		defer parent.End()
		rig.Must(t, l.Lock(relock.WithOwner(ctx, "me")))
		rig.Must(t, l.Lock(relock.WithOwner(ctx, "me")))
		_, err := l.TryLock(relock.WithOwner(ctx, "you"), time.Second)
		rig.Must(t, err)
		link.Hole()
		virtual.Sleep(time.Minute)
		for range 2 {
			rig.WantIs(t, l.Unlock(), relock.ErrLost)
		}
		holds, asked := s.named("relock.hold"), s.named("relock.acquire")
		if len(holds) != 2 || len(asked) != 1 || asked[0].Status().Code != codes.Error {
			t.Fatalf("%d holds, %d calls, want 2, and the one in vain", len(holds), len(asked))
		}
		for _, span := range holds {
			events := span.Events()
			if span.Status().Code != codes.Error || len(events) == 0 || events[len(events)-1].Name != "relock.lost" {
				t.Errorf("hold %+v, events %+v, want that it was lost", span.Status(), events)
			}
		}
		if holds[0].Events()[0].Name != "relock.renewal.failed" {
			t.Errorf("events %+v, want that renewals had failed", holds[0].Events())
		}
	})
}

// A hold that is given back, as another hook does not return, is not counted, and has no span
// that goes on.
func TestHoldThatAHookGivesBackIsOver(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t, otelrelock.WithSpansFrom(0))
		c := x.Client(relock.Trace(s.all.Join(relock.Hooks{Acquired: func(context.Context, relock.Event) { panic("hook") }})))
		ctx, parent := s.tracer.Start(t.Context(), "request")
		defer parent.End()
		func() {
			defer func() { _ = recover() }()
			t.Errorf("Lock: %v", c.NewLock("a").Lock(ctx))
		}()
		s.want("relock.lock.held", "kind=plain mode=write name=a: 0")
		if started, ended := len(s.spans.Started()), len(s.spans.Ended()); started != 3 || ended != 2 {
			t.Errorf("%d spans begun, %d ended, want all but the request's", started, ended)
		}
	})
}

// What is short and went well has no span, unless that is asked for.
func TestSpansAreOfWhatLasts(t *testing.T) {
	for _, row := range []struct {
		from []otelrelock.Option
		want int
	}{
		{[]otelrelock.Option{otelrelock.WithSpansFrom(0)}, 6},
		{[]otelrelock.Option{otelrelock.WithSpansFrom(time.Millisecond)}, 1},
		{[]otelrelock.Option{otelrelock.WithSpansFrom(time.Hour)}, 0},
		{nil, 1}, // a millisecond
	} {
		rig.Run(t, func(t *testing.T, x *rig.Lab) {
			s := watch(t, row.from...)
			l := x.Client(s.hooks).NewLock("a")
			ctx, parent := s.tracer.Start(t.Context(), "request")
			defer parent.End()
			for _, held := range []time.Duration{0, time.Millisecond - 1, time.Millisecond} {
				rig.Must(t, l.Lock(ctx))
				virtual.Sleep(held)
				rig.Must(t, l.Unlock())
			}
			if n := len(s.spans.Ended()); n != row.want {
				t.Errorf("%d options, %d spans, want %d", len(row.from), n, row.want)
			}
		})
	}
}

// Fails when a hold is remembered by its token alone, which is another after a wait: it has no span then.
func TestHoldThatHasWaitedOnAConditionHasASpan(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		l, other := x.Client(s.hooks).NewLock("a"), x.Lock("a")
		ctx, parent := s.tracer.Start(relock.WithOwner(t.Context(), "me"), "request")
		defer parent.End()
		rig.Must(t, l.Lock(ctx))
		asleep := x.Sleeps(ctx, l.NewCond("c"), 0)
		rig.Must(t, other.Lock(t.Context()))
		rig.Must(t, other.NewCond("c").Signal(t.Context()))
		rig.Must(t, other.Unlock())
		asleep.Woken()
		virtual.Sleep(time.Second)
		rig.Must(t, l.Unlock())
		if n := len(s.named("relock.hold")); n != 1 {
			t.Errorf("%d spans, want one", n)
		}
	})
}

// Fails when the span of a hold is below that of another of its owner.
func TestHoldsOfTwoTokensHaveTheSpansOfTheirOwnCalls(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		parents := map[int64]string{}
		for token := int64(1); token <= 3; token++ {
			ctx, parent := s.tracer.Start(t.Context(), "request")
			defer parent.End()
			s.all.Acquired(ctx, relock.Event{Name: "a", Owner: "me", Token: token})
			parents[token] = parent.SpanContext().SpanID().String()
		}
		for _, token := range []int64{2, 1, 3} {
			s.all.Released(relock.Event{Name: "a", Owner: "me", Token: token, Held: time.Minute})
			all := s.named("relock.hold")
			if got := all[len(all)-1].Parent().SpanID().String(); got != parents[token] {
				t.Errorf("the hold with token %d is below %s, want %s", token, got, parents[token])
			}
		}
	})
}

// A nested hold of the owner, whose call has no span. Fails when its end takes the span of the outer hold.
func TestAHoldWithoutASpanEndsNoSpanOfItsOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		l := x.Client(s.hooks).NewLock("a")
		ctx, parent := s.tracer.Start(t.Context(), "request")
		defer parent.End()
		rig.Must(t, l.Lock(relock.WithOwner(ctx, "me")))
		virtual.Sleep(time.Second)
		rig.Must(t, l.Lock(relock.WithOwner(t.Context(), "me")))
		virtual.Sleep(time.Second)
		rig.Must(t, l.Unlock())
		if n := len(s.named("relock.hold")); n != 0 {
			t.Errorf("%d spans of a hold whose call had none", n)
		}
		virtual.Sleep(time.Second)
		rig.Must(t, l.Unlock())
		all := s.named("relock.hold")
		if len(all) != 1 {
			t.Fatalf("%d spans, want that of the outer hold", len(all))
		}
		if took := all[0].EndTime().Sub(all[0].StartTime()).Round(time.Millisecond); took != 3*time.Second {
			t.Errorf("the span took %v, want the 3 s of the outer hold", took)
		}
	})
}

// The nested hold's call had no span. All are lost, and before that a renewal has failed. Fails when the nested hold takes
// the outer hold's end or its failures.
func TestALossOfNestedHoldsEndsTheSpanOfTheOuterOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		ctx, parent := s.tracer.Start(t.Context(), "request")
		defer parent.End()
		c, link := x.Linked(s.hooks)
		l := c.NewLock("a")
		rig.Must(t, l.Lock(relock.WithOwner(ctx, "me")))
		virtual.Sleep(5 * time.Second)
		rig.Must(t, l.Lock(relock.WithOwner(t.Context(), "me")))
		heal := link.Hole()
		virtual.Sleep(time.Minute)
		heal()
		all := s.named("relock.hold")
		if len(all) != 1 {
			t.Fatalf("%d spans, want that of the outer hold", len(all))
		}
		if took := all[0].EndTime().Sub(all[0].StartTime()); took < 29*time.Second {
			t.Errorf("the span took %v: that of the nested hold", took)
		}
		failed := 0
		for _, e := range all[0].Events() {
			if e.Name == "relock.renewal.failed" {
				failed++
			}
		}
		if failed == 0 {
			t.Error("the span does not tell of the renewals that failed")
		}
	})
}

// The older hold's call had no span, and it ends first. Fails when it takes the span of the newer one.
func TestAnOlderHoldWithoutASpanEndsNoSpanOfANewerOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		s := watch(t)
		ctx, parent := s.tracer.Start(t.Context(), "request")
		defer parent.End()
		s.all.Acquired(t.Context(), relock.Event{Name: "a", Owner: "me", Token: 1})
		s.all.Acquired(ctx, relock.Event{Name: "a", Owner: "me", Token: 2})
		for want := range 2 {
			s.all.Released(relock.Event{Name: "a", Owner: "me", Token: int64(want + 1), Held: time.Minute})
			if n := len(s.named("relock.hold")); n != want {
				t.Errorf("%d spans after the end of hold %d, want %d", n, want+1, want)
			}
		}
	})
}
