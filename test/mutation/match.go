package mutation

import (
	"go/scanner"
	"go/token"
	"slices"
	"strings"
)

// tok is a token, or in a pattern a hole that takes several.
type tok struct {
	text     string
	from, to int
	hole     string // the hole's name
	any      bool   // a hole that may be empty, and may hold statements
}

// edit is a piece of a file, and what stands there instead.
type edit struct {
	from, to int
	instead  string
}

// scan splits Go source into tokens, without comments. A line end that ends a statement is a semicolon of
// no length.
func scan(text string) (tokens []tok) {
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	s.Init(file, []byte(text), func(token.Position, string) {}, 0)
	end := 0
	for {
		pos, kind, literal := s.Scan()
		t := tok{text: literal, from: file.Offset(pos)}
		if literal == "" {
			t.text = kind.String()
		}
		t.to = t.from + len(t.text)
		n := len(tokens)
		switch {
		case kind == token.EOF:
			return tokens
		case kind == token.SEMICOLON && literal == "\n":
			t = tok{text: ";", from: end, to: end}
		case kind == token.IDENT && n > 0 && tokens[n-1].text == "$" && tokens[n-1].to == t.from:
			t.hole, t.from, tokens = t.text, tokens[n-1].from, tokens[:n-1]
			if n > 1 && tokens[n-2].text == "$" {
				t.any, t.from, tokens = true, tokens[n-2].from, tokens[:n-2]
			}
		}
		end = t.to
		tokens = append(tokens, t)
	}
}

// match compares a pattern with the tokens of a declaration.
type match struct {
	pattern, tokens []tok
	bound           map[string][]tok
	end             int // behind the last token that matches
}

// replacements returns an edit for every place where the pattern matches.
func replacements(pattern []tok, d declaration, instead string) (edits []edit) {
	pattern = slices.DeleteFunc(slices.Clone(pattern), func(t tok) bool { return t.text == ";" && t.from == t.to })
	for at := 0; at < len(d.tokens); at++ {
		m := match{pattern: pattern, tokens: d.tokens, bound: map[string][]tok{}}
		if !m.from(0, at) || m.end == at {
			continue
		}
		edits = append(edits, edit{d.tokens[at].from, d.tokens[m.end-1].to, m.fill(instead, d.text)})
		at = m.end - 1
	}
	return edits
}

// from reports whether the pattern from p on matches the tokens from t on.
func (m *match) from(p, t int) bool {
	if p == len(m.pattern) {
		m.end = t
		return true
	}
	want := m.pattern[p]
	switch {
	case want.hole != "":
		return m.fits(p, t)
	case t < len(m.tokens) && m.tokens[t].text == want.text && m.from(p+1, t+1):
		return true
	case p > 0 && optional(m.pattern, p) && m.from(p+1, t):
		return true
	}
	return p > 0 && optional(m.tokens, t) && m.from(p, t+1)
}

// optional reports whether a token is a matter of layout: a semicolon, or a comma that a closing bracket
// follows.
func optional(tokens []tok, i int) bool {
	switch {
	case i >= len(tokens):
		return false
	case tokens[i].text == ";":
		return true
	}
	return tokens[i].text == "," && i+1 < len(tokens) && closing(tokens[i+1].text)
}

func closing(text string) bool { return text == ")" || text == "]" || text == "}" }

// fits tries a hole with as few tokens as possible.
func (m *match) fits(p, t int) bool {
	hole := m.pattern[p]
	before, again := m.bound[hole.hole]
	depth := 0
	for end := t; ; end++ {
		taken := m.tokens[t:end]
		if depth == 0 && (end > t || hole.any) && (!again || slices.EqualFunc(before, taken, sameText)) {
			m.bound[hole.hole] = taken
			if m.from(p+1, end) {
				return true
			}
			if !again {
				delete(m.bound, hole.hole)
			}
		}
		if end == len(m.tokens) {
			return false
		}
		switch text := m.tokens[end].text; {
		case text == "(" || text == "[" || text == "{":
			depth++
		case closing(text):
			depth--
		case depth == 0 && !hole.any && (text == "," || text == ";"):
			return false
		}
		if depth < 0 {
			return false
		}
	}
}

func sameText(a, b tok) bool { return a.text == b.text }

// fill puts what the holes took into the replacement.
func (m *match) fill(instead, text string) string {
	var b strings.Builder
	end := 0
	for _, t := range scan(instead) {
		taken, ok := m.bound[t.hole]
		if !ok {
			continue
		}
		b.WriteString(instead[end:t.from])
		if len(taken) > 0 {
			b.WriteString(text[taken[0].from:taken[len(taken)-1].to])
		}
		end = t.to
	}
	return b.String() + instead[end:]
}
