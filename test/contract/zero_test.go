package contract_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"log/slog"
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
	"Cond": &relock.Cond{}, "Hooks": relock.Hooks{}, "Ticket": relock.Ticket(""), "Term": relock.Term{},
}

// exportedMethods reads from the code which methods each exported type has: those
// that only tests see are not users'.
func exportedMethods(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(rig.Root(t), "*.go"))
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
	if len(methods) == 0 {
		t.Fatal("no exported method of any type in the module's folder")
	}
	return methods
}

// A zero value, or a nil pointer, is used: each method dereferenced nil.
// Fails without the fix: each says what is wrong, or has a zero result.
func TestEveryMethodOfAZeroValueSaysWhatIsWrong(t *testing.T) {
	all := exportedMethods(t)
	for name := range zeros {
		if all[name] == nil {
			t.Errorf("%s has a zero value here, and no method", name)
		}
	}
	for name, methods := range all {
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
	case *relock.Cond:
		rig.WantIs(t, got.Wait(t.Context()), relock.ErrInvalidOption)
	case *relock.Election:
		rig.WantIs(t, got.Run(t.Context(), nobody(t)), relock.ErrInvalidOption)
	case slog.Value: // what the log shows of a ticket, whatever it is
	case context.Context: // of a hold that nobody has: whoever asks it stops
		if !rig.IsShut(got.Done()) || !errors.Is(context.Cause(got), relock.ErrNotHeld) {
			t.Errorf("context %v with cause %v, want one that has ended as the hold is not held", got.Err(), context.Cause(got))
		}
	case iter.Seq2[relock.Holder, error]:
		wantOnlyRefusals(t, got)
	case iter.Seq2[relock.Info, error]:
		wantOnlyRefusals(t, got)
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

// wantOnlyRefusals looks at a loop over what a zero value has: it says why there is nothing.
func wantOnlyRefusals[T any](t *testing.T, all iter.Seq2[T, error]) {
	t.Helper()
	said := 0
	for _, err := range all {
		rig.WantIs(t, err, relock.ErrInvalidOption)
		said++
	}
	if said == 0 {
		t.Error("a loop that ends and says nothing")
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
	case reflect.TypeFor[int]():
		return reflect.ValueOf(1)
	case reflect.TypeFor[relock.Ticket]():
		return reflect.ValueOf(relock.Ticket("a"))
	case reflect.TypeFor[relock.Holder]():
		return reflect.ValueOf(relock.Holder{Owner: "a", Token: 1})
	case reflect.TypeFor[func(context.Context) error]():
		return reflect.ValueOf(func(context.Context) error { t.Error("fn ran"); return nil })
	}
	if of == reflect.TypeFor[func(context.Context, relock.Term) error]() {
		return reflect.ValueOf(nobody(t))
	}
	t.Fatalf("no argument of type %v", of)
	return reflect.Value{}
}

// Fails without the guards: each of these dereferenced nil, or spoke of another value.
func TestAConditionThatNobodyMadeSaysWhatToDo(t *testing.T) {
	var unmade *relock.Lock
	for _, row := range []struct {
		what string
		c    *relock.Cond
		say  string
	}{
		{"nil", nil, "the Cond was not made by Lock.NewCond"},
		{"zero", new(relock.Cond), "the Cond was not made by Lock.NewCond"},
		{"of a nil lock", unmade.NewCond("a"), "the lock was not made by Client.NewLock"},
		{"of a zero lock", new(relock.Lock).NewCond("a"), "the lock was not made by Client.NewLock"},
	} {
		_, forErr := row.c.WaitFor(t.Context(), time.Second)
		_, listErr := row.c.Waiters(t.Context())
		for call, err := range map[string]error{
			"Wait": row.c.Wait(t.Context()), "WaitFor": forErr, "Signal": row.c.Signal(t.Context()),
			"Broadcast": row.c.Broadcast(t.Context()), "Waiters": listErr,
		} {
			if !errors.Is(err, relock.ErrInvalidOption) || !strings.Contains(err.Error(), row.say) {
				t.Errorf("%s condition, %s: %v, want an error that says %q", row.what, call, err, row.say)
			}
		}
	}
}
