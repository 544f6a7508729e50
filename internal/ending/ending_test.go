package ending_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/relock-go/relock/internal/ending"
)

var errOther = errors.New("what another call says")

func endedBy(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

func TestTheCauseIsToldAndDecidesNothing(t *testing.T) {
	err := fmt.Errorf("until then: %w", errors.Join(errors.New("x"), ending.Of(endedBy(errOther))))
	if !errors.Is(err, errOther) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want the end of the context and its cause", err)
	}
	if ending.Is(err, errOther) || !ending.Is(err, context.Canceled) || !ending.In(err) {
		t.Errorf("%v; want that it is the end of the context, and nothing of the cause", err)
	}
}

func TestWhatHappenedIsFoundBesideACause(t *testing.T) {
	err := fmt.Errorf("%w: %w", errOther, ending.Of(endedBy(errors.New("y"))))
	if !ending.Is(err, errOther) {
		t.Errorf("%v; want what is beside the end of the context", err)
	}
}

func TestAContextWithoutACauseOfItsOwnSaysItsErrorAlone(t *testing.T) {
	for _, cause := range []error{nil, context.Canceled} {
		if err := ending.Of(endedBy(cause)); err != context.Canceled || ending.In(err) { //nolint:errorlint // whether it is the same
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	}
	if err := ending.Of(context.Background()); err != nil || ending.In(err) || ending.Is(err, errOther) {
		t.Errorf("%v of a context that has not ended", err)
	}
}
