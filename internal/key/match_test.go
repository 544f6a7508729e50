package key_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/relock-go/relock/internal/key"
)

var matchRows = []struct {
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
	{`job[\-_]1`, []string{"job-1", "job_1"}, []string{`job\1`, "job]1", "job\\-1"}},
	{`a[\]]`, []string{"a]"}, []string{`a\]`, `a\`, "a"}},
	{`[\d]`, []string{"d"}, []string{`\`, "1"}},
	{`[^\]\d]`, []string{`\`, "1"}, []string{"d", "]"}},
	{`[\^a]`, []string{"^", "a"}, []string{`\`, "b"}},
	{`[\\]`, []string{`\`}, []string{"a", `\\`}},
	{`[\a-c]`, []string{"a", "-", "c"}, []string{"b", `\`}},
	{"[d-b]", []string{"b", "c", "d"}, []string{"a", "e", "-"}},
	{"[é-à]", []string{"à", "ç", "é"}, []string{"ê", "e"}},
	{"[a-]b]", []string{"]", "^", "a", "b"}, []string{"-", "c"}},
	{`[a-\]b`, []string{"ab", `\b`, "]b"}, []string{"-b", "[b"}},
	{"[-a]", []string{"-", "a"}, []string{"b"}},
	{"[[:alpha:]]", []string{":]", "a]", "[]"}, []string{"b]", "a"}},
	{"[a&&b~.]", []string{"a", "&", "~", "."}, []string{"c"}},
	{`\*\\`, []string{`*\`}, []string{`a\`, "*"}},
	{"50%", []string{"50%"}, []string{"50%25", "50"}},
	{"{a}b", []string{"{a}b"}, []string{"ab", "{a}"}},
	{"a.b+(c)", []string{"a.b+(c)"}, []string{"axb+(c)", "a.bb+(c)"}},
}

func TestMatchIsThatOfRedis(t *testing.T) {
	for _, row := range matchRows {
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
	for _, bad := range []string{"[", "a[]", "[^]", "[a-]", `[a\]`, `[\`, "[^", "\xff", "[\xff]", `a\`} {
		if _, err := key.NewMatch(bad); err == nil || !strings.Contains(err.Error(), strconv.Quote(bad)) {
			t.Errorf("NewMatch(%q): %v, want an error that names it", bad, err)
		}
	}
}

// FuzzMatchIsThatOfRedis compares with Redis' rule, but for what is refused here: a class
// without its end or with nothing in it, and a \ at the end.
func FuzzMatchIsThatOfRedis(f *testing.F) {
	for _, pattern := range []string{`job[\-_]1`, `a[\]]*`, `[\d]?`, "[^d-b]", "[a-]b]", `[a-\]b`, `*[[-a]`, "a[^]b]", "a*b**c?", `\[é`} {
		for _, name := range []string{"job-1", `a\]`, "]b", "c1", "-", "[é"} {
			f.Add(pattern, name)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if pattern != "" && utf8.ValidString(pattern+" "+name) && len(name) <= 32 && strings.Count(pattern, "*") <= 4 { // Redis' rule takes its time
			wantAsInRedis(t, pattern, name)
		}
	})
}

// Every pattern of a few characters that mean something in one, and every short name of them.
func TestShortPatternsMatchAsInRedis(t *testing.T) {
	names := textsOf("]\\^ab-", 2)
	for _, class := range textsOf("]\\^ab-", 5) {
		wantAsInRedis(t, "["+class, names...)
	}
}

func wantAsInRedis(t *testing.T, pattern string, names ...string) {
	t.Helper()
	m, err := key.NewMatch(pattern)
	if want := refused([]rune(pattern)); (err != nil) != want {
		t.Fatalf("NewMatch(%q): %v, refused: want %v", pattern, err, want)
	}
	for _, name := range names {
		if err != nil {
			return
		}
		if got, want := m.Name(name), redisMatches([]rune(pattern), []rune(name)); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	}
}

// refused says which patterns are no patterns here, though Redis makes something of them.
func refused(p []rune) bool {
	for len(p) > 0 {
		skip := 1
		switch p[0] {
		case '\\':
			skip = 2
		case '[':
			_, end := redisClass(p[1:], 0)
			set := strings.TrimPrefix(string(p[1:]), "^")
			if len(end) == 0 || set[0] == ']' {
				return true
			}
			p = end
		}
		if len(p) < skip {
			return true
		}
		p = p[skip:]
	}
	return false
}

// textsOf are all texts of at most so many of these letters.
func textsOf(letters string, most int) []string {
	all := []string{""}
	for from := 0; most > 0; most-- {
		longest := slices.Clone(all[from:])
		from = len(all)
		for _, text := range longest {
			for _, letter := range letters {
				all = append(all, text+string(letter))
			}
		}
	}
	return all
}

// redisMatches is the rule of Redis' stringmatchlen, for characters instead of bytes.
func redisMatches(p, s []rune) bool {
	for len(p) > 0 && len(s) > 0 {
		switch p[0] {
		case '*':
			for i := range len(s) + 1 {
				if redisMatches(p[1:], s[i:]) {
					return true
				}
			}
			return false
		case '?':
		case '[':
			in, end := redisClass(p[1:], s[0])
			if !in {
				return false
			}
			p = end
		case '\\':
			p = p[min(1, len(p)-1):]
			fallthrough
		default:
			if p[0] != s[0] {
				return false
			}
		}
		p, s = p[1:], s[1:]
	}
	return len(s) == 0 && len(strings.TrimLeft(string(p), "*")) == 0
}

// redisClass says whether c is in the class, whose [ has been read, and where its ] is.
func redisClass(p []rune, c rune) (in bool, end []rune) {
	not := len(p) > 0 && p[0] == '^'
	if not {
		p = p[1:]
	}
	for ; len(p) > 0 && p[0] != ']'; p = p[1:] {
		switch {
		case p[0] == '\\' && len(p) >= 2:
			p = p[1:]
			in = in || p[0] == c
		case len(p) >= 3 && p[1] == '-':
			in = in || c >= min(p[0], p[2]) && c <= max(p[0], p[2])
			p = p[2:]
		default:
			in = in || p[0] == c
		}
	}
	return in != not, p
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
