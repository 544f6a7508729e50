package key_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/relock-go/relock/internal/key"
)

const prefix = "relock"

func TestKeysHaveTheDocumentedLayout(t *testing.T) {
	for _, row := range []struct{ name, hash, queue string }{
		{"orders", "relock:h:{orders}", "relock:q:{orders}"},
		{"a:b/c d", "relock:h:{a:b/c d}", "relock:q:{a:b/c d}"},
		{"ключ", "relock:h:{ключ}", "relock:q:{ключ}"},
		{"50%", "relock:h:{50%25}", "relock:q:{50%25}"},
		// No tag for Redis: nothing between the braces, or they do not meet.
		{"{}", "relock:h:{%7B%7D}", "relock:q:{%7B%7D}"},
		{"{}{a}", "relock:h:{%7B%7D%7Ba%7D}", "relock:q:{%7B%7D%7Ba%7D}"},
		{"}{", "relock:h:{%7D%7B}", "relock:q:{%7D%7B}"},
		{"{a", "relock:h:{%7Ba}", "relock:q:{%7Ba}"},
		{"a}", "relock:h:{a%7D}", "relock:q:{a%7D}"},
		// A tag of its own.
		{"{a}", "relock:ht:{a}", "relock:qt:{a}"},
		{"{a}:q", "relock:ht:{a}:q", "relock:qt:{a}:q"},
		{"order:{42}:pay%", "relock:ht:order:{42}:pay%", "relock:qt:order:{42}:pay%"},
		{"}{a}", "relock:ht:}{a}", "relock:qt:}{a}"},
		{"{{a}}", "relock:ht:{{a}}", "relock:qt:{{a}}"},
	} {
		got, want := key.For(prefix, row.name), key.Keys{Hash: row.hash, Queue: row.queue}
		if got != want {
			t.Errorf("For(%q) = %v, want %v", row.name, got, want)
		}
		if got := key.Name(prefix, row.hash); got != row.name {
			t.Errorf("Name(%q) = %q, want %q", row.hash, got, row.name)
		}
	}
	if got, want := key.Inbox(prefix, "c1"), "relock:inbox:c1"; got != want {
		t.Errorf("Inbox = %q, want %q", got, want)
	}
}

func TestTaggedNameSharesTheUsersSlot(t *testing.T) {
	user := slot("cart:{user42}")
	if got := slot(key.For(prefix, "pay:{user42}").Hash); got != user {
		t.Errorf("slot %d, want %d", got, user)
	}
}

func TestShardedChannelIsInTheLocksSlot(t *testing.T) {
	for _, name := range []string{"job", "{tenant}:job", "a{b}c{d}", "{", "}", "{}", "{}x{a}", "x{", "}{", "{{a}}", "%7B", "日本", "a b"} {
		keys := key.For(prefix, name)
		channel := key.ShardInbox(prefix, keys.Hash, "s.c1")
		if slot(channel) != slot(keys.Hash) {
			t.Errorf("name %q: channel %s is in slot %d, the hash in %d", name, channel, slot(channel), slot(keys.Hash))
		}
		if !strings.HasPrefix(channel, key.Inbox(prefix, "")) {
			t.Errorf("channel %s is not among those that a user is permitted", channel)
		}
	}
	if got, want := key.ShardInbox(prefix, key.Hash(prefix, "orders"), "s.c1"), "relock:inbox:{orders}s.c1"; got != want {
		t.Errorf("ShardInbox = %q, want %q", got, want)
	}
}

// Every string over a small alphabet: each key belongs to one name and part.
func TestShortNamesNeverShareAKey(t *testing.T) {
	seen := make(map[string]string)
	names := []string{""}
	for range 5 {
		var longer []string
		for _, s := range names {
			for _, c := range []string{"{", "}", "%", "7B", "a", ":"} {
				longer = append(longer, s+c)
			}
		}
		for _, name := range longer {
			own(t, seen, name)
		}
		names = longer
	}
}

// own claims the keys of name, which may have been claimed for it before: two
// ways of putting the alphabet together may spell one name.
func own(t *testing.T, seen map[string]string, name string) {
	t.Helper()
	k := key.For(prefix, name)
	for _, owner := range [][2]string{{k.Hash, "hash of " + name}, {k.Queue, "queue of " + name}} {
		if other, ok := seen[owner[0]]; ok && other != owner[1] {
			t.Fatalf("%q is the %s and the %s", owner[0], other, owner[1])
		}
		seen[owner[0]] = owner[1]
	}
}

func TestNamesAreChecked(t *testing.T) {
	for _, good := range []string{"a", " ", "{a}", "%", "ключ", "*?[]\\", strings.Repeat("x", 512), "\u00a0", "\ufffd"} {
		if err := key.CheckName(good); err != nil {
			t.Errorf("CheckName(%.20q) = %v", good, err)
		}
	}
	for bad, part := range map[string]string{
		"":                            "empty",
		strings.Repeat("x", 513):      "513 bytes",
		"a\xff":                       "UTF-8",
		"a\x00b":                      "U+0000 at byte 1",
		"a\nb":                        "U+000A",
		"\x7f":                        "U+007F",
		"\u0085":                      "U+0085",
		"\xed\xa0\x80":                "UTF-8", // a surrogate
		strings.Repeat("\u00e9", 257): "514 bytes",
	} {
		wantError(t, key.CheckName(bad), part, "1 to 512 bytes")
	}
}

