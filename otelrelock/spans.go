package otelrelock

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/relock-go/relock"
)

// holdKey identifies the holds of one owner on one lock. It has no token, because a wait on a condition
// changes the token.
type holdKey struct{ name, owner string }

func keyOf(e relock.Event) holdKey { return holdKey{e.Name, e.Owner} }

// An open is a live hold, with the span in which it was acquired. A hold whose call had no span is one only beside
// others of its owner, whose spans its end must not take.
type open struct {
	token  int64
	since  time.Time
	parent trace.Span // nil: the call had none
	failed []failure  // renewals that failed
	older  *open      // the next older one with the same key
}

type failure struct {
	at  time.Time
	err error
}

// spans creates a span when the wait or the hold has ended, so that short ones cost none.
type spans struct {
	tracer trace.Tracer
	from   time.Duration // the least duration that has a span

	mu   sync.Mutex
	live map[holdKey]open // the newest hold of each key
}

// mostFailed is how many failed renewals of a hold become events of its span. Later ones are left out.
const mostFailed = 16

func (s *spans) hooks() relock.Hooks {
	return relock.Hooks{
		Acquired: s.acquired,
		GaveUp:   s.asked,
		RenewalFailed: func(e relock.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			newest, known := s.live[keyOf(e)]
			o := &newest
			for o.parent == nil && o.older != nil {
				o = o.older
			}
			if known && len(o.failed) < mostFailed {
				o.failed = append(o.failed, failure{time.Now(), e.Err})
				s.live[keyOf(e)] = newest
			}
		},
		Released: s.ended,
		Lost:     s.ended,
	}
}

func (s *spans) acquired(ctx context.Context, e relock.Event) {
	k, o := keyOf(e), open{token: e.Token, since: time.Now()}
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		o.parent = parent
		s.asked(ctx, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest, several := s.live[k]
	if several {
		older := newest // a copy, so that newest itself stays on the stack
		o.older = &older
	}
	if o.parent == nil && !several {
		return
	}
	s.live[k] = o
}

// asked creates the span of a call that has ended with or without a hold.
func (s *spans) asked(ctx context.Context, e relock.Event) {
	if e.Err == nil && e.Waited < s.from || !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	now := time.Now()
	_, span := s.tracer.Start(ctx, "relock.acquire", trace.WithTimestamp(now.Add(-e.Waited)), trace.WithAttributes(about(e)...))
	if e.Err != nil {
		outcome, kind := ofWait(e)
		fail(span, e.Err, outcome, kind)
	}
	span.End(trace.WithTimestamp(now))
}

// ended creates the span of a hold that has ended.
func (s *spans) ended(e relock.Event) {
	o, known := s.take(e)
	if !known || o.parent == nil || e.Err == nil && e.Held < s.from {
		return
	}
	now := time.Now()
	ctx := trace.ContextWithSpan(context.Background(), o.parent)
	_, span := s.tracer.Start(ctx, "relock.hold", trace.WithTimestamp(now.Add(-e.Held)), trace.WithAttributes(about(e)...))
	for _, f := range o.failed {
		span.AddEvent("relock.renewal.failed", trace.WithTimestamp(f.at), trace.WithAttributes(attribute.String("exception.message", f.err.Error())))
	}
	if e.Err != nil {
		outcome, kind := ofHold(e.Err)
		fail(span, e.Err, outcome, kind)
	}
	if isLoss(e) {
		span.AddEvent("relock.lost", trace.WithTimestamp(now))
	}
	span.End(trace.WithTimestamp(now))
}

// take removes the hold that has ended from the live ones. Of those with its token it is the one that was acquired when
// the event's was. If none has it, it is the newest with a smaller token: a wait on a condition gives a larger one.
func (s *spans) take(e relock.Event) (o open, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, began := keyOf(e), time.Now().Add(-e.Held)
	newest, known := s.live[k]
	if !known {
		return open{}, false
	}
	var ended *open
	for at := &newest; at != nil; at = at.older {
		if at.token == e.Token && (ended == nil || at.since.Sub(began).Abs() < ended.since.Sub(began).Abs()) {
			ended = at
		}
	}
	for at := &newest; at != nil && ended == nil; at = at.older {
		if at.token < e.Token {
			ended = at
		}
	}
	if ended == nil {
		return open{}, false
	}
	o = *ended
	for at := &newest; at.older != nil; at = at.older {
		if at.older == ended {
			at.older = o.older
			s.live[k] = newest
			return o, true
		}
	}
	if o.older == nil {
		delete(s.live, k)
	} else {
		s.live[k] = *o.older
	}
	return o, true
}

func fail(span trace.Span, err error, outcome, kind string) {
	span.SetAttributes(attribute.String("relock.lock.outcome", outcome), attribute.String("error.type", kind))
	span.SetStatus(codes.Error, err.Error())
}

func about(e relock.Event) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		attribute.String("relock.lock.name", e.Name), attribute.String("relock.lock.kind", e.Kind), attribute.String("relock.lock.mode", mode(e.Read)),
	}
	if e.Token != 0 {
		attrs = append(attrs, attribute.Int64("relock.lock.token", e.Token))
	}
	return attrs
}
