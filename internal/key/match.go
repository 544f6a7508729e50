package key

import (
	"fmt"
	"regexp"
	"strings"
)

// A Match is a pattern of names, as Redis has them of keys.
type Match struct {
	of      *regexp.Regexp
	literal string // what each name that matches begins with
}

// NewMatch reads a pattern: * stands for any text, ? for one character, [a-z] for one of
// these and [^a-z] for any other, and \ takes the meaning from what follows. "" is "*".
func NewMatch(pattern string) (Match, error) {
	if pattern == "" {
		pattern = "*"
	}
	var expr, literal strings.Builder
	plain := true
	for rest := pattern; rest != ""; {
		part, stands, after, err := nextOf(rest)
		if err != nil {
			return Match{}, fmt.Errorf("pattern %.512q: %w", pattern, err)
		}
		if plain = plain && stands != ""; plain {
			literal.WriteString(stands)
		}
		expr.WriteString(part)
		rest = after
	}
	of, err := regexp.Compile(`(?s)^` + expr.String() + `$`)
	if err != nil {
		return Match{}, fmt.Errorf("pattern %.512q: a range goes backwards, or there is no end", pattern)
	}
	return Match{of, literal.String()}, nil
}

// nextOf returns the first part of a pattern as a regular expression, and what it stands
// for where that is itself.
func nextOf(pattern string) (expr, stands, after string, err error) {
	switch pattern[0] {
	case '*':
		return `.*`, "", pattern[1:], nil
	case '?':
		return `.`, "", pattern[1:], nil
	case '[':
		set, after, closed := strings.Cut(pattern[1:], "]")
		if !closed || set == "" || set == "^" {
			return "", "", "", fmt.Errorf("a [ without its ], or with nothing in it")
		}
		not := ""
		if set[0] == '^' {
			not, set = "^", set[1:]
		}
		return "[" + not + inSet.Replace(set) + "]", "", after, nil
	case '\\':
		if pattern = pattern[1:]; pattern == "" {
			return "", "", "", fmt.Errorf("a \\ with nothing behind it")
		}
	}
	for i, r := range pattern {
		stands, after = pattern[:i+len(string(r))], pattern[i+len(string(r)):]
		break
	}
	return regexp.QuoteMeta(stands), stands, after, nil
}

var inSet = strings.NewReplacer(`[`, `\[`, `^`, `\^`, `&`, `\&`, `~`, `\~`, `\`, `\\`)

// Name says whether a name matches.
func (m Match) Name(name string) bool { return m.of.MatchString(name) }

// Hashes is a pattern for Redis of which the key of each lock is that has such a name, and
// of others.
func (m Match) Hashes(prefix string) string {
	literal, _, _ := strings.Cut(m.literal, "%") // as which these may be in the key
	if at := strings.IndexAny(literal, `{}`); at >= 0 {
		literal = literal[:at]
	}
	if literal == "" {
		return prefix + ":h*"
	}
	return prefix + ":h*" + literals.Replace(literal) + "*"
}

var literals = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)
