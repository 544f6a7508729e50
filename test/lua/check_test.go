package lua_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxCodeLines keeps an operation readable in one sitting, shared parts aside.
const maxCodeLines = 220

var (
	declaration = regexp.MustCompile(`^-- (KEYS|ARGV)\[(\d+)(\.\.\.)?\](.*)$`)
	keyTail     = regexp.MustCompile(`(?m)^-- KEYS\[1\.\.\.\]`)
	indexed     = regexp.MustCompile(`\b(KEYS|ARGV)\[(\d+)\]`)
	variable    = regexp.MustCompile(`\bARGV\[[^\]]*[^\d\]][^\]]*\]|unpack\(ARGV\b`)
	keysOther   = regexp.MustCompile(`(#?)\bKEYS\b(\[\d+\])?`)
	keyBuilt    = regexp.MustCompile(`KEYS\[\d+\]\s*\.\.|\.\.\s*KEYS\[|format\([^)]*KEYS\[|concat\([^)]*KEYS\[`)
	redisUse    = regexp.MustCompile(`\bredis\b(?:\.\w+)?`)
	redisCall   = regexp.MustCompile(`\bredis\.p?call\b(\(\s*'(\w+)')?`)
	firstKey    = regexp.MustCompile(`^\s*,\s*KEYS\[\d+\]\s*[,)]`)
	onlyKeys    = regexp.MustCompile(`^(\s*,\s*KEYS\[\d+\])+\s*\)`)
	usesLine    = regexp.MustCompile(`(?m)^-- uses:(.*)$`)
	format      = regexp.MustCompile(`\bformat\(\s*('%\.0f')?`)
)

// commands says where each command has its keys. A command that is not here
// is one whose keys nobody has looked at.
var commands = func() map[string]string {
	table := map[string]string{}
	for keys, names := range map[string]string{
		"none": "TIME PUBLISH SPUBLISH PUBSUB CLUSTER INFO",
		"first": "HGET HSET HSETNX HMGET HDEL HEXISTS HGETALL HINCRBY HKEYS HLEN HSCAN TYPE PTTL PEXPIRE PEXPIREAT PEXPIRETIME PERSIST " +
			"ZADD ZCARD ZCOUNT ZPOPMIN ZRANGE ZRANGEBYSCORE ZRANK ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYSCORE ZSCORE",
		"all": "DEL EXISTS UNLINK",
	} {
		for name := range strings.FieldsSeq(names) {
			table[name] = keys
		}
	}
	return table
}()

// source returns a file's text, and its code without comment lines.
func source(fsys fs.FS, file string) (text, code string) {
	b, err := fs.ReadFile(fsys, file)
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(b)) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "--") {
			code += line
		}
	}
	if keyTail.Match(b) { // each of the keys that the caller named is judged as the first
		code = strings.ReplaceAll(code, "KEYS[i]", "KEYS[1]")
	}
	return string(b), code
}

// checkText judges what holds for operations and shared parts alike.
func checkText(fsys fs.FS, file string) (problems []string) {
	text, code := source(fsys, file)
	report := func(broken bool, message string) {
		if broken {
			problems = append(problems, message)
		}
	}
	report(!strings.HasPrefix(text, "-- ") || declaration.MatchString(strings.SplitN(text, "\n", 2)[0]), "the first line is not its purpose")
	report(!strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n"), "does not end in one newline")
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		report(strings.Contains(line, "\t"), "tab: "+line)
		report(strings.TrimRight(line, " ") != line, "trailing space: "+line)
		report((len(line)-len(strings.TrimLeft(line, " ")))%2 != 0, "indent is not of two spaces: "+line)
	}
	report(strings.Contains(code, "tostring"), "tostring: it prints a token as 1.8e15")
	report(strings.Contains(code, "math.random"), "math.random: a script is the same for all who send it")
	for _, m := range format.FindAllStringSubmatch(code, -1) {
		report(m[1] == "", "format other than '%.0f': it loses digits of a token, %d those above 31 bits on a server of 32")
	}
	return append(problems, checkKeys(code)...)
}

// checkKeys judges that every key is one the caller named: in a Cluster, under
// an ACL, any other key is refused or, worse, taken from the wrong server.
func checkKeys(code string) (problems []string) {
	for _, m := range keysOther.FindAllStringSubmatch(code, -1) {
		if m[1] == "" && m[2] == "" {
			problems = append(problems, "KEYS without a literal index")
		}
	}
	if m := keyBuilt.FindString(code); m != "" {
		problems = append(problems, "builds a key: "+m)
	}
	for _, use := range redisUse.FindAllString(code, -1) {
		if !slices.Contains([]string{"redis.call", "redis.pcall", "redis.error_reply", "redis.status_reply", "redis.acl_check_cmd"}, use) {
			problems = append(problems, use+": redis is used other than to call, to reply, or to ask who may")
		}
	}
	for _, m := range redisCall.FindAllStringSubmatchIndex(code, -1) {
		if m[2] < 0 {
			problems = append(problems, "redis.call without a literal command")
			continue
		}
		command, rest := strings.ToUpper(code[m[4]:m[5]]), code[m[1]:]
		switch keys, known := commands[command]; {
		case !known:
			problems = append(problems, command+" is not in the table of commands")
		case keys == "first" && !firstKey.MatchString(rest):
			problems = append(problems, command+": its key must be KEYS[n]")
		case keys == "all" && !onlyKeys.MatchString(rest):
			problems = append(problems, command+": all its keys must be KEYS[n]")
		}
	}
	return problems
}

