package house_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	module    = "github.com/relock-go/relock"
	goredis   = "github.com/redis/go-redis/v9"
	uuid      = "github.com/google/uuid"
	miniredis = "github.com/alicebob/miniredis/v2"
	goleak    = "go.uber.org/goleak"
)

// imports is the architecture: for each package, what its code outside tests
// may import beside the standard library. A package that is absent fails.
//
// The mechanisms in internal/ know no locks and, but for transport and script,
// not each other, so that each can be proved alone. The command has what its
// users have. internal/redistest and internal/rig are for tests, so nothing may list
// them but relocktest, which is for tests of users. The suites in test/ may import
// anything, and nobody imports them.
var imports = map[string][]string{
	".": {
		goredis, uuid,
		module + "/internal/access", module + "/internal/clock", module + "/internal/ending", module + "/internal/holdcontext", module + "/internal/key", module + "/internal/label",
		module + "/internal/leaving", module + "/internal/ledger", module + "/internal/listener", module + "/internal/logqueue", module + "/internal/loss", module + "/internal/quorum", module + "/internal/renewal", module + "/internal/replay", module + "/internal/room", module + "/internal/script", module + "/internal/seam", module + "/internal/shutdown", module + "/internal/transport", module + "/internal/unheard",
		module + "/internal/trust", module + "/internal/wire",
	},
	"cmd/relock": {module, module + "/fence", module + "/internal/seam", module + "/relockweb", goredis, miniredis, uuid},
	"internal/access": {
		module + "/internal/key", module + "/internal/listener", module + "/internal/transport", module + "/internal/trust", module + "/internal/wire",
	},
	"fence":                {goredis},
	"internal/clock":       {},
	"internal/ending":      {},
	"internal/holdcontext": {},
	"internal/inbox":       {goredis, module + "/internal/ending"},
	"internal/key":         {},
	"internal/redistest":   {goredis, miniredis, "testing", module + "/internal/spawn"},
	"internal/jvm":         {module + "/internal/spawn"},
	"internal/label":       {module + "/internal/clock", module + "/internal/key", module + "/internal/transport", module + "/internal/wire"},
	"internal/leaving":     {},
	"internal/ledger":      {},
	"internal/logqueue":    {},
	"internal/listener": {
		goredis, module + "/internal/clock", module + "/internal/inbox", module + "/internal/key", module + "/internal/renewal", module + "/internal/wire",
	},
	"internal/loss":    {module + "/internal/ending"},
	"internal/quorum":  {module + "/internal/ending"},
	"internal/renewal": {module + "/internal/clock"},
	"internal/replay":  {module + "/internal/clock", module + "/internal/ending", module + "/internal/key", module + "/internal/transport", module + "/internal/wire"},
	"internal/rig": {
		module, module + "/lua", goredis, goleak, "testing",
		module + "/internal/clock", module + "/internal/ending", module + "/internal/key", module + "/internal/redistest", module + "/internal/script", module + "/internal/seam", module + "/internal/virtual", module + "/internal/wire",
	},
	"internal/room":      {module + "/internal/clock", module + "/internal/ledger", module + "/internal/loss", module + "/internal/trust"},
	"internal/script":    {},
	"internal/seam":      {module + "/internal/clock"},
	"internal/shutdown":  {},
	"internal/spawn":     {},
	"internal/virtual":   {},
	"internal/transport": {goredis, module + "/internal/ending", module + "/internal/script"},
	"internal/trust":     {module + "/internal/clock"},
	"internal/unheard":   {module + "/internal/clock"},
	"internal/wire":      {module + "/lua", module + "/internal/key", module + "/internal/ledger", module + "/internal/room", module + "/internal/script", module + "/internal/transport"},
	"lua":                {},
	"redisson": {
		module, module + "/redisson/lua", goredis, uuid,
		module + "/internal/clock", module + "/internal/ending", module + "/internal/holdcontext", module + "/internal/inbox", module + "/internal/key", module + "/internal/leaving", module + "/internal/loss", module + "/internal/renewal", module + "/internal/script", module + "/internal/shutdown", module + "/internal/transport", module + "/internal/trust",
	},
	"redisson/lua": {},
	"relocktest": {
		module, goredis, "testing", module + "/internal/clock", module + "/internal/ending", module + "/internal/key", module + "/internal/redistest", module + "/internal/seam",
	},
	"relockweb": {module, module + "/internal/key", module + "/internal/seam"},
}

