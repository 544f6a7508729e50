package key

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName   = 512
	maxPrefix = 128
	maxLabel  = 128
)

// inPatterns are forbidden in prefixes. They have a meaning in the patterns of an ACL (~relock:*), where a prefix must
// stand for itself. With braces in the prefix, a Cluster would take the hash tag from the prefix and not from the name.
const inPatterns = `{}*?[]\`

// CheckName returns an error for a bad lock name. A name is 1 to 512 bytes of valid UTF-8 without control characters.
func CheckName(name string) error {
	return check(name, maxName, "", "a name is 1 to 512 bytes of UTF-8 without control characters")
}

// CheckPrefix returns an error for a bad prefix of keys and channels. A prefix is 1 to 128 bytes of valid UTF-8 without
// control characters and without { } * ? [ ] \.
func CheckPrefix(prefix string) error {
	return check(prefix, maxPrefix, inPatterns,
		`a key prefix is 1 to 128 bytes of UTF-8 without control characters and without { } * ? [ ] \`)
}

// CheckLabel returns an error for a bad label. A label is 1 to 128 bytes of UTF-8 without control characters.
func CheckLabel(label string) error {
	return check(label, maxLabel, "", "a label is 1 to 128 bytes of UTF-8 without control characters")
}

// check returns an error that says how s breaks the rule, or nil.
func check(s string, limit int, forbidden, rule string) error {
	switch {
	case s == "":
		return fmt.Errorf("empty: %s", rule)
	case len(s) > limit:
		return fmt.Errorf("%d bytes long: %s", len(s), rule)
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not valid UTF-8: %s", brief(s), rule)
	}
	for at, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%s has the control character %U at byte %d: %s", brief(s), r, at, rule)
		}
		if strings.ContainsRune(forbidden, r) {
			return fmt.Errorf("%s has %q at byte %d: %s", brief(s), r, at, rule)
		}
	}
	return nil
}

// Quote quotes a name for an error. If a name is too long or not valid UTF-8, it quotes the beginning and adds the
// length: the name may come from anywhere and have any size.
func Quote(name string) string {
	if len(name) > maxName || !utf8.ValidString(name) {
		return brief(name)
	}
	return strconv.Quote(name)
}

// brief quotes the first 64 bytes, and adds the length if there are more.
func brief(s string) string {
	const most = 64
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:cut], len(s))
}