// checkShared judges a shared part: it is put before operations whose
// arguments it cannot know.
func checkShared(fsys fs.FS, file string) (problems []string) {
	_, code := source(fsys, file)
	if strings.Contains(code, "ARGV") {
		problems = append(problems, "a shared part uses ARGV")
	}
	for _, m := range indexed.FindAllStringSubmatch(code, -1) {
		if m[1] == "KEYS" && m[2] != "1" && m[2] != "2" {
			problems = append(problems, "a shared part uses "+m[0])
		}
	}
	return problems
}

// operation is an operation file's header and its body.
type operation struct {
	file           string
	header, code   string
	keys, argv     map[int]bool // declared
	tail           int          // the n of ARGV[n...], or 0
	uses           []string
	headerProblems []string
}

func parseOperation(fsys fs.FS, file string) *operation {
	text, code := source(fsys, file)
	op := &operation{file: file, code: code, keys: map[int]bool{}, argv: map[int]bool{}}
	for _, m := range usesLine.FindAllStringSubmatch(text, -1) {
		op.uses = append(op.uses, strings.Fields(m[1])...)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		op.header += line
		if m := declaration.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			op.declare(m)
		}
	}
	return op
}

func (op *operation) declare(m []string) {
	declared := map[string]map[int]bool{"KEYS": op.keys, "ARGV": op.argv}[m[1]]
	n, _ := strconv.Atoi(m[2])
	if declared[n] || m[1] == "ARGV" && op.tail == n {
		op.headerProblems = append(op.headerProblems, fmt.Sprintf("%s[%d] is declared twice", m[1], n))
	}
	if len(strings.Fields(m[4])) < 3 {
		op.headerProblems = append(op.headerProblems, fmt.Sprintf("%s[%d] lacks a name, a type or unit, and a meaning", m[1], n))
	}
	if m[3] != "" && m[1] == "ARGV" {
		op.tail = n
		return
	}
	declared[n] = true
}

// check judges the header against the body, with the parts it uses.
func (op *operation) check(fsys fs.FS) []string {
	problems := op.headerProblems
	whole := op.code
	for _, part := range slices.Backward(op.uses) {
		text, code := source(fsys, "shared_"+part+".lua")
		if text == "" {
			problems = append(problems, "there is no shared_"+part+".lua")
		}
		whole = code + whole
	}
	if !strings.Contains(op.header, "\n-- RETURNS ") {
		problems = append(problems, "the header has no RETURNS")
	}
	if n := strings.Count(op.code, "\n"); n > maxCodeLines {
		problems = append(problems, fmt.Sprintf("%d code lines, more than %d", n, maxCodeLines))
	}
	return append(problems, op.checkIndexes(whole)...)
}

func (op *operation) checkIndexes(whole string) (problems []string) {
	used := map[string]map[int]bool{"KEYS": {}, "ARGV": {}}
	for _, m := range indexed.FindAllStringSubmatch(whole, -1) {
		n, _ := strconv.Atoi(m[2])
		used[m[1]][n] = true
	}
	tailUsed := variable.MatchString(op.code)
	if tailUsed && op.tail == 0 {
		problems = append(problems, variable.FindString(op.code)+" without a declared tail")
	}
	for n := range used["ARGV"] {
		tailUsed = tailUsed || op.tail > 0 && n >= op.tail
	}
	if op.tail > 0 && !tailUsed {
		problems = append(problems, fmt.Sprintf("ARGV[%d...] is declared and not used", op.tail))
	}
	problems = append(problems, compare("KEYS", op.keys, used["KEYS"], 0)...)
	return append(problems, compare("ARGV", op.argv, used["ARGV"], op.tail)...)
}

// compare reports the difference of two sets of indexes; those from tail on
// belong to the tail, if there is one.
func compare(array string, declared, used map[int]bool, tail int) (problems []string) {
	last := tail - 1
	for n := range declared {
		last = max(last, n)
		if !used[n] {
			problems = append(problems, fmt.Sprintf("%s[%d] is declared and not used", array, n))
		}
	}
	for n := range used {
		if !declared[n] && (tail == 0 || n < tail) {
			problems = append(problems, fmt.Sprintf("%s[%d] is used and not declared", array, n))
		}
	}
	for n := 1; n <= last; n++ {
		if !declared[n] && !used[n] {
			problems = append(problems, fmt.Sprintf("%s[%d] is missing", array, n))
		}
	}
	return problems
}
