package key_test

import (
	"strings"
	"testing"

	"github.com/relock-go/relock/internal/key"
)

func TestMatchIsThatOfRedis(t *testing.T) {
	for _, row := range []struct {
		pattern  string
		yes, not []string
	}{
		{"", []string{"a", "{a}", "a\u2028b", strings.Repeat("x", 512)}, nil},
		{"*", []string{"a", "%", "a}{"}, nil},
		{"orders:*", []string{"orders:", "orders:1", "orders:{1}"}, []string{"orders", "my orders:1"}},
		{"*:é", []string{":é", "a:é"}, []string{":e", "é:", ":éa"}},
		{"a?c", []string{"abc", "aéc", "a}c"}, []string{"ac", "abbc"}},
		{"a[b-d]e", []string{"abe", "ade"}, []string{"ae", "aee", "abde"}},
		{"a[^b-d]e", []string{"aae", "aee"}, []string{"abe", "ae"}},
		{"[.^]", []string{".", "^"}, []string{"a", ""}},
		{`\*\\`, []string{`*\`}, []string{`a\`, "*"}},
		{"50%", []string{"50%"}, []string{"50%25", "50"}},
		{"{a}b", []string{"{a}b"}, []string{"ab", "{a}"}},
		{"a.b+(c)", []string{"a.b+(c)"}, []string{"axb+(c)", "a.bb+(c)"}},
	} {
		m, err := key.NewMatch(row.pattern)
		if err != nil {
			t.Errorf("NewMatch(%q): %v", row.pattern, err)
			continue
		}
		for _, name := range row.yes {
			if !m.Name(name) {
				t.Errorf("%q does not match %q", row.pattern, name)
			}
		}
		for _, name := range row.not {
			if m.Name(name) {
				t.Errorf("%q matches %q", row.pattern, name)
			}
		}
	}
	for _, bad := range []string{"[", "a[]", "[^]", "[b-a]", `a\`} {
		if _, err := key.NewMatch(bad); err == nil || !strings.Contains(err.Error(), bad[:1]) {
			t.Errorf("NewMatch(%q): %v, want an error that names it", bad, err)
		}
	}
}

// What is asked of Redis finds every lock that matches, whatever its name becomes in the key.
func TestHashesOfAMatchAreFound(t *testing.T) {
	for _, pattern := range []string{"", "*", "orders:*", "50%*", "a{b}*", "{a}*", `a\*b?`, `\[x\]*`, "a[bc]*", "a}b*", "é*"} {
		m, err := key.NewMatch(pattern)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := key.NewMatch(m.Hashes(prefix)) // a pattern of the same language
		if err != nil {
			t.Fatalf("%q asks for %q: %v", pattern, m.Hashes(prefix), err)
		}
		for _, name := range []string{"a", "orders:1", "50%", "50%25", "a{b}c", "{a}", "{a}b", "a*bc", "[x]", "[x]y", "ab", "abc", "a}b", "a}bc", "é", "éa"} {
			if m.Name(name) && !asked.Name(key.Hash(prefix, name)) {
				t.Errorf("%q asks for %q, which does not find %q at %q", pattern, m.Hashes(prefix), name, key.Hash(prefix, name))
			}
		}
	}
}

func TestLockIsToldFromItsKey(t *testing.T) {
	for _, name := range []string{"a", "{a}", "{a}:b", "%", "}{", "a:h:{b}"} {
		if got, ok := key.Lock(prefix, key.Hash(prefix, name)); got != name || !ok {
			t.Errorf("Lock(%q) = %q, %v, want %q", key.Hash(prefix, name), got, ok, name)
		}
		if got, ok := key.Lock(prefix, key.For(prefix, name).Queue); ok {
			t.Errorf("the queue of %q is that of the lock %q", name, got)
		}
	}
	for _, other := range []string{
		"", prefix, prefix + ":h:", prefix + ":h:{", prefix + ":h:{}", prefix + ":h:{%7d}", prefix + ":h:{a}b}", prefix + ":ht:a", prefix + ":ht:",
		prefix + ":h:{\n}", prefix + ":hello:h:{a}", prefix + "x:h:{a}", key.Label(prefix, "c"),
	} {
		if got, ok := key.Lock(prefix, other); ok {
			t.Errorf("%q is the lock %q", other, got)
		}
	}
}
