package holdcontext_test

import (
	"context"
	"errors"
	"testing"

	"github.com/relock-go/relock/internal/holdcontext"
)

// Fails when the first question to a context does not judge the holds above it, or judges only those of its own kind.
func TestErrJudgesTheHoldsOfAllKindsAbove(t *testing.T) {
	lost := errors.New("lost")
	var loss error
	outer := holdcontext.New(t.Context(), "one kind", func() error { return loss })
	between, cancel := context.WithCancel(outer)
	defer cancel()
	inner := holdcontext.New(between, 2, func() error { return nil })
	if err := inner.Err(); err != nil {
		t.Errorf("%v while both hold", err)
	}
	loss = lost
	if err := inner.Err(); !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(inner), lost) {
		t.Errorf("%v because of %v, want the loss above", err, context.Cause(inner))
	}
}
