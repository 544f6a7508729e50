package key

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName   = 512
	maxPrefix = 128
	maxLabel  = 128
)

// inPatterns are the characters that mean something in a pattern of an ACL
// (~relock:*), where a prefix must stand for itself, and the braces, which
// would take the hash tag from the name.
const inPatterns = `{}*?[]\`

// CheckName returns an error unless name is a name for a lock: 1 to 512 bytes
// of valid UTF-8 without control characters.
func CheckName(name string) error {
	return check(name, maxName, "", "a name is 1 to 512 bytes of UTF-8 without control characters")
}

// CheckPrefix returns an error unless prefix may begin keys and channels: 1 to
// 128 bytes of valid UTF-8 without control characters and without { } * ? [ ] \.
func CheckPrefix(prefix string) error {
	return check(prefix, maxPrefix, inPatterns,
		`a key prefix is 1 to 128 bytes of UTF-8 without control characters and without { } * ? [ ] \`)
}

// CheckLabel returns an error unless label is one. A label is 1 to 128 bytes of valid UTF-8 without
// control characters.
func CheckLabel(label string) error {
	return check(label, maxLabel, "", "a label is 1 to 128 bytes of UTF-8 without control characters")
}

func check(s string, limit int, forbidden, rule string) error {
	switch {
	case s == "":
		return fmt.Errorf("empty: %s", rule)
	case len(s) > limit:
		return fmt.Errorf("%d bytes long: %s", len(s), rule)
	case !utf8.ValidString(s):
		return fmt.Errorf("%q is not valid UTF-8: %s", s, rule)
	}
	for at, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%q has the control character %U at byte %d: %s", s, r, at, rule)
		}
		if strings.ContainsRune(forbidden, r) {
			return fmt.Errorf("%q has %q at byte %d: %s", s, r, at, rule)
		}
	}
	return nil
}
