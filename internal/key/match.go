package key

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Match is a pattern for names, like the patterns that Redis has for keys.
type Match struct {
	of      *regexp.Regexp
	literal string // the beginning of every name that matches
}

// NewMatch reads a pattern. * stands for any text, ? for one character, [a-z] for one of these, and [^a-z]
// for any other. \ makes the next character literal, also in [ ]. "" is "*".
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

// nextOf returns the first part of a pattern as a regular expression, its text (stands) if it is literal, and the rest.
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

// classOf returns a class as a regular expression. pattern begins after the [, and after begins after the ]. As in
// Redis, \ makes the next character literal, but not in a range such as a-z. Any character may end a range, even a ],
// and the ends may be in either order.
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
			set.WriteString(inSet(min(from, end)) + "-" + inSet(max(from, end))) // bytes of UTF-8 sort like characters
			rest = rest[len("-")+len(end):]
		default:
			set.WriteString(inSet(from))
		}
		pattern = rest
	}
	return "", "", errClass
}

var errClass = errors.New("a [ without its ] (which is none behind a - or a \\), or with nothing in it")

// inSet quotes a character for a class.
func inSet(char string) string {
	if char == "-" {
		return `\-`
	}
	return regexp.QuoteMeta(char)
}

// first splits off the first character.
func first(text string) (char, after string) {
	_, size := utf8.DecodeRuneInString(text)
	return text[:size], text[size:]
}

// Name reports whether a name matches.
func (m Match) Name(name string) bool { return m.of.MatchString(name) }

// Hashes returns a pattern for Redis that matches the hash key of every lock whose name matches, and perhaps others.
func (m Match) Hashes(prefix string) string {
	literal, _, _ := strings.Cut(m.literal, "%") // % may be escaped in the key
	if at := strings.IndexAny(literal, `{}`); at >= 0 {
		literal = literal[:at]
	}
	if literal == "" {
		return prefix + ":h*"
	}
	return prefix + ":h*" + literals.Replace(literal) + "*"
}

var literals = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)
