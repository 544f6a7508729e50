//go:build unix

package main

import (
	"strings"
	"unicode"
)

// A bashLine is a line of bash up to the cursor, without the program's name.
type bashLine struct {
	words []string // without their quotes; the last one must be completed
	quote byte     // the quote that is open at the cursor; 0: none
	kept  int      // how much of the last word bash keeps as it is
}

// splitBash splits a line as the shell does when it runs it. During completion bash also splits at the
// characters of breaks, and replaces only what follows the last one.
func splitBash(line, breaks string) bashLine {
	b := bashLine{}
	word, within := []byte{}, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case b.quote == 0 && (c == '\'' || c == '"'):
			b.quote, within = c, true
		case c == b.quote:
			b.quote = 0
		case c == '\\' && b.quote != '\'' && i+1 < len(line):
			i++
			word, within = append(word, line[i]), true
		case b.quote == 0 && (c == ' ' || c == '\t'):
			if within {
				b.words = append(b.words, string(word))
			}
			word, within, b.kept = word[:0], false, 0
		default:
			word, within = append(word, c), true
			if b.quote == 0 && strings.IndexByte(breaks, c) >= 0 {
				b.kept = len(word)
			}
		}
	}
	b.words = append(b.words, string(word))
	b.words = b.words[min(1, len(b.words)-1):]
	return b
}

// rest returns the text that bash must insert for that word. The word may come from another user, so it must
// not become a command.
func (b bashLine) rest(word string) string {
	var quoted strings.Builder
	for _, r := range word[min(b.kept, len(word)):] {
		switch {
		case b.quote == '\'' && r == '\'':
			quoted.WriteString(`'\'`)
		case b.quote == '"' && r == '!':
			quoted.WriteString(`"\!"`) // a backslash within the quotes would stay
			continue
		case b.quote == '"' && strings.ContainsRune("\"\\$`", r),
			b.quote == 0 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-+,./:=@%", r):
			quoted.WriteByte('\\')
		}
		quoted.WriteRune(r)
	}
	return quoted.String()
}
