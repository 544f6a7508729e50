package rig

import (
	"cmp"
	"io/fs"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/internal/wire"
	"github.com/relock-go/relock/lua"
)

// scripts maps what EVALSHA sends to the script's name, sources what EVAL sends.
var scripts, sources = func() (shas, sources map[string]string) {
	shas, sources = map[string]string{}, map[string]string{}
	for name := range wire.Scripts() {
		s := script.MustLoad(lua.FS, name)
		shas[s.SHA], sources[s.Source] = name, name
	}
	return shas, sources
}()

// LoadScripts makes every script known to a server.
func LoadScripts(t testing.TB, rdb *redis.Client) {
	t.Helper()
	for source := range sources {
		Must(t, rdb.ScriptLoad(t.Context(), source).Err())
	}
}

// ScriptSent is the name of the script that a command runs by its SHA, or "".
func ScriptSent(args []string) string {
	if len(args) < 3 || args[0] != "evalsha" {
		return ""
	}
	return scripts[args[1]]
}

// Runs reports whether a command runs one of the scripts of these names, by its SHA or in full.
func Runs(cmd redistest.Command, names ...string) bool {
	if len(cmd.Args) < 2 {
		return false
	}
	return slices.Contains(names, cmp.Or(scripts[cmd.Args[1]], sources[cmd.Args[1]]))
}

// Count counts the commands on a link that run one of the scripts of these names. Read it when the link is quiet.
func Count(link *redistest.Link, names ...string) (n *int) {
	n = new(int)
	link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
		if Runs(cmd, names...) {
			*n++
		}
		return redistest.Pass
	})
	return n
}

// ScriptOf returns the name of the script that a command runs, or "". A poll is
// the acquire of a request that has a place.
func ScriptOf(cmd redistest.Command) string {
	var name string
	switch {
	case len(cmd.Args) < 2:
	case cmd.Is("evalsha"):
		name = scripts[cmd.Args[1]]
	case cmd.Is("eval"):
		name = sources[cmd.Args[1]]
	}
	if name == "acquire" && len(cmd.Args) > 13 && cmd.Args[13] != "0" && cmd.Args[13] != "-1" {
		return "poll"
	}
	return name
}

// SwapScripts makes every client of the process send the scripts in fsys, until
// restore is called. No client may be in use at either call.
func SwapScripts(fsys fs.FS) (restore func()) {
	before := map[string]script.Script{}
	for name, s := range wire.Scripts() {
		before[name] = *s
		*s = *script.MustLoad(fsys, name)
	}
	return func() {
		for name, s := range wire.Scripts() {
			*s = before[name]
		}
	}
}
