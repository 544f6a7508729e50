package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A user's context may be that of a hold: to answer, it takes the mutex of its lock.

func TestNoContextIsAskedUnderAMutex(t *testing.T) { report(t, askedUnderMutex(everyFile(t))) }

func TestAContextThatIsAskedUnderAMutexIsFound(t *testing.T) {
	for body, want := range map[string]int{
		"k.mu.Lock(); defer k.mu.Unlock(); if e != nil && ctx.Err() != nil { return }":  1,
		"k.mu.Lock(); k.mu.Unlock(); _ = ctx.Err()":                                     0,
		"at := k.begin(); defer k.end(&at); _ = context.Cause(ctx)":                     1,
		"at := k.look(); k.end(&at); <-ctx.Done()":                                      0,
		"k.mu.Lock(); if x { k.mu.Unlock(); return }; <-w.ctx.Done()":                   1,
		"k.mu.Lock(); if x { k.mu.Unlock(); <-ctx.Done(); return }; k.mu.Unlock()":      0,
		"k.mu.Lock(); switch { case x: k.mu.Unlock(); return; case ctx.Err() != nil: }": 1,
		"k.mu.Lock(); go func() { <-ctx.Done() }(); k.mu.Unlock()":                      0,
		"k.mu.Lock(); _ = k.c.ctx.Err(); k.mu.Unlock()":                                 0,
	} {
		got := askedUnderMutex(map[string]string{"a.go": "package a\nfunc f() {\n" + body + "\n}\n"})
		if len(got) != want {
			t.Errorf("%s: %q, want %d problems", body, got, want)
		}
	}
}

func askedUnderMutex(files map[string]string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var body *ast.BlockStmt
			switch n := n.(type) {
			case *ast.FuncDecl:
				body = n.Body
			case *ast.FuncLit:
				body = n.Body
			}
			if body != nil {
				w := mutexWalk{found: func(n ast.Node) {
					problems = append(problems, set.Position(n.Pos()).String()+": a context is asked under a mutex")
				}}
				w.list(body.List)
			}
			return true
		})
	}
	return problems
}

// A mutexWalk goes through a function in order, and knows whether it has a mutex.
type mutexWalk struct {
	held  bool
	found func(n ast.Node)
}

func (w *mutexWalk) list(all []ast.Stmt) {
	for _, s := range all {
		w.stmt(s)
	}
}

func (w *mutexWalk) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.BlockStmt:
		w.list(s.List)
	case *ast.DeferStmt, *ast.GoStmt: // a deferred unlock comes at the end
	case *ast.IfStmt:
		if s.Init != nil {
			w.stmt(s.Init)
		}
		w.look(s.Cond)
		before := w.held
		w.list(s.Body.List)
		if ends(s.Body.List) {
			w.held = before
		}
		if s.Else != nil {
			after := w.held
			w.held = before
			w.stmt(s.Else)
			w.held = w.held || after
		}
	case *ast.ForStmt:
		w.look(s.Cond)
		w.list(s.Body.List)
	case *ast.RangeStmt:
		w.look(s.X)
		w.list(s.Body.List)
	case *ast.SwitchStmt:
		if s.Init != nil {
			w.stmt(s.Init)
		}
		w.look(s.Tag)
		w.clauses(s.Body.List)
	case *ast.TypeSwitchStmt:
		w.clauses(s.Body.List)
	case *ast.SelectStmt:
		w.clauses(s.Body.List)
	default:
		w.look(s)
	}
}

// clauses goes through each clause as if the others were not there.
func (w *mutexWalk) clauses(all []ast.Stmt) {
	before, after := w.held, w.held
	for _, c := range all {
		w.held = before
		switch c := c.(type) {
		case *ast.CaseClause:
			for _, e := range c.List {
				w.look(e)
			}
			w.list(c.Body)
			after = after && (w.held || ends(c.Body))
		case *ast.CommClause:
			if c.Comm != nil {
				w.look(c.Comm)
			}
			w.list(c.Body)
			after = after && (w.held || ends(c.Body))
		}
	}
	w.held = after
}

func ends(all []ast.Stmt) bool {
	if len(all) == 0 {
		return false
	}
	switch all[len(all)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// look finds what takes or gives back a mutex, and what asks a context, outside of function literals.
func (w *mutexWalk) look(n ast.Node) {
	if n == nil {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch name := f.Sel.Name; {
			case name == "Lock" && len(n.Args) == 0 || name == "RLock" && len(n.Args) == 0 || (name == "begin" || name == "look") && isKeeper(f.X):
				w.held = true
			case name == "Unlock" || name == "RUnlock" || name == "end" && isKeeper(f.X):
				w.held = false
			case w.held && (slices.Contains([]string{"Err", "Done", "Value", "Deadline"}, name) && isContext(f.X) || asksArgument(f, n.Args)):
				w.found(n)
			}
		}
		return true
	})
}

// asksArgument reports whether a function of another package asks the context that it is given.
func asksArgument(f *ast.SelectorExpr, args []ast.Expr) bool {
	from, ok := f.X.(*ast.Ident)
	if !ok || len(args) == 0 || !isContext(args[0]) {
		return false
	}
	switch from.Name + "." + f.Sel.Name {
	case "context.Cause", "context.AfterFunc", "ending.Of", "relock.OwnerFrom":
		return true
	}
	return false
}

// isContext reports whether an expression is a context that a user may have given, by its name. Those of clients and their
// parts, as k.c.ctx, are their own.
func isContext(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"ctx", "parent", "bounded", "patient"}, e.Name)
	case *ast.SelectorExpr:
		from, ok := e.X.(*ast.Ident)
		return e.Sel.Name == "ctx" && ok && from.Name == "w"
	}
	return false
}

// isKeeper reports whether an expression is a keeper, by its name.
func isKeeper(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "k"
	case *ast.SelectorExpr:
		return e.Sel.Name == "keeper"
	case *ast.CallExpr:
		f, ok := e.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "keeper"
	}
	return false
}
