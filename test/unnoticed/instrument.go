package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A change is one small change of the code that can be switched on.
type change struct {
	N     int
	Place string // file:line
	Func  string
	Kind  string // what the change does with Text
	Text  string // the code that it takes out
}

// The kinds of change.
const (
	never   = "never"   // the branch or case with this condition is never taken
	without = "without" // the operand is taken out of its && or ||
	skip    = "skip"    // the statement is not executed
)

// An instrument puts a switch around every place that can be changed. changes are those of all files so far.
type instrument struct {
	switches string // the import path of the package with the switches
	changes  []change

	// These belong to the file at hand.
	name  string
	src   []byte
	files *token.FileSet
	fn    string // the function at hand
	wraps []wrap
}

// A wrap puts text around a piece of the source.
type wrap struct {
	from, to    int
	left, right string
}

// file returns the source of a file with switches in it.
func (in *instrument) file(name string, src []byte) ([]byte, error) {
	in.name, in.src, in.files, in.wraps = name, src, token.NewFileSet(), nil
	tree, err := parser.ParseFile(in.files, name, src, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, d := range tree.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Body != nil && f.Name.Name != "init" {
			in.fn = funcName(f)
			ast.Inspect(f.Body, in.node)
		}
	}
	if in.wraps == nil {
		return src, nil
	}
	at := in.files.Position(tree.Name.End()).Offset
	in.wraps = append(in.wraps, wrap{at, at, "; import switches " + fmt.Sprintf("%q", in.switches), ""})
	return in.wrapped(), nil
}

// funcName returns the name of a function, behind that of its receiver's type.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, is := t.(*ast.StarExpr); is {
		t = star.X
	}
	if generic, is := t.(*ast.IndexExpr); is {
		t = generic.X
	}
	if id, is := t.(*ast.Ident); is {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// node puts switches into one node of the tree.
func (in *instrument) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		in.add(n.Cond, never, "(!switches.On(%d) && (", "))")
	case *ast.SwitchStmt:
		for _, c := range n.Body.List {
			for _, x := range c.(*ast.CaseClause).List {
				if n.Tag == nil {
					in.add(x, never, "(!switches.On(%d) && (", "))")
				}
			}
		}
	case *ast.BinaryExpr:
		for _, x := range []ast.Expr{n.X, n.Y} {
			switch n.Op {
			case token.LAND:
				in.add(x, without, "(switches.On(%d) || (", "))")
			case token.LOR:
				in.add(x, without, "(!switches.On(%d) && (", "))")
			}
		}
	case *ast.BlockStmt:
		in.statements(n.List)
	case *ast.CaseClause:
		in.statements(n.Body)
	case *ast.CommClause:
		in.statements(n.Body)
	}
	return true
}

// statements puts a switch around each statement that can be left out.
func (in *instrument) statements(all []ast.Stmt) {
	for _, s := range all {
		out := false
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, is := s.X.(*ast.CallExpr)
			out = !is || !stays(call)
		case *ast.DeferStmt:
			out = !stays(s.Call)
		case *ast.AssignStmt:
			blank, is := s.Lhs[0].(*ast.Ident)
			out = s.Tok != token.DEFINE && (!is || blank.Name != "_" || len(s.Lhs) > 1)
		case *ast.IncDecStmt, *ast.SendStmt:
			out = true
		}
		if out {
			in.add(s, skip, "if !switches.On(%d) { ", " }")
		}
	}
}

// stays reports whether a call must stay: a function may not end without its panic, and of Lock and Unlock each needs
// the other.
func stays(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		return len(call.Args) == 0 && slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, f.Sel.Name)
	}
	return false
}

// add notes a change of n, and where its switch goes. left has a place for the change's number.
func (in *instrument) add(n ast.Node, kind, left, right string) {
	from, to := in.files.Position(n.Pos()), in.files.Position(n.End())
	number := len(in.changes)
	in.changes = append(in.changes, change{
		N: number, Place: fmt.Sprintf("%s:%d", in.name, from.Line), Func: in.fn, Kind: kind,
		Text: strings.Join(strings.Fields(string(in.src[from.Offset:to.Offset])), " "),
	})
	in.wraps = append(in.wraps, wrap{from.Offset, to.Offset, fmt.Sprintf(left, number), right})
}

// wrapped returns the source with all wraps. They nest: a longer one goes around a shorter one.
func (in *instrument) wrapped() []byte {
	slices.SortStableFunc(in.wraps, func(a, b wrap) int { return (b.to - b.from) - (a.to - a.from) })
	type insert struct {
		at, order int
		text      string
	}
	var all []insert
	for i, w := range in.wraps { // at one place the right sides come first, the innermost of them before the others
		all = append(all, insert{w.from, i + 1, w.left}, insert{w.to, -i - 1, w.right})
	}
	slices.SortStableFunc(all, func(a, b insert) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.order - b.order
	})
	var out bytes.Buffer
	last := 0
	for _, x := range all {
		out.Write(in.src[last:x.at])
		out.WriteString(x.text)
		last = x.at
	}
	out.Write(in.src[last:])
	return out.Bytes()
}
