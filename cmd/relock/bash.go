//go:build unix

package main

import (
	"strings"
	"unicode"
)

// A bashLine is a line of bash up to the cursor, without the program's name.
type bashLine struct {
	words []string // without their quotes; the last one is to be completed
	quote byte     // that is open at the cursor; 0: none
	kept  int      // how much of the last word bash leaves as it is
}

// splitBash divides a line as the shell will once it runs. Bash divides it at the characters
// of breaks too while it completes, and replaces what stands behind the last of those.
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

// rest is what bash is to put in place of what it replaces, for that word. It is of another's
// making, and must not be a command.
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
