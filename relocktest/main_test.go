package relocktest_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/relocktest"
)

func TestMain(m *testing.M) { rig.Main(m) }

// everywhere runs f in a bubble and outside of one.
func everywhere(t *testing.T, f func(t *testing.T, srv *relocktest.Server)) {
	t.Helper()
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, relocktest.New(t)) })
	})
	t.Run("real time", func(t *testing.T) { f(t, relocktest.New(t)) })
}

// wantError fails the test unless err is one of the kind of want, or nil where that is.
func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// judged is a test that is itself tested.
type judged struct {
	testing.TB
	said []string
}

func (j *judged) Helper() {}

func (j *judged) Errorf(format string, _ ...any) { j.said = append(j.said, format) }

func (j *judged) Fatalf(format string, _ ...any) {
	j.said = append(j.said, format)
	panic(j)
}

func (j *judged) Fatal(...any) { j.Fatalf("fatal") }

// failure runs f, which may fail j.
func (j *judged) failure(f func()) (said string) {
	defer func() {
		if r := recover(); r != nil && r != any(j) {
			panic(r)
		}
		for _, s := range j.said {
			said += s
		}
		j.said = nil
	}()
	f()
	return ""
}
