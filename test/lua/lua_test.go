package lua_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/relock-go/relock/lua"
)

// TestScriptsKeepTheRules holds every script to the rules of check_test.go. The
// header is the protocol's specification: what it does not name does not exist.
func TestScriptsKeepTheRules(t *testing.T) {
	names, err := fs.Glob(lua.FS, "*.lua")
	if err != nil {
		t.Fatal(err)
	}
	operations, used := 0, map[string]bool{}
	for _, file := range names {
		for _, problem := range checkText(lua.FS, file) {
			t.Errorf("%s: %s", file, problem)
		}
		if strings.HasPrefix(file, "shared_") {
			for _, problem := range checkShared(lua.FS, file) {
				t.Errorf("%s: %s", file, problem)
			}
			continue
		}
		operations++
		op := parseOperation(lua.FS, file)
		for _, part := range op.uses {
			used["shared_"+part+".lua"] = true
		}
		for _, problem := range op.check(lua.FS) {
			t.Errorf("%s: %s", file, problem)
		}
	}
	if operations == 0 {
		t.Error("no operation among the scripts")
	}
	for _, file := range names {
		if strings.HasPrefix(file, "shared_") && !used[file] {
			t.Errorf("%s: no operation uses it", file)
		}
	}
}

const goodShared = `-- What all operations read.
local function text(number)
  return string.format('%.0f', number)
end

local token = redis.call('HGET', KEYS[1], 'token')
`

const goodOperation = `-- Does a thing.
-- KEYS[1] lock hash its state
-- KEYS[2] queue zset who waits
-- ARGV[1] ttl ms how long
-- ARGV[2...] nonce string each to be dropped
-- RETURNS the token
-- uses: state

for i = 2, #ARGV do
  redis.call('ZREM', KEYS[2], ARGV[i])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return text(token)
`

// A breach replaces a part of a good script, and has the rules say so.
type breach struct{ name, file, old, new, want string }

// breaches are all that a rule is there for.
var breaches = []breach{
	{"nothing broken", "op", "", "", ""},
	{"no purpose", "op", "-- Does a thing.\n", "", "purpose"},
	{"purpose twice removed from the top", "op", "-- Does", "\n-- Does", "purpose"},
	{"undeclared key", "op", "-- KEYS[2] queue zset who waits\n", "", "KEYS[2] is used and not declared"},
	{"undeclared argument", "op", "-- ARGV[1] ttl ms how long\n", "", "ARGV[1] is used and not declared"},
	{"undeclared tail", "op", "-- ARGV[2...] nonce string each to be dropped\n", "", "ARGV[i] without a declared tail"},
	{"unused key", "op", "-- RETURNS", "-- KEYS[3] other hash unused\n-- RETURNS", "KEYS[3] is declared and not used"},
	{"unused argument", "op", "KEYS[1], ARGV[1])", "KEYS[1], 5)", "ARGV[1] is declared and not used"},
	{"unused tail", "op", "KEYS[2], ARGV[i])", "KEYS[2], 'x')", "ARGV[2...] is declared and not used"},
	{"declared twice", "op", "-- RETURNS", "-- ARGV[1] ttl ms again\n-- RETURNS", "ARGV[1] is declared twice"},
	{"gap", "op", "ARGV[2...]", "ARGV[3...]", "ARGV[2] is missing"},
	{"no meaning", "op", "ttl ms how long", "ttl", "name, a type or unit, and a meaning"},
	{"no reply", "op", "-- RETURNS the token\n", "", "RETURNS"},
	{"no such part", "op", "uses: state", "uses: stat", "no shared_stat.lua"},
	{"key concatenated", "op", "redis.call('PEXPIRE'", "local k = KEYS[1] .. ':q'\nredis.call('PEXPIRE'", "builds a key"},
	{"key concatenated behind", "op", "redis.call('PEXPIRE'", "local k = 'q:'\n  .. KEYS[1]\nredis.call('PEXPIRE'", "builds a key"},
	{"key is a literal", "op", "'PEXPIRE', KEYS[1]", "'PEXPIRE', 'relock'", "PEXPIRE: its key must be"},
	{"key is a variable", "op", "'PEXPIRE', KEYS[1]", "'PEXPIRE', token", "PEXPIRE: its key must be"},
	{"key by variable index", "op", "KEYS[2], ARGV[i]", "KEYS[i], ARGV[i]", "literal index"},
	{"key by the index of a tail that is not declared", "op", "KEYS[2], ARGV[i]", "KEYS[1], KEYS[i]", "literal index"},
	{"one of the keys is a literal", "op", "'PEXPIRE', KEYS[1], ARGV[1]", "'DEL', KEYS[1], ARGV[1]", "DEL: all its keys"},
	{"unknown command", "op", "'PEXPIRE', KEYS[1]", "'OBJECT', KEYS[1]", "OBJECT is not in the table"},
	{"command is a variable", "op", "redis.call('PEXPIRE'", "redis.call(token", "literal command"},
	{"redis renamed", "op", "for i", "local r = redis\nfor i", "redis is used other than"},
	{"tostring", "op", "text(token)", "tostring(token)", "tostring"},
	{"format loses digits", "op", "text(token)", "string.format('%g', token)", "format other than"},
	{"format of 31 bits", "op", "text(token)", "string.format('%d', token)", "format other than"},
	{"random", "op", "text(token)", "math.random()", "math.random"},
	{"tab", "op", "  redis", "\tredis", "tab"},
	{"odd indent", "op", "  redis", "   redis", "indent"},
	{"trailing space", "op", "end\n", "end \n", "trailing"},
	{"no final newline", "op", "return text(token)\n", "return text(token)", "newline"},
	{"blank lines at the end", "op", "return text(token)\n", "return text(token)\n\n", "newline"},
	{"too long", "op", "for i", strings.Repeat("text(1)\n", maxCodeLines) + "for i", "code lines"},
	{"shared part reads an argument", "shared", "'token')", "ARGV[1])", "shared part uses ARGV"},
	{"shared part reads a third key", "shared", "KEYS[1]", "KEYS[3]", "shared part uses KEYS[3]"},
	{"shared part without a purpose", "shared", "-- What all operations read.\n", "", "purpose"},
}

// TestEveryRuleCanFail breaks a good script in every way that a rule is there
// for: a check that lets its own mutation pass checks nothing.
func TestEveryRuleCanFail(t *testing.T) {
	for _, tt := range breaches {
		t.Run(tt.name, func(t *testing.T) {
			sources := map[string]string{"op": goodOperation, "shared": goodShared}
			if !strings.Contains(sources[tt.file], tt.old) {
				t.Fatalf("the mutation changes nothing: %q is not there", tt.old)
			}
			sources[tt.file] = strings.Replace(sources[tt.file], tt.old, tt.new, 1)
			got := problems(fstest.MapFS{
				"op.lua":           {Data: []byte(sources["op"])},
				"shared_state.lua": {Data: []byte(sources["shared"])},
			})
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("problems:\n%swant one with %q", got, tt.want)
			}
		})
	}
}

// problems is what the rules say about op.lua and shared_state.lua.
func problems(fsys fs.FS) string {
	all := append(checkText(fsys, "op.lua"), checkText(fsys, "shared_state.lua")...)
	all = append(all, checkShared(fsys, "shared_state.lua")...)
	all = append(all, parseOperation(fsys, "op.lua").check(fsys)...)
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p + "\n")
	}
	return b.String()
}