// TestPackagesImportOnlyWhatTheTableAllows reads the files themselves, not one
// platform's build, so that a file for another system cannot slip through.
func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	for file := range filesOfThisModule(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		if strings.HasPrefix(file, "test/") {
			continue
		}
		allowed, known := imports[path.Dir(file)]
		if !known {
			t.Errorf("%s: package %s is not in the table", file, path.Dir(file))
			continue
		}
		for _, imported := range importsOf(t, file) {
			if judged(imported) && !permits(allowed, imported) {
				t.Errorf("%s must not import %s", file, imported)
			}
		}
	}
}

func TestImportTableCanFail(t *testing.T) {
	for imported, want := range map[string]bool{
		goredis:                         true,
		goredis + "/maintnotifications": true, // part of what is allowed
		"github.com/redis/go-redis/v9x": false,
		module + "/internal/script":     true,
		module + "/internal/redistest":  false,
		module + "/test/mutation":       false,
		module:                          false,
		"testing":                       false,
		"github.com/stretchr/testify":   false,
		uuid:                            false,
	} {
		if got := !judged(imported) || permits(imports["internal/transport"], imported); got != want {
			t.Errorf("internal/transport may import %s: got %v, want %v", imported, got, want)
		}
	}
}

// judged tells imports that the table speaks of from the standard library's,
// of which testing alone is kept out of users' programs.
func judged(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".") || imported == "testing"
}

// permits allows a package of another module with all below it, and one of
// ours by its exact path only.
func permits(allowed []string, imported string) bool {
	for _, a := range allowed {
		foreign := !strings.HasPrefix(a, module)
		if imported == a || foreign && strings.HasPrefix(imported, a+"/") {
			return true
		}
	}
	return false
}

func importsOf(t *testing.T, file string) (paths []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, imported)
	}
	return paths
}

// filesOfThisModule yields every file below the module's folder, by slash-separated
// relative path, without those of the modules nested in it.
func filesOfThisModule(t *testing.T) func(yield func(string) bool) {
	return walk(t, func(dir string) bool {
		nested, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
		return dir != "." && len(nested) > 0
	})
}

// walk yields every file below the module's folder; hidden folders but .ci and .github are
// no part of the project, and neither are those that skip names.
func walk(t *testing.T, skip func(dir string) bool) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				hidden := strings.HasPrefix(name, ".") && name != "." && name != ".ci" && name != ".github"
				output := filepath.Base(name) == "out" // of a bench or a torture run, which git ignores as well
				if hidden || output || skip(name) {
					return fs.SkipDir
				}
				return nil
			}
			if name == ".git" { // a file where git keeps several work trees
				return nil
			}
			if !yield(filepath.ToSlash(name)) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// moduleOf is the folder of the module that a file is in.
func moduleOf(files map[string]string, name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, is := files[dir+"/go.mod"]; is {
			return dir
		}
	}
	return "."
}

// TestSuitesLookForGoroutinesThatOutliveThem: each through rig.Main.
func TestSuitesLookForGoroutinesThatOutliveThem(t *testing.T) { report(t, unwatched(everyFile(t))) }

// unwatched reports suites whose TestMain is not there, or does not call rig.Main. A
// module of its own is no suite: it uses what its users have.
func unwatched(files map[string]string) (problems []string) {
	watched := map[string]bool{}
	for name, text := range files {
		dir := path.Dir(name)
		if strings.HasPrefix(name, "test/") && strings.HasSuffix(name, "_test.go") && moduleOf(files, name) == "." {
			watched[dir] = watched[dir] || strings.Contains(text, "func TestMain(") && strings.Contains(text, "rig.Main(m)")
		}
	}
	for dir, is := range watched {
		if !is {
			problems = append(problems, dir+" has no TestMain that calls rig.Main: goroutines may outlive its tests")
		}
	}
	return problems
}

func TestSuitesRuleCanFail(t *testing.T) {
	files := map[string]string{
		"test/a/main_test.go": "func TestMain(m *testing.M) { rig.Main(m) }", "test/a/a_test.go": "func TestA(t *testing.T) {}",
		"test/b/b_test.go": "func TestB(t *testing.T) {}",
		"test/c/c_test.go": "func TestC(t *testing.T) {}", "test/c/go.mod": "module c", "test/c/d/d_test.go": "func TestD(t *testing.T) {}",
	}
	if got := unwatched(files); len(got) != 1 {
		t.Errorf("got %q, want the suite that has no TestMain", got)
	}
}
