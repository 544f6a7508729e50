package contract_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
)

// zeros are the types of the library that have methods, as nobody should use them.
var zeros = map[string]any{
	"Client": &relock.Client{}, "Lock": &relock.Lock{}, "RWLock": &relock.RWLock{}, "Hold": &relock.Hold{},
	"Multi": &relock.Multi{}, "MultiHold": &relock.MultiHold{}, "Election": &relock.Election{},
	"Quorum": &relock.Quorum{}, "QuorumLock": &relock.QuorumLock{}, "QuorumHold": &relock.QuorumHold{},
}

// exportedMethods reads from the code which methods each exported type has: those
// that only tests see are not users'.
func exportedMethods(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	rig.Must(t, err)
	methods := map[string][]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		rig.Must(t, err)
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			of := f.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if name, ok := of.(*ast.Ident); ok && name.IsExported() {
				methods[name.Name] = append(methods[name.Name], f.Name.Name)
			}
		}
	}
	return methods
}

// A zero value, or a nil pointer, is used: each method dereferenced nil.
// Fails without the fix: each says what is wrong, or has a zero result.
func TestEveryMethodOfAZeroValueSaysWhatIsWrong(t *testing.T) {
	for name, methods := range exportedMethods(t) {
		zero := zeros[name]
		if zero == nil {
			t.Errorf("%s has methods, and no zero value here", name)
			continue
		}
		for _, method := range methods {
			for what, v := range map[string]reflect.Value{
				"zero": reflect.ValueOf(zero), "nil": reflect.Zero(reflect.TypeOf(zero)),
			} {
				t.Run(name+" "+method+" "+what, func(t *testing.T) { wantRefused(t, v.MethodByName(method)) })
			}
		}
	}
}

// wantRefused calls a method of a zero value with plausible arguments.
func wantRefused(t *testing.T, method reflect.Value) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("panics: %v", r)
		}
	}()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		if method.Type().IsVariadic() && i == method.Type().NumIn()-1 {
			break
		}
		args = append(args, plausible(t, method.Type().In(i)))
	}
	for _, result := range method.Call(args) {
		if result.Type() == reflect.TypeFor[error]() {
			err, _ := reflect.TypeAssert[error](result)
			rig.WantIs(t, err, relock.ErrInvalidOption)
			continue
		}
		wantUseless(t, result)
	}
}

// wantUseless looks at a result that is no error: it refuses as well, or has ended, or
// is zero.
func wantUseless(t *testing.T, result reflect.Value) {
	t.Helper()
	switch got := result.Interface().(type) {
	case sync.Locker:
		rig.WantIs(t, panicOf(t, got.Lock), relock.ErrInvalidOption)
	case *relock.Lock:
		rig.WantIs(t, got.Lock(t.Context()), relock.ErrInvalidOption)
	case *relock.QuorumLock:
		rig.WantIs(t, got.Lock(t.Context()), relock.ErrInvalidOption)
	case *relock.RWLock:
		rig.WantIs(t, got.RLock(t.Context()), relock.ErrInvalidOption)
	case context.Context: // of a hold that nobody has: whoever asks it stops
		if !rig.IsShut(got.Done()) || !errors.Is(context.Cause(got), relock.ErrNotHeld) {
			t.Errorf("context %v with cause %v, want one that has ended as the hold is not held", got.Err(), context.Cause(got))
		}
	case iter.Seq2[relock.Holder, error]:
		for _, err := range got {
			rig.WantIs(t, err, relock.ErrInvalidOption)
		}
	case <-chan struct{}:
		if got != nil && !rig.IsShut(got) {
			t.Error("an open channel that nobody will close")
		}
	default:
		if !result.IsZero() {
			t.Errorf("result %v, want a zero one", got)
		}
	}
}

func plausible(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	switch of {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(t.Context())
	case reflect.TypeFor[time.Duration]():
		return reflect.ValueOf(time.Second)
	case reflect.TypeFor[string]():
		return reflect.ValueOf("a")
	case reflect.TypeFor[func(context.Context) error]():
		return reflect.ValueOf(func(context.Context) error { t.Error("fn ran"); return nil })
	}
	if of == reflect.TypeFor[func(context.Context, relock.Term) error]() {
		return reflect.ValueOf(nobody(t))
	}
	t.Fatalf("no argument of type %v", of)
	return reflect.Value{}
}
