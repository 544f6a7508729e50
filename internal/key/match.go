package key

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Match is a pattern of names, as Redis has them of keys.
type Match struct {
	of      *regexp.Regexp
	literal string // what each name that matches begins with
}

// NewMatch reads a pattern: * stands for any text, ? for one character, [a-z] for one of
// these and [^a-z] for any other, and \ takes the meaning from what follows, also in [ ].
// "" is "*".
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
		return Match{}, fmt.Errorf("pattern %.512q: it is not UTF-8, or too long", pattern)
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
		expr, after, err = classOf(pattern[1:])
		return expr, "", after, err
	case '\\':
		if pattern = pattern[1:]; pattern == "" {
			return "", "", "", fmt.Errorf("a \\ with nothing behind it")
		}
	}
	stands, after = first(pattern)
	return regexp.QuoteMeta(stands), stands, after, nil
}

// classOf returns a class as a regular expression, from what is behind its [, and what comes
// after its ]. As in Redis, \ takes the meaning from what follows, but not within a range:
// any character may be its end, also a ], and either end the larger one.
func classOf(pattern string) (expr, after string, err error) {
	not := ""
	if rest, is := strings.CutPrefix(pattern, "^"); is {
		not, pattern = "^", rest
	}
	var set strings.Builder
	for pattern != "" {
		from, rest := first(pattern)
		end, _ := first(strings.TrimPrefix(rest, "-"))
		switch {
		case from == `\` && rest != "":
			from, rest = first(rest)
			set.WriteString(inSet(from))
		case from == "]" && set.Len() == 0:
			return "", "", errClass
		case from == "]":
			return "[" + not + set.String() + "]", rest, nil
		case strings.HasPrefix(rest, "-") && end != "":
			set.WriteString(inSet(min(from, end)) + "-" + inSet(max(from, end))) // UTF-8 sorts as its characters do
			rest = rest[len("-")+len(end):]
		default:
			set.WriteString(inSet(from))
		}
		pattern = rest
	}
	return "", "", errClass
}

var errClass = errors.New("a [ without its ] (which is none behind a - or a \\), or with nothing in it")

// inSet quotes a character of a class.
func inSet(char string) string {
	if char == "-" {
		return `\-`
	}
	return regexp.QuoteMeta(char)
}

// first cuts the first character off.
func first(text string) (char, after string) {
	_, size := utf8.DecodeRuneInString(text)
	return text[:size], text[size:]
}

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