func TestPrefixesAreChecked(t *testing.T) {
	for _, good := range []string{"relock", "a:b", "%", strings.Repeat("x", 128), "é"} {
		if err := key.CheckPrefix(good); err != nil {
			t.Errorf("CheckPrefix(%.20q) = %v", good, err)
		}
	}
	for bad, part := range map[string]string{
		"":                       "empty",
		strings.Repeat("x", 129): "129 bytes",
		"a\xff":                  "UTF-8",
		"a\tb":                   "U+0009",
		"a{b":                    "'{' at byte 1",
		"a}":                     "'}'",
		"a*":                     "'*'",
		"a?":                     "'?'",
		"[":                      "'['",
		"]":                      "']'",
		`a\`:                     `'\\'`,
	} {
		wantError(t, key.CheckPrefix(bad), part, "1 to 128 bytes")
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if !utf8.ValidString(err.Error()) {
		t.Errorf("error %q is not printable", err)
	}
}

// FuzzKeys shows that a lock's keys are in one slot, that two locks share none,
// and that both can be told from the key alone.
func FuzzKeys(f *testing.F) {
	for _, pair := range [][2]string{
		{"a", "{a}"}, {"{a}:q", "a"}, {"%7B", "{"}, {"%", "%25"}, {"{}", "{}a"}, {"}{a}", "}{a"}, {"ht:{a}", "{a}"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if key.CheckName(a) != nil || key.CheckName(b) != nil {
			t.Skip()
		}
		k := key.For(prefix, a)
		if slot(k.Hash) != slot(k.Queue) {
			t.Errorf("keys of %q are in slots %d and %d", a, slot(k.Hash), slot(k.Queue))
		}
		if hashTag(a) != a && slot(k.Hash) != slot(a) {
			t.Errorf("%q left the slot of its tag", a)
		}
		seen := make(map[string]string)
		own(t, seen, a)
		own(t, seen, b)
		if got := nameOf(t, k.Hash, "h"); got != a {
			t.Errorf("hash key of %q reads back as %q", a, got)
		}
		for _, prefix := range []string{prefix, "a:h:b", "a:ht"} {
			if got := key.Name(prefix, key.Hash(prefix, a)); got != a {
				t.Errorf("Name says %q of %q under %q", got, a, prefix)
			}
		}
		if got := nameOf(t, k.Queue, "q"); got != a {
			t.Errorf("queue key of %q reads back as %q", a, got)
		}
	})
}

// nameOf inverts For: what has an inverse is one to one.
func nameOf(t *testing.T, k, part string) string {
	t.Helper()
	if name, ok := strings.CutPrefix(k, prefix+":"+part+"t:"); ok {
		return name
	}
	name, ok := strings.CutPrefix(k, prefix+":"+part+":{")
	name, closed := strings.CutSuffix(name, "}")
	if !ok || !closed || strings.ContainsAny(name, "{}") {
		t.Fatalf("%q is not a key of the layout", k)
	}
	return strings.NewReplacer("%7B", "{", "%7D", "}", "%25", "%").Replace(name)
}

// slot and hashTag follow the Redis Cluster specification.
func slot(k string) uint16 {
	var crc uint16
	for _, c := range []byte(hashTag(k)) {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

func hashTag(k string) string {
	open := strings.IndexByte(k, '{')
	if open < 0 {
		return k
	}
	end := strings.IndexByte(k[open+1:], '}')
	if end <= 0 {
		return k
	}
	return k[open+1 : open+1+end]
}

func TestSlotIsThatOfRedis(t *testing.T) {
	for k, want := range map[string]uint16{"123456789": 0x31C3, "foo": 12182, "{user1000}.following": 3443, "": 0} {
		if got := slot(k); got != want {
			t.Errorf("slot(%q) = %d, want %d", k, got, want)
		}
	}
}

func TestQuoteRepeatsNoNameOfAnySize(t *testing.T) {
	for name, want := range map[string]string{
		"orders/9":                `"orders/9"`,
		strings.Repeat("n", 512):  `"` + strings.Repeat("n", 512) + `"`,
		strings.Repeat("n", 1e6):  `"` + strings.Repeat("n", 64) + `"… (1000000 bytes)`,
		strings.Repeat("ä€", 1e5): `"` + strings.Repeat("ä€", 12) + `ä"… (500000 bytes)`,
	} {
		if got := key.Quote(name); got != want {
			t.Errorf("Quote(%.20q) = %s, want %s", name, got, want)
		}
	}
	err := key.CheckName(strings.Repeat("n", 500) + "\x00")
	if err == nil || strings.Contains(err.Error(), strings.Repeat("n", 65)) || !strings.Contains(err.Error(), "501 bytes") {
		t.Errorf("CheckName of a long name = %v, want its beginning and its length", err)
	}
}
